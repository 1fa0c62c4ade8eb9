"""Search the lines that pass the filter: count all matches, then go to the nearest match.

Blocks are searched one by one; every few milliseconds, other tasks of the event loop run.
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
"""Seconds to filter, fold or search before other tasks of the event loop run."""


class TimeBudget:
    """A time slice: a call returns True while time is left; ``renew`` runs other tasks and restarts it."""

    def __init__(self) -> None:
        self._deadline_s = time.monotonic() + SLICE_S

    def __call__(self) -> bool:
        return time.monotonic() < self._deadline_s

    async def renew(self) -> None:
        await asyncio.sleep(0)
        self._deadline_s = time.monotonic() + SLICE_S


async def has_match(store: LogStore, pattern: LogPattern) -> bool:
    """Return True if any line of the store matches, even if a filter hides it."""
    scanner, time_left = PatternScanner(pattern), TimeBudget()
    for block in reversed(store.blocks):
        if scanner.hits(block):
            return True
        if not time_left():
            await time_left.renew()
    return False


class LogSearch:
    """The matches of a pattern in the lines that pass the filter, folded or not."""

    def __init__(self, rows: LogRows, pattern: LogPattern) -> None:
        self.pattern = pattern
        self._rows = rows
        self._scanner = PatternScanner(pattern)
        for block_rows in rows.all_block_rows:
            block_rows.hits = None

    def _hits(self, block_rows: BlockRows) -> array[int]:
        """Return the indices of the matching lines in a block; search the block at the first call."""
        if block_rows.hits is None:
            block, gap_codes = block_rows.block, self._rows.store.attribute_table.gap_codes
            hits = self._scanner.hits(block) if len(block_rows.passing) else []
            if hits and len(block_rows.passing) < len(block):
                hits = sorted(set(hits).intersection(block_rows.passing))
            block_rows.hits = array("H", [index for index in hits if block.codes[index] not in gap_codes])
        return block_rows.hits

    def search_blocks(self, should_continue: Callable[[], bool]) -> bool:
        """Search blocks, newest first, while ``should_continue`` returns True; return ``is_final``."""
        for block_rows in reversed(self._rows.all_block_rows):
            if block_rows.hits is None:
                self._hits(block_rows)
                if not should_continue():
                    break
        return self.is_final

    @property
    def is_final(self) -> bool:
        """True if all blocks are searched, so that ``total`` is the number of all matches."""
        return self._rows.is_complete and all(
            block_rows.hits is not None for block_rows in self._rows.all_block_rows
        )

    @property
    def total(self) -> int:
        """Number of matches in the blocks searched so far."""
        return sum(
            len(block_rows.hits) for block_rows in self._rows.all_block_rows if block_rows.hits is not None
        )

    def count_before(self, key: LineKey | None) -> int:
        """Return the number of matches before a line; with None, of all matches."""
        all_block_rows = self._rows.all_block_rows
        block_number, index = (len(all_block_rows), 0) if key is None else self._rows.store.position(key)
        in_same_block = 0
        if block_number < len(all_block_rows):
            in_same_block = bisect_left(self._hits(all_block_rows[block_number]), index)
        return (
            sum(len(self._hits(block_rows)) for block_rows in all_block_rows[:block_number]) + in_same_block
        )

    def match(self, number: int) -> LineKey | None:
        """Return match ``number``, counted from 0 and modulo the total; None if there are no matches."""
        number %= max(1, self.total)
        for block_rows in self._rows.all_block_rows:
            hits = self._hits(block_rows)
            if number < len(hits):
                return block_rows.block.key(hits[number])
            number -= len(hits)
        return None


_WORKER_GROUP = "search"


@dataclass
class MatchChanged(Message):
    """The matches were counted, or another match became the current match.

    Attributes:
        entry: The current match; None if no line matches or the user has not gone to a match yet.
        position: Number of the current match, counted from 1; 0 without a current match.
        total: Number of all matches.
        wrapped: True if the search continued at the other end of the log.
    """

    entry: LogEntry | None
    position: int
    total: int
    wrapped: bool


class LogFinder:
    """The search of a log view, run in a worker of its widget; posts ``MatchChanged`` to the widget."""

    def __init__(self, widget: Widget, model: LogModel, viewport: Viewport) -> None:
        self._widget = widget
        self._model = model
        self._viewport = viewport
        self.search: LogSearch | None = None
        self._wrapped = False
        self._reported_total = 0
        self._worker: Worker[None] | None = None

    def find(self, pattern: LogPattern | None, *, backwards: bool, goes_to_match: bool) -> None:
        """Count the matches of a pattern; if ``goes_to_match``, go to the nearest. None ends the search."""
        self._model.current_match = None
        if not pattern:
            self.search = None
            self._widget.workers.cancel_group(self._widget, _WORKER_GROUP)
            return
        if self.search is None or self.search.pattern != pattern:
            self.search = LogSearch(self._model.rows, pattern)
        if goes_to_match:
            # While following, the newest match is the nearest.
            self.next(backwards=backwards or self._model.following, include_current=True)
        else:
            self._count()

    def next(self, *, backwards: bool = False, include_current: bool = False) -> None:
        self._count(partial(self._move, backwards=backwards, include_current=include_current))

    def update(self) -> None:
        """Count the matches again after lines or the filter changed, unless counting is still in progress."""
        search = self.search
        is_idle = self._worker is not None and self._worker.is_finished
        if search is not None and is_idle and (not search.is_final or search.total != self._reported_total):
            self._count()

    def _count(self, on_counted: Callable[[LogSearch], None] = lambda _search: None) -> None:
        """Count the matches in a worker, then call ``on_counted`` and post ``MatchChanged``."""
        search = self.search
        if search is None:
            return

        async def work() -> None:
            time_left = TimeBudget()
            while not search.search_blocks(time_left):
                await time_left.renew()
            on_counted(search)
            self._report(search)

        self._worker = run_in_background(
            self._widget, work, "search the log", group=_WORKER_GROUP, exclusive=True
        )

    def _move(self, search: LogSearch, *, backwards: bool, include_current: bool) -> None:
        model, start = self._model, self._model.cursor
        if model.current_match is not None and start is not None:
            # The match may be inside a fold: continue from the match, not from the row of the fold.
            start = (
                model.current_match if model.rows.row_of(model.current_match) == model.cursor_row else start
            )
        if start is not None and include_current is backwards:
            start = LineKey(start.time_ns, start.serial + 1)
        number = search.count_before(start) - (1 if backwards else 0)
        self._wrapped = not 0 <= number < search.total
        model.current_match = search.match(number)
        if model.current_match is not None:
            self._viewport.seek(model.current_match)

    def _report(self, search: LogSearch) -> None:
        self._reported_total, match = search.total, self._model.current_match
        passes = match is not None and self._model.passes(match)
        self._widget.post_message(
            MatchChanged(
                None if match is None else self._model.store.entry(match),
                position=search.count_before(match) + 1 if passes else 0,
                total=search.total,
                wrapped=self._wrapped,
            )
        )
