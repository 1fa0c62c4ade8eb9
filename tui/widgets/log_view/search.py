"""Run searches of a log in slices: find the nearest match at once, then count the rest."""

from __future__ import annotations

from collections.abc import Callable

from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.layout import TimeBudget
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.search_results import SearchResults

COUNT_REPORT_S = 0.1
"""Minimum interval between reports while matches are counted."""


class LogSearch:
    """The search of one view; `report` is called with its state as matches are found and counted."""

    def __init__(
        self, model: LogModel, report: Callable[[SearchResults], object], monotonic_s: Callable[[], float]
    ) -> None:
        self._model = model
        self._report = report
        self._monotonic_s = monotonic_s
        self._reported_total: int | None = None

    def begin(self, pattern: LogPattern | None) -> None:
        """Start a search; None ends it."""
        self._reported_total = None
        self._model.search(pattern)

    def aim(self, *, backwards: bool, include_own: bool) -> bool:
        """Search for the nearest match from the cursor on; return False if nothing is searched."""
        hits, model = self._model.hits, self._model
        if hits is None:
            return False
        start = model.store.end - 1 if model.cursor is None else model.cursor
        if hits.found is not None and model.cursor is not None:
            # The match may be inside a fold, such as a progress bar: continue from the match, not from the
            # row.
            start = hits.found if model.visible.row_of(hits.found) == model.cursor_row else start
        if not include_own:
            start += -1 if backwards else 1
        hits.begin(start, backwards=backwards)
        return True

    async def run(self, show: Callable[[int], object]) -> None:
        """Find the nearest match, `show` its row, then count all matches."""
        hits, time_left = self._model.hits, TimeBudget(self._monotonic_s)
        if hits is None:
            return
        # The rows that pass the filter may still be incomplete.
        while not (self._model.visible.is_complete and hits.find_next(time_left)):
            await time_left.renew()
        if hits.found is not None:
            show(hits.found)
        if not (self._model.visible.is_complete and hits.count(time_left)):
            self._tell(hits)
        await self.count()

    async def count(self) -> None:
        """Count all matches, reporting now and then."""
        hits, time_left = self._model.hits, TimeBudget(self._monotonic_s)
        reported_s = self._monotonic_s()
        while hits is not None and not (self._model.visible.is_complete and hits.count(time_left)):
            await time_left.renew()
            if self._monotonic_s() - reported_s > COUNT_REPORT_S:
                reported_s = self._monotonic_s()
                self._tell(hits)
        if hits is not None:
            self._tell(hits)

    def _tell(self, hits: SearchResults) -> None:
        self._reported_total = hits.total
        self._report(hits)

    def lines_changed(self) -> bool:
        """Report the matches if their number changed; return True if some lines must still be counted."""
        hits = self._model.hits
        if hits is None or self._reported_total is None:
            return False
        if hits.is_final and self._reported_total != hits.total:
            self._tell(hits)
        return not hits.is_final
