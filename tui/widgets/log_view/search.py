"""Navigate a log: filters, searches, errors, times, bookmarks."""

from __future__ import annotations

from api_client.models.logs import NS_PER_S, LogEntry
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.layout import ScrollPosition, TimeBudget
from tui.widgets.log_view.line_filter import LineFilter
from tui.widgets.log_view.messages import MatchChanged
from tui.widgets.log_view.reader import LogNavigation
from tui.widgets.log_view.search_results import SearchResults

COUNT_REPORT_S = 0.1
"""Minimum interval between ``MatchChanged`` messages while matches are counted."""


class LogSearch(LogNavigation):
    """A log view with search and navigation. Work that may take long is done in slices."""

    _reported_match_count: tuple[int, int, bool] | None = None

    # --- filter -------------------------------------------------------------------------------

    @property
    def filter(self) -> LineFilter:
        return self._model.visible.filter

    def set_filter(self, wanted: LineFilter) -> None:
        """Show only lines that pass the filter. The newest appear first; the cursor stays on its line."""
        if wanted != self.filter:
            self._keep_line()
            self._model.set_filter(wanted)
            self._build()
            if self._model.hits is not None:
                self._start_count()

    # --- search -------------------------------------------------------------------------------

    def find(self, pattern: LogPattern | None, *, backwards: bool = False) -> None:
        """Highlight a pattern and go to the nearest match; None ends the search.

        The search wraps around the ends. ``MatchChanged`` is posted when the nearest match is known, and
        again as matches are counted.
        """
        self._pattern = pattern or None
        self._reported_match_count = None
        self._model.search(self._pattern)
        self._lay_out()
        self._paint()
        # While following, the newest match is the nearest one.
        self._search(backwards=backwards or self.follow, include_own=True)

    def action_next_match(self) -> None:
        self._search(backwards=False, include_own=False)

    def action_previous_match(self) -> None:
        self._search(backwards=True, include_own=False)

    def _search(self, *, backwards: bool, include_own: bool) -> None:
        hits, model = self._model.hits, self._model
        if hits is None:
            self.workers.cancel_group(self, "search")
            return
        start = model.store.end - 1 if model.cursor is None else model.cursor
        if hits.found is not None and model.cursor is not None:
            # The match may be inside a fold, such as a progress bar: continue from the match, not from the
            # row.
            start = hits.found if model.visible.row_of(hits.found) == model.cursor_row else start
        if not include_own:
            start += -1 if backwards else 1
        hits.begin(start, backwards=backwards)
        self.run_worker(self._run_search(hits), group="search", description="search the log", exclusive=True)

    def _start_count(self) -> None:
        hits = self._model.hits
        if hits is not None and not any(
            worker.group == "search" and worker.node is self and not worker.is_finished
            for worker in self.workers
        ):
            self.run_worker(self._count(hits), group="search", description="count matches", exclusive=True)

    async def _run_search(self, hits: SearchResults) -> None:
        time_left = TimeBudget(self._monotonic_s)
        # The rows that pass the filter may still be incomplete.
        while not (self._model.visible.is_complete and hits.find_next(time_left)):
            await time_left.renew()
        if hits.found is not None:
            row = self._model.reveal(hits.found)
            self._page = None
            self._seek_row(row)
        if not (self._model.visible.is_complete and hits.count(time_left)):
            self._report_match_count(hits)
        await self._count(hits)

    async def _count(self, hits: SearchResults) -> None:
        time_left = TimeBudget(self._monotonic_s)
        told_s = self._monotonic_s()
        while not (self._model.visible.is_complete and hits.count(time_left)):
            await time_left.renew()
            if self._monotonic_s() - told_s > COUNT_REPORT_S:
                told_s = self._monotonic_s()
                self._report_match_count(hits)
        self._report_match_count(hits)

    def _report_match_count(self, hits: SearchResults) -> None:
        found = hits.found
        position = 0 if found is None else hits.position(found)
        self._reported_match_count = (hits.total, position, hits.is_final)
        self.post_message(
            MatchChanged(
                self,
                hits.pattern,
                None if found is None else self._model.store.entry(found),
                position=position,
                total=hits.total,
                total_is_final=hits.is_final,
                wrapped=hits.wrapped,
            )
        )

    def _post_changes(self) -> None:
        super()._post_changes()
        hits = self._model.hits
        if hits is None or self._reported_match_count is None:
            return
        if not hits.is_final:
            self._start_count()
        elif self._reported_match_count[0] != hits.total:
            self._report_match_count(hits)

    # --- errors -------------------------------------------------------------------------------

    @property
    def first_error(self) -> LogEntry | None:
        """The oldest error line of all nodes, regardless of the filter."""
        seq = self._model.store.first_error
        return None if seq is None else self._model.store.entry(seq)

    def go_to_first_error(self) -> bool:
        """Go to the oldest error line; return False if there is none or the filter hides it."""
        seq = self._model.store.first_error
        return seq is not None and self._go_to(seq)

    def next_error(self, *, backwards: bool = False) -> bool:
        """Go to the next (or previous) error line; return False if there is none."""
        store, visible = self._model.store, self._model.visible
        seq: int | None = store.end if self._model.cursor is None else self._model.cursor
        while seq is not None:
            seq = store.error_before(seq) if backwards else store.error_after(seq + 1)
            # A folded traceback has several error lines but is one row.
            if seq is not None and visible.passes(seq) and visible.row_of(seq) != self._model.cursor_row:
                return self._go_to(seq)
        return False

    def _go_to(self, seq: int) -> bool:
        if not self._model.visible.passes(seq):
            return False
        row = self._model.reveal(seq)
        self._page = None
        self._seek_row(row)
        return True

    # --- times --------------------------------------------------------------------------------

    def go_to_time(self, time_ns: int) -> None:
        """Go to the first row at or after a time (epoch nanoseconds), else to the last row."""
        model = self._model
        row = min(model.visible.index_at(time_ns), max(0, len(model) - 1))
        self.follow = False  # before setting the cursor, because leaving follow mode moves it to the last row
        model.set_cursor(row)
        self._read_at(ScrollPosition(row), keep_cursor=True)

    def jump(self, seconds: float) -> None:
        """Move the cursor forward in time, or back if `seconds` is negative."""
        row, model = self._own_row(), self._model
        if row is None:
            return
        store, visible = model.store, model.visible
        target_ns = store.stamp(visible.seq(row)) + int(seconds * NS_PER_S)
        target = visible.index_at(target_ns)
        if seconds < 0:
            target = min(target, max(0, row - 1))
        elif target >= len(model):
            self.follow = True
            return
        self._seek_row(target)
        if target == 0 and seconds < 0:
            self._ask_older()

    # --- bookmarks ----------------------------------------------------------------------------

    def toggle_bookmark(self) -> bool | None:
        """Toggle the bookmark on the cursor line; return True if it is now set, None if there is no line."""
        row = self._own_row()
        if row is None:
            return None
        marked = self._model.store.toggle_bookmark(self._model.visible.seq(row))
        self._paint()
        return marked

    def go_to_bookmark(self, *, backwards: bool = False) -> bool:
        """Go to the next (or previous) bookmark, wrapping around; return False if there is none."""
        visible, cursor = self._model.visible, self._model.cursor
        seqs = [seq for seq in self._model.store.bookmarks if visible.passes(seq)]
        if not seqs:
            return False
        if cursor is None:
            return self._go_to(seqs[-1])
        if backwards:
            return self._go_to(next((seq for seq in reversed(seqs) if seq < cursor), seqs[-1]))
        return self._go_to(next((seq for seq in seqs if seq > cursor), seqs[0]))
