"""The search of a log view: highlight a pattern, go from match to match, count matches as lines arrive."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual.message import Message
from textual.widget import Widget

from api_client.models.logs import LogEntry
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.background import run_in_background
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.search import LogSearch
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
        self._reported_total: int | None = None

    def find(self, pattern: LogPattern | None, *, backwards: bool) -> None:
        """Go to the nearest match of a pattern; None ends the search."""
        self._model.search = LogSearch(self._model.rows, pattern) if pattern else None
        self._reported_total = None
        # While following, the newest match is the nearest one.
        self.next(backwards=backwards or self._model.following, include_own=True)

    def next(self, *, backwards: bool = False, include_own: bool = False) -> None:
        model, search, start = self._model, self._model.search, self._model.cursor
        if search is None:
            self._widget.workers.cancel_group(self._widget, _WORKERS)
            return
        if search.found is not None and start is not None:
            # The match may be inside a fold, such as a progress bar: continue from the match, not from the
            # row.
            start = search.found if model.rows.row_of(search.found) == model.cursor_row else start
        search.begin(start, backwards=backwards, include_own=include_own)
        self._run(partial(self._find, search))

    async def _find(self, search: LogSearch) -> None:
        line = await search.find(self._monotonic_s)
        if line is not None:
            self._viewport.seek(line)
        if not search.is_final:
            self._report()
        await search.count_all(self._monotonic_s, self._report)

    def update(self) -> None:
        """Count again after the lines or the filter changed, unless the search still goes on."""
        search = self._model.search
        if search is None or self._reported_total is None:
            return
        if search.is_final:
            if search.total != self._reported_total:
                self._report()
        elif not any(
            worker.group == _WORKERS and worker.node is self._widget and not worker.is_finished
            for worker in self._widget.workers
        ):
            self._run(partial(search.count_all, self._monotonic_s, self._report))

    def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        run_in_background(self._widget, work, "search the log", group=_WORKERS, exclusive=True)

    def _report(self) -> None:
        search = self._model.search
        if search is None:
            return
        self._reported_total = search.total
        self._widget.post_message(
            MatchChanged(
                search.pattern,
                None if search.found is None else self._model.store.entry(search.found),
                position=search.position,
                total=search.total,
                total_is_final=search.is_final,
                wrapped=search.wrapped,
            )
        )
