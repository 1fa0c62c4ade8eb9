"""Search all lines that pass the filter: find the nearest match at once, then count the rest.

The work is done in slices of a few milliseconds, a block at a time.
"""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Callable

from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.block import Block
from tui.widgets.log_view.filter import PatternScanner
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.rows import BlockRows, LogRows

SLICE_S = 0.008
"""Maximum time of filtering, folding or searching between two turns of the event loop."""
COUNT_REPORT_S = 0.1


class TimeBudget:
    """A time budget: callable that returns True while time is left; ``renew`` yields to other tasks."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._deadline_s = monotonic_s() + SLICE_S

    def __call__(self) -> bool:
        return self._monotonic_s() < self._deadline_s

    async def renew(self) -> None:
        await asyncio.sleep(0)
        self._deadline_s = self._monotonic_s() + SLICE_S


class LogSearch:
    """Matches of a pattern among the lines that pass the filter, folded or not."""

    def __init__(self, rows: LogRows, pattern: LogPattern) -> None:
        self.pattern = pattern
        self.found: LineKey | None = None
        self.wrapped = False
        self._rows = rows
        self._scanner = PatternScanner(pattern)
        self._hits: dict[Block, tuple[int, array[int]]] = {}
        self._start: LineKey | None = None
        self._is_backwards = False
        self._queue: list[tuple[BlockRows, int, int, bool]] | None = []

    def _scan(self, part: BlockRows) -> array[int]:
        """Return the indices of the matches in a block, searching it only if it has changed."""
        stamp, hits = self._hits.get(part.block, (-1, None))
        if hits is None or stamp != part.stamp:
            block, gaps = part.block, self._rows.store.attribute_table.gap_codes
            indexes = self._scanner.hits(block) if len(part.passing) else []
            if indexes and len(part.passing) < len(block):
                indexes = sorted(set(indexes).intersection(part.passing))
            if indexes and not block.code_set.isdisjoint(gaps):
                indexes = [index for index in indexes if block.codes[index] not in gaps]
            hits = array("H", indexes)
            self._hits[part.block] = part.stamp, hits
        return hits

    # Nearest match

    def begin(self, start: LineKey | None, *, backwards: bool, include_own: bool) -> None:
        """Start searching for the nearest match from a line on, or from the end on if None."""
        if start is not None and include_own is backwards:
            start = LineKey(start.time_ns, start.serial + 1)
        self._start, self._is_backwards, self._queue = start, backwards, None
        self.found, self.wrapped = None, False

    def _blocks_to_search(self) -> list[tuple[BlockRows, int, int, bool]]:
        """Return (block, first index, end index, True after wrapping), the last one to search first."""
        parts = self._rows.parts
        at, index = len(parts), 0
        if self._start is not None:
            at, index = self._rows.store.position(self._start)
        below = [(part, 0, len(part.block), self._is_backwards) for part in parts[at:]]
        above = [(part, 0, len(part.block), not self._is_backwards) for part in parts[:at]]
        if below:
            part, _, end, wrapped = below[0]
            below[0] = (part, index, end, wrapped)
            above.append((part, 0, index, not wrapped))
        return [*below, *above] if self._is_backwards else [*above[::-1], *below[::-1]]

    def find_next(self, should_continue: Callable[[], bool]) -> bool:
        """Search block by block while ``should_continue`` allows it; return True at the end."""
        if self._queue is None:
            self._queue = self._blocks_to_search()
        while self._queue:
            part, low, high, self.wrapped = self._queue.pop()
            if part not in self._rows.parts:
                continue  # dropped meanwhile
            hits = self._scan(part)
            hits = hits[bisect_left(hits, low) : bisect_left(hits, high)]
            if hits:
                self.found = part.block.key(hits[-1 if self._is_backwards else 0])
                self._queue = []
            if not should_continue():
                break
        return not self._queue

    async def find(self, monotonic_s: Callable[[], float]) -> LineKey | None:
        time_left = TimeBudget(monotonic_s)
        # The rows that pass the filter may still be incomplete.
        while not (self._rows.is_complete and self.find_next(time_left)):
            await time_left.renew()
        return self.found

    # Counting matches

    def count(self, should_continue: Callable[[], bool]) -> bool:
        """Count block by block while ``should_continue`` allows it; return True at the end."""
        for part in reversed(self._rows.parts):
            if not self._is_known(part):
                self._scan(part)
                if not should_continue():
                    break
        if len(self._hits) > len(self._rows.parts):
            self._hits = {
                part.block: self._hits[part.block] for part in self._rows.parts if part.block in self._hits
            }
        return self.is_final

    async def count_all(self, monotonic_s: Callable[[], float], report: Callable[[], object]) -> None:
        time_left, reported_s = TimeBudget(monotonic_s), monotonic_s()
        while not (self._rows.is_complete and self.count(time_left)):
            await time_left.renew()
            if monotonic_s() - reported_s > COUNT_REPORT_S:
                reported_s = monotonic_s()
                report()
        report()

    def _is_known(self, part: BlockRows) -> bool:
        scanned = self._hits.get(part.block)
        return scanned is not None and scanned[0] == part.stamp

    @property
    def total(self) -> int:
        return sum(len(self._hits[part.block][1]) for part in self._rows.parts if part.block in self._hits)

    @property
    def is_final(self) -> bool:
        return self._rows.is_complete and all(map(self._is_known, self._rows.parts))

    @property
    def position(self) -> int:
        """The position of the current match, counted from 1; 0 if unknown."""
        if self.found is None or not self.is_final:
            return 0
        at, index = self._rows.store.position(self.found)
        before = sum(len(self._hits[part.block][1]) for part in self._rows.parts[:at])
        hits = self._hits[self._rows.parts[at].block][1] if at < len(self._rows.parts) else ()
        number = bisect_left(hits, index)
        return before + number + 1 if number < len(hits) and hits[number] == index else 0
