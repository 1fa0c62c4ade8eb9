"""The search of a log view: highlight a pattern, go from match to match, count matches as lines arrive."""

from __future__ import annotations

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
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.search import LogSearch, TimeBudget
from tui.widgets.log_view.viewport import Viewport

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
        self._reported_total = 0
        self._worker: Worker[None] | None = None

    def find(self, pattern: LogPattern | None, *, backwards: bool) -> None:
        """Go to the nearest match of a pattern; None ends the search."""
        self._model.search = LogSearch(self._model.rows, pattern) if pattern else None
        # While following, the newest match is the nearest one.
        self.next(backwards=backwards or self._model.following, include_own=True)

    def next(self, *, backwards: bool = False, include_own: bool = False) -> None:
        model, search, start = self._model, self._model.search, self._model.cursor
        if search is None:
            self._widget.workers.cancel_group(self._widget, _WORKERS)
            return
        if search.match is not None and start is not None:
            # The match may be inside a fold, such as a progress bar: continue from the match, not from the
            # row.
            start = search.match if model.rows.row_of(search.match) == model.cursor_row else start
        self._run(partial(self._find, search, start, backwards=backwards, include_own=include_own))

    async def _find(
        self, search: LogSearch, start: LineKey | None, *, backwards: bool, include_own: bool
    ) -> None:
        time_left = TimeBudget(self._monotonic_s)
        line = await search.find(start, time_left, backwards=backwards, include_own=include_own)
        if line is not None:
            self._viewport.seek(line)
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
        search = self._model.search
        is_idle = self._worker is not None and self._worker.is_finished
        if search is not None and is_idle and (not search.is_final or search.total != self._reported_total):
            self._run(partial(self._count, search))

    def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._worker = run_in_background(self._widget, work, "search the log", group=_WORKERS, exclusive=True)

    def _report(self, search: LogSearch) -> None:
        self._reported_total = search.total
        self._widget.post_message(
            MatchChanged(
                search.pattern,
                None if search.match is None else self._model.store.entry(search.match),
                position=search.position,
                total=search.total,
                total_is_final=search.is_final,
                wrapped=search.wrapped,
            )
        )
