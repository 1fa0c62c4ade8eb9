"""Search all lines that pass the filter: find the nearest match at once, then count the rest.

The work is done in slices of a few milliseconds, a block at a time.
"""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Callable

from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.filter import PatternScanner
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.rows import BlockRows, LogRows

SLICE_S = 0.008
"""Maximum time of filtering, folding or searching between two turns of the event loop."""


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
    """Matches of a pattern among the lines that pass the filter, folded or not.

    Attributes:
        match: The current match.
        wrapped: True if the search for it went beyond an end of the log.
    """

    def __init__(self, rows: LogRows, pattern: LogPattern) -> None:
        self.pattern = pattern
        self.match: LineKey | None = None
        self.wrapped = False
        self._rows = rows
        self._scanner = PatternScanner(pattern)
        for part in rows.parts:
            part.hits = None

    def _hits(self, part: BlockRows) -> array[int]:
        """Return the indices of the matches in a block, searching it only if it has changed."""
        if part.hits is None:
            block, gaps = part.block, self._rows.store.attribute_table.gap_codes
            indexes = self._scanner.hits(block) if len(part.passing) else []
            if indexes and len(part.passing) < len(block):
                indexes = sorted(set(indexes).intersection(part.passing))
            part.hits = array("H", [index for index in indexes if block.codes[index] not in gaps])
        return part.hits

    # Nearest match

    async def find(
        self, start: LineKey | None, time_left: TimeBudget, *, backwards: bool, include_own: bool
    ) -> LineKey | None:
        """Return the nearest match from a line on, or from the end on if None."""
        if start is not None and include_own is backwards:
            start = LineKey(start.time_ns, start.serial + 1)
        self.match, self.wrapped = None, False
        while not self._rows.is_complete:  # not all lines that pass the filter are known
            await time_left.renew()
        for part, low, high, wrapped in self._blocks_from(start, backwards=backwards):
            hits = self._hits(part) if part in self._rows.parts else array("H")  # dropped meanwhile
            hits = hits[bisect_left(hits, low) : bisect_left(hits, high)]
            if hits:
                self.wrapped = wrapped
                self.match = part.block.key(hits[-1 if backwards else 0])
                break
            if not time_left():
                await time_left.renew()
        return self.match

    def _blocks_from(
        self, start: LineKey | None, *, backwards: bool
    ) -> list[tuple[BlockRows, int, int, bool]]:
        """Return (block, first index, end index, True after wrapping) in the order to search."""
        parts = self._rows.parts
        at, index = (len(parts), 0) if start is None else self._rows.store.position(start)
        below = [(part, 0, len(part.block), backwards) for part in parts[at:]]
        above = [(part, 0, len(part.block), not backwards) for part in parts[:at]]
        if below:
            part, _, end, wrapped = below[0]
            below[0] = (part, index, end, wrapped)
            above.append((part, 0, index, not wrapped))
        return [*above[::-1], *below[::-1]] if backwards else [*below, *above]

    # Counting matches

    def count(self, should_continue: Callable[[], bool]) -> bool:
        """Count block by block while ``should_continue`` allows it; return True at the end."""
        for part in reversed(self._rows.parts):
            if part.hits is None:
                self._hits(part)
                if not should_continue():
                    break
        return self.is_final

    @property
    def total(self) -> int:
        return sum(len(part.hits) for part in self._rows.parts if part.hits is not None)

    @property
    def is_final(self) -> bool:
        return self._rows.is_complete and all(part.hits is not None for part in self._rows.parts)

    @property
    def position(self) -> int:
        """The position of the current match, counted from 1; 0 if unknown."""
        position = None if self.match is None or not self.is_final else self._rows.find(self.match)
        if position is None:
            return 0
        part, index = position
        before = sum(len(self._hits(other)) for other in self._rows.parts[: self._rows.parts.index(part)])
        return before + bisect_left(self._hits(part), index) + 1
