"""State of a log view: rows, position, cursor and selection; everything but the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from api_client.models.logs import LogEntry, LogGap
from tui.analysis.logs.pattern import LogPattern
from tui.analysis.logs.structured import pretty_rows
from tui.widgets.log_view.layout import ScrollPosition
from tui.widgets.log_view.line_numbers import holds, shifted
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.renderer import RowFlags, RowKey
from tui.widgets.log_view.rows import LogRows
from tui.widgets.log_view.search_results import SearchResults
from tui.widgets.log_view.store import LogStore

Changed = Callable[[bool, bool], None]
"""``changed(end_only, renumbered)``: True if only the end changed; True if line numbers changed."""


class LogModel:
    """The rows of a view of a store, and the positions that must not move under the user.

    Positions are stored as line numbers, so that filters, folds and lines added before or after don't
    affect them.

    Attributes:
        following: True if the view stays at the end; a fold may then move to its newest line.
        cursor: Number of the cursor line; None while following.
        unseen: Rows added at the end while not following.
        hits: The current search, if any.
    """

    def __init__(
        self,
        store: LogStore,
        options: LogOptions | None = None,
        changed: Changed = lambda _end_only, _renumbered: None,
    ) -> None:
        self.store = store
        self.options = options or LogOptions()
        self.visible = LogRows(store, self.options)
        self.following = True
        self.cursor: int | None = None
        self.unseen = 0
        self.hits: SearchResults | None = None
        self._changed = changed
        self._top, self._top_line = store.first, 0
        self._mark: int | None = None  # start of the selection
        self._pretty: set[int] = set()
        store.subscribe(self)

    # --- rows ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.visible)

    def face(self, row: int) -> RowKey:
        seq = self.visible.seq(row)
        fold = self.visible.fold(seq)
        if fold is None:
            return RowKey(seq, seq, pretty=seq in self._pretty)
        shown = seq if fold.is_open else fold.shown
        return RowKey(seq, shown, fold.kind, len(fold), fold.is_open, shown in self._pretty)

    def marks(self, row: int) -> RowFlags:
        seq = self.visible.seq(row)
        low, high = self.selected_rows()
        found = self.hits.found if self.hits is not None else None
        return RowFlags(
            cursor=self.cursor is not None and self.cursor_row == row,
            selected=low <= row < high and self._mark is not None,
            bookmark=holds(self.store.bookmarks, seq),
            match=found is not None and (found == seq or self.visible.row_of(found) == row),
        )

    # --- places -------------------------------------------------------------------------------

    @property
    def top(self) -> ScrollPosition:
        if not len(self.visible):
            return ScrollPosition()
        row = min(self.visible.row_of(self._top), len(self.visible) - 1)
        return ScrollPosition(row, self._top_line if self.visible.seq(row) == self._top else 0)

    def go(self, place: ScrollPosition) -> None:
        if place.row < len(self.visible):
            self._top, self._top_line = self.visible.seq(place.row), place.line

    @property
    def cursor_row(self) -> int | None:
        """The row of the cursor line; None while following."""
        if self.cursor is None or not len(self.visible):
            return None
        return min(self.visible.row_of(self.cursor), len(self.visible) - 1)

    def set_cursor(self, row: int | None, *, extend: bool = False) -> None:
        """Move the cursor to a row; with ``extend``, select from the previous cursor position on."""
        if row is None or not len(self.visible):
            self.cursor = self._mark = None
            return
        if not extend:
            self._mark = None
        elif self._mark is None:
            self._mark = self.cursor
        self.cursor = self.visible.seq(max(0, min(row, len(self.visible) - 1)))

    @property
    def has_selection(self) -> bool:
        return self._mark is not None

    def clear_selection(self) -> None:
        self._mark = None

    def selected_rows(self) -> tuple[int, int]:
        """Return the first and one past the last selected row; the cursor row if nothing is selected."""
        row = self.cursor_row
        if row is None:
            return 0, 0
        other = row if self._mark is None else min(self.visible.row_of(self._mark), len(self.visible) - 1)
        return min(row, other), max(row, other) + 1

    def selected_seqs(self) -> list[int]:
        """Return the numbers of the selected lines, including all lines of a folded traceback."""
        seqs: list[int] = []
        for row in range(*self.selected_rows()):
            face = self.face(row)
            fold = self.visible.fold(face.seq)
            if fold is not None and fold.kind == "traceback" and not fold.is_open:
                seqs += [face.seq, *fold.hidden]
            else:
                seqs.append(face.shown)
        return sorted(set(seqs))

    def entries(self, *, filtered: bool) -> Iterator[LogEntry]:
        """Return all entries in time order, or those that pass the filter, including folded ones."""
        if filtered:
            return self.store.entries(self.visible.all_passing())
        return self.store.entries(range(self.store.first, self.store.end))

    # --- view settings ------------------------------------------------------------------------

    def set_options(self, options: LogOptions) -> None:
        """Change what is shown; if lines must be filtered or folded again, call ``build`` until True."""
        before, self.options = self.options, options
        if (options.filters, options.folds) != (before.filters, before.folds):
            self.visible.set_options(options)
            self.unseen = 0
            if self.hits is not None:
                self.hits.recount()

    def build(self, should_continue: Callable[[], bool]) -> bool:
        """Filter and fold older lines while ``should_continue`` returns True; return True if all are done."""
        return self.visible.build(should_continue)

    def search(self, pattern: LogPattern | None) -> None:
        """Start a search; None ends it."""
        self.hits = SearchResults(self.store, self.visible, pattern) if pattern else None

    def next_error(self, *, backwards: bool) -> int | None:
        """Return the next (or previous) error line that is shown in another row than the cursor's."""
        store, seq = self.store, self.cursor
        seq = store.end if seq is None else seq
        while seq is not None:
            seq = store.error_before(seq) if backwards else store.error_after(seq + 1)
            # A folded traceback has several error lines but is one row.
            if seq is not None and self.visible.passes(seq) and self.visible.row_of(seq) != self.cursor_row:
                return seq
        return None

    def next_bookmark(self, *, backwards: bool) -> int | None:
        """Return the next (or previous) bookmark that passes the filter, wrapping around."""
        seqs = [seq for seq in self.store.bookmarks if self.visible.passes(seq)]
        if not seqs:
            return None
        cursor = self.cursor
        if cursor is None:
            return seqs[-1]
        if backwards:
            return next((seq for seq in reversed(seqs) if seq < cursor), seqs[-1])
        return next((seq for seq in seqs if seq > cursor), seqs[0])

    def reveal(self, seq: int) -> int:
        """Open the fold that hides a line; return the line's row."""
        row = self.visible.row_of(seq)
        if row < len(self.visible) and self.visible.seq(row) != seq:
            fold = self.visible.fold_around(seq)
            if fold is not None and fold.shown != seq:
                self.visible.set_open(fold, True)
                row = self.visible.row_of(seq)
        return min(row, max(0, len(self.visible) - 1))

    def opens(self, row: int) -> bool:
        """Return True if a row can be opened: a fold, or an object in the message."""
        face = self.face(row)
        if self.visible.fold_around(face.seq) is not None or face.pretty:
            return True
        entry = self.store.entry(face.shown)
        return not isinstance(entry, LogGap) and pretty_rows(entry.message) is not None

    def toggle_fold(self, row: int) -> bool:
        """Toggle the fold of a row, or expand its object; return True if anything changed."""
        face = self.face(row)
        fold = self.visible.fold_around(face.seq)
        if not self.opens(row):
            return False
        if fold is not None:
            if fold.is_open and self.cursor is not None and self.cursor in fold:
                self.cursor = fold.anchor
            self.visible.set_open(fold, not fold.is_open)
            return True
        self._pretty ^= {face.shown}
        return True

    # --- store changes ------------------------------------------------------------------------

    def lines_appended(self, low: int, high: int) -> None:
        rows, outcome = self.visible.appended(low, high, may_move=self.following)
        if self.hits is not None:
            self.hits.appended(low, high)
            if self.options.context_lines:
                self.hits.recount()  # earlier lines may have become context
        if not self.following:
            self.unseen += rows
        folded = outcome is not None and bool(outcome.gone or outcome.changed)
        self._changed(not folded and not self.options.context_lines, False)

    def lines_prepended(self, low: int, high: int) -> None:
        self.visible.prepended(high)
        if self.hits is not None and self.options.context_lines:
            self.hits.recount()
        self._changed(False, False)

    def lines_inserted(self, places: Sequence[int]) -> None:
        self.visible.inserted(places)
        self._renumber(lambda seq: shifted(seq, places))
        if self.hits is not None:
            self.hits.inserted(places)
            if not self.visible.is_complete:
                self.hits.recount()  # the surrounding lines are filtered again
        self._changed(False, True)

    def line_removed(self, seq: int) -> None:
        self.visible.removed(seq)
        self._renumber(lambda one: one - (one > seq))
        if self.hits is not None:
            self.hits.removed(seq)
            if not self.visible.is_complete:
                self.hits.recount()
        self._changed(False, True)

    def lines_dropped(self, low: int) -> None:
        self.visible.dropped(low)
        self._renumber(lambda one: max(one, low))
        if self.hits is not None:
            self.hits.dropped(low)
        self._changed(False, False)

    def store_cleared(self) -> None:
        self.visible.cleared()
        self._top, self._top_line, self.unseen = self.store.first, 0, 0
        self.cursor = self._mark = None
        self._pretty.clear()
        if self.hits is not None:
            self.search(self.hits.pattern)
        self._changed(False, True)

    def _renumber(self, number: Callable[[int], int]) -> None:
        self._top = number(self._top)
        self.cursor = None if self.cursor is None else number(self.cursor)
        self._mark = None if self._mark is None else number(self._mark)
        self._pretty = set(map(number, self._pretty))
