"""Search all lines that pass the filter: find the nearest match at once, then count the rest.

The work is done in slices of a few milliseconds, a block at a time.
"""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual.message import Message
from textual.widget import Widget
from textual.worker import Worker

from api_client.models.logs import LogEntry
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.background import run_in_background
from tui.widgets.log_view.filter import PatternScanner
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.rows import BlockRows, LogRows
from tui.widgets.log_view.viewport import Viewport

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
        wrapped: True if the search for the nearest match went beyond an end of the log.
    """

    def __init__(self, rows: LogRows, pattern: LogPattern) -> None:
        self.pattern = pattern
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
        self.wrapped = False
        while not self._rows.is_complete:  # not all lines that pass the filter are known
            await time_left.renew()
        for part, low, high, wrapped in self._blocks_from(start, backwards=backwards):
            hits = self._hits(part) if part in self._rows.parts else array("H")  # dropped meanwhile
            hits = hits[bisect_left(hits, low) : bisect_left(hits, high)]
            if hits:
                self.wrapped = wrapped
                return part.block.key(hits[-1 if backwards else 0])
            if not time_left():
                await time_left.renew()
        return None

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

    def position(self, match: LineKey | None) -> int:
        """Return the position of a match, counted from 1; 0 if unknown."""
        position = None if match is None or not self.is_final else self._rows.find(match)
        if position is None:
            return 0
        part, index = position
        before = sum(len(self._hits(other)) for other in self._rows.parts[: self._rows.parts.index(part)])
        return before + bisect_left(self._hits(part), index) + 1


_WORKERS = "search"


@dataclass
class MatchChanged(Message):
    """Progress of a search; posted when the nearest match is known, and again as matches are counted.

    Attributes:
        entry: The current match; None if nothing matches.
        position: Position of the match, counted from 1; 0 if not known yet.
    """

    pattern: LogPattern
    entry: LogEntry | None
    position: int
    total: int
    total_is_final: bool
    wrapped: bool


class LogFinder:
    """Searches the rows of a view in a worker of its widget, which posts ``MatchChanged``."""

    def __init__(
        self, widget: Widget, model: LogModel, viewport: Viewport, monotonic_s: Callable[[], float]
    ) -> None:
        self._widget = widget
        self._model = model
        self._viewport = viewport
        self._monotonic_s = monotonic_s
        self.search: LogSearch | None = None
        self._reported_total = 0
        self._worker: Worker[None] | None = None

    def find(self, pattern: LogPattern | None, *, backwards: bool, moves: bool) -> None:
        """Count the matches of a pattern, and go to the nearest one if it ``moves``; None ends the search."""
        search = self.search = LogSearch(self._model.rows, pattern) if pattern else None
        self._model.match = None
        if search is not None and not moves:
            self._run(partial(self._count, search))
            return
        # While following, the newest match is the nearest one.
        self.next(backwards=backwards or self._model.following, include_own=True)

    def next(self, *, backwards: bool = False, include_own: bool = False) -> None:
        model, search, start = self._model, self.search, self._model.cursor
        if search is None:
            self._widget.workers.cancel_group(self._widget, _WORKERS)
            return
        if model.match is not None and start is not None:
            # The match may be inside a fold, such as a progress bar: continue from the match, not from the
            # row.
            start = model.match if model.rows.row_of(model.match) == model.cursor_row else start
        self._run(partial(self._find, search, start, backwards=backwards, include_own=include_own))

    async def _find(
        self, search: LogSearch, start: LineKey | None, *, backwards: bool, include_own: bool
    ) -> None:
        time_left = TimeBudget(self._monotonic_s)
        model = self._model
        model.match = await search.find(start, time_left, backwards=backwards, include_own=include_own)
        if model.match is not None:
            self._viewport.seek(model.match)
        if not search.is_final:
            self._report(search)
        await self._count(search)

    async def _count(self, search: LogSearch) -> None:
        time_left = TimeBudget(self._monotonic_s)
        while not search.count(time_left):
            await time_left.renew()
        self._report(search)

    def update(self) -> None:
        """Count again after the lines or the filter changed, unless the search still goes on."""
        search = self.search
        is_idle = self._worker is not None and self._worker.is_finished
        if search is not None and is_idle and (not search.is_final or search.total != self._reported_total):
            self._run(partial(self._count, search))

    def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._worker = run_in_background(self._widget, work, "search the log", group=_WORKERS, exclusive=True)

    def _report(self, search: LogSearch) -> None:
        self._reported_total, match = search.total, self._model.match
        self._widget.post_message(
            MatchChanged(
                search.pattern,
                None if match is None else self._model.store.entry(match),
                position=search.position(match),
                total=search.total,
                total_is_final=search.is_final,
                wrapped=search.wrapped,
            )
        )
