"""Search all lines that pass the filter: count the matches, then go to the nearest one.

The work is done in slices of a few milliseconds, a block at a time.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

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
from tui.widgets.log_view.store import LogStore
from tui.widgets.log_view.viewport import Viewport

SLICE_S = 0.008
"""Maximum time of filtering, folding or searching before other tasks of the event loop run."""


class TimeBudget:
    """A callable that returns True while time is left; ``renew`` runs other tasks and starts again."""

    def __init__(self) -> None:
        self._deadline_s = time.monotonic() + SLICE_S

    def __call__(self) -> bool:
        return time.monotonic() < self._deadline_s

    async def renew(self) -> None:
        await asyncio.sleep(0)
        self._deadline_s = time.monotonic() + SLICE_S


async def has_match(store: LogStore, pattern: LogPattern) -> bool:
    """Return True if any line matches, whatever the filter."""
    scanner, time_left = PatternScanner(pattern), TimeBudget()
    for block in reversed(store.blocks):
        if scanner.hits(block):
            return True
        if not time_left():
            await time_left.renew()
    return False


class LogSearch:
    """Matches of a pattern among the lines that pass the filter, folded or not."""

    def __init__(self, rows: LogRows, pattern: LogPattern) -> None:
        self.pattern = pattern
        self._rows = rows
        self._scanner = PatternScanner(pattern)
        for part in rows.parts:
            part.hits = None

    def _hits(self, part: BlockRows) -> array[int]:
        """Return the indices of the matches in a block; search it only if that is not known yet."""
        if part.hits is None:
            block, gaps = part.block, self._rows.store.attribute_table.gap_codes
            indexes = self._scanner.hits(block) if len(part.passing) else []
            if indexes and len(part.passing) < len(block):
                indexes = sorted(set(indexes).intersection(part.passing))
            part.hits = array("H", [index for index in indexes if block.codes[index] not in gaps])
        return part.hits

    def count(self, should_continue: Callable[[], bool]) -> bool:
        """Search block by block while ``should_continue`` allows it; return True at the end."""
        for part in reversed(self._rows.parts):
            if part.hits is None:
                self._hits(part)
                if not should_continue():
                    break
        return self.is_final

    @property
    def is_final(self) -> bool:
        return self._rows.is_complete and all(part.hits is not None for part in self._rows.parts)

    @property
    def total(self) -> int:
        return sum(len(part.hits) for part in self._rows.parts if part.hits is not None)

    def count_before(self, key: LineKey | None) -> int:
        """Return the number of matches before a line; None counts all."""
        parts = self._rows.parts
        at, index = (len(parts), 0) if key is None else self._rows.store.position(key)
        inside = bisect_left(self._hits(parts[at]), index) if at < len(parts) else 0
        return sum(len(self._hits(part)) for part in parts[:at]) + inside

    def match(self, number: int) -> LineKey | None:
        """Return the match with this number, wrapping around the ends of the log; None without matches."""
        number %= max(1, self.total)
        for part in self._rows.parts:
            hits = self._hits(part)
            if number < len(hits):
                return part.block.key(hits[number])
            number -= len(hits)
        return None


_WORKER_GROUP = "search"


@dataclass
class MatchChanged(Message):
    """The matches have been counted (again), or another match is the current one.

    Attributes:
        entry: The current match; None if there is none.
        position: Its position, counted from 1; 0 if there is none.
        wrapped: True if the search for it went beyond an end of the log.
    """

    entry: LogEntry | None
    position: int
    total: int
    wrapped: bool


class LogFinder:
    """Searches the rows of a view in a worker of its widget, which posts ``MatchChanged``."""

    def __init__(self, widget: Widget, model: LogModel, viewport: Viewport) -> None:
        self._widget = widget
        self._model = model
        self._viewport = viewport
        self.search: LogSearch | None = None
        self._wrapped = False
        self._reported_total = 0
        self._worker: Worker[None] | None = None

    def find(self, pattern: LogPattern | None, *, backwards: bool, moves: bool) -> None:
        """Count the matches of a pattern, and go to the nearest one if it ``moves``; None ends the search."""
        self._model.match = None
        if not pattern:
            self.search = None
            self._widget.workers.cancel_group(self._widget, _WORKER_GROUP)
            return
        if self.search is None or self.search.pattern != pattern:
            self.search = LogSearch(self._model.rows, pattern)
        if moves:
            # While following, the newest match is the nearest one.
            self.next(backwards=backwards or self._model.following, include_current=True)
        else:
            self._count()

    def next(self, *, backwards: bool = False, include_current: bool = False) -> None:
        self._count(partial(self._move, backwards=backwards, include_current=include_current))

    def update(self) -> None:
        """Count again after the lines or the filter changed, unless a count is still running."""
        search = self.search
        is_idle = self._worker is not None and self._worker.is_finished
        if search is not None and is_idle and (not search.is_final or search.total != self._reported_total):
            self._count()

    def _count(self, on_counted: Callable[[LogSearch], None] = lambda _search: None) -> None:
        search = self.search
        if search is None:
            return

        async def work() -> None:
            time_left = TimeBudget()
            while not search.count(time_left):
                await time_left.renew()
            on_counted(search)
            self._report(search)

        self._worker = run_in_background(
            self._widget, work, "search the log", group=_WORKER_GROUP, exclusive=True
        )

    def _move(self, search: LogSearch, *, backwards: bool, include_current: bool) -> None:
        model, start = self._model, self._model.cursor
        if model.match is not None and start is not None:
            # The match may be inside a fold, such as a progress bar: continue from it, not from the row.
            start = model.match if model.rows.row_of(model.match) == model.cursor_row else start
        if start is not None and include_current is backwards:
            start = LineKey(start.time_ns, start.serial + 1)
        number = search.count_before(start) - (1 if backwards else 0)
        self._wrapped = not 0 <= number < search.total
        model.match = search.match(number)
        if model.match is not None:
            self._viewport.seek(model.match)

    def _report(self, search: LogSearch) -> None:
        self._reported_total, match = search.total, self._model.match
        is_known = match is not None and self._model.passes(match)
        self._widget.post_message(
            MatchChanged(
                None if match is None else self._model.store.entry(match),
                position=search.count_before(match) + 1 if is_known else 0,
                total=search.total,
                wrapped=self._wrapped,
            )
        )
