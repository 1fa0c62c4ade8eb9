"""What a log view shows and where its reader is: everything but the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from api_client.models.logs import LogEntry, LogGap
from tui.analysis.logs.pattern import LogPattern
from tui.analysis.logs.structured import pretty_rows
from tui.widgets.log_view.folds import FoldKinds
from tui.widgets.log_view.layout import Place
from tui.widgets.log_view.line_filter import LineFilter
from tui.widgets.log_view.line_numbers import holds, shifted
from tui.widgets.log_view.renderer import Face, Marks
from tui.widgets.log_view.rows import VisibleRows
from tui.widgets.log_view.search_results import Hits
from tui.widgets.log_view.store import LogStore

Changed = Callable[[bool, bool], None]
"""``changed(end_only, renumbered)``: whether only the end changed, and whether lines have other numbers."""


class LogModel:
    """The rows of one view of a store, and the places that must not move under the reader.

    Places are remembered by the numbers of lines, so that filters, folds and lines that come before
    or after change nothing about them.

    Attributes:
        following: whether the end stays in sight; a fold may move to its newest line then.
        cursor: the reader's line; None while following.
        unseen: rows that came at the end while the reader did not follow.
        hits: the search that goes on, if any.
    """

    def __init__(self, store: LogStore, changed: Changed = lambda _end_only, _renumbered: None) -> None:
        self.store = store
        self.visible = VisibleRows(store)
        self.following = True
        self.cursor: int | None = None
        self.unseen = 0
        self.hits: Hits | None = None
        self._changed = changed
        self._top, self._top_line = store.first, 0
        self._mark: int | None = None  # where the selection began
        self._pretty: set[int] = set()
        store.subscribe(self)

    # --- rows ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.visible)

    def face(self, row: int) -> Face:
        """What a row shows."""
        seq = self.visible.seq(row)
        fold = self.visible.fold(seq)
        if fold is None:
            return Face(seq, seq, pretty=seq in self._pretty)
        shown = seq if fold.is_open else fold.shown
        return Face(seq, shown, fold.kind, len(fold), fold.is_open, shown in self._pretty)

    def marks(self, row: int) -> Marks:
        """What the reader put on a row."""
        seq = self.visible.seq(row)
        low, high = self.selected_rows()
        found = self.hits.found if self.hits is not None else None
        return Marks(
            cursor=self.cursor is not None and self.cursor_row == row,
            selected=low <= row < high and self._mark is not None,
            bookmark=holds(self.store.bookmarks, seq),
            match=found is not None and (found == seq or self.visible.row_of(found) == row),
        )

    # --- places -------------------------------------------------------------------------------

    @property
    def top(self) -> Place:
        """The first line on the screen."""
        if not len(self.visible):
            return Place()
        row = min(self.visible.row_of(self._top), len(self.visible) - 1)
        return Place(row, self._top_line if self.visible.seq(row) == self._top else 0)

    def go(self, place: Place) -> None:
        """Take the reader to a place."""
        if place.row < len(self.visible):
            self._top, self._top_line = self.visible.seq(place.row), place.line

    @property
    def cursor_row(self) -> int | None:
        """The row of the reader's line."""
        if self.cursor is None or not len(self.visible):
            return None
        return min(self.visible.row_of(self.cursor), len(self.visible) - 1)

    def set_cursor(self, row: int | None, *, extend: bool = False) -> None:
        """Make a row the reader's own; with ``extend``, the rows from the former one on are selected."""
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
        """Whether rows are selected beyond the reader's own."""
        return self._mark is not None

    def clear_selection(self) -> None:
        """Select nothing but the reader's line."""
        self._mark = None

    def selected_rows(self) -> tuple[int, int]:
        """First row and one more than the last row of the selection; the reader's own when there is none."""
        row = self.cursor_row
        if row is None:
            return 0, 0
        other = row if self._mark is None else min(self.visible.row_of(self._mark), len(self.visible) - 1)
        return min(row, other), max(row, other) + 1

    def selected_seqs(self) -> list[int]:
        """The numbers of the selected lines; of a folded traceback all of them."""
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
        """All entries in time order, or those that pass the filter; folded ones among them."""
        if filtered:
            return self.store.entries(self.visible.all_passing())
        return self.store.entries(range(self.store.first, self.store.end))

    # --- choosing -----------------------------------------------------------------------------

    def set_filter(self, wanted: LineFilter) -> None:
        """Show other lines from now on; call ``build`` until it says that all are done."""
        self.visible.set_filter(wanted)
        self._begin_again()

    def set_kinds(self, kinds: FoldKinds) -> None:
        """Fold other lines from now on; call ``build`` until it says that all are done."""
        self.visible.set_kinds(kinds)
        self._begin_again()

    def _begin_again(self) -> None:
        self.unseen = 0
        if self.hits is not None:
            self.hits.recount()

    def build(self, goes_on: Callable[[], bool]) -> bool:
        """Filter and fold older lines while ``goes_on`` says so; returns whether all are done."""
        return self.visible.build(goes_on)

    def search(self, pattern: LogPattern | None) -> None:
        """Look for something else from now on; None for nothing."""
        self.hits = Hits(self.store, self.visible, pattern) if pattern else None

    def reveal(self, seq: int) -> int:
        """Open the fold that hides a line; returns the line's row."""
        row = self.visible.row_of(seq)
        if row < len(self.visible) and self.visible.seq(row) != seq:
            fold = self.visible.fold_around(seq)
            if fold is not None and fold.shown != seq:
                self.visible.set_open(fold, True)
                row = self.visible.row_of(seq)
        return min(row, max(0, len(self.visible) - 1))

    def opens(self, row: int) -> bool:
        """Whether there is anything to open at a row: a fold, or an object in the message."""
        face = self.face(row)
        if self.visible.fold_around(face.seq) is not None or face.pretty:
            return True
        entry = self.store.entry(face.shown)
        return not isinstance(entry, LogGap) and pretty_rows(entry.message) is not None

    def toggle_fold(self, row: int) -> bool:
        """Open or close the fold of a row, else spread its object; returns whether anything changed."""
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

    # --- what becomes of the store ------------------------------------------------------------

    def lines_appended(self, low: int, high: int) -> None:
        """Take newer lines."""
        rows, outcome = self.visible.appended(low, high, may_move=self.following)
        if self.hits is not None:
            self.hits.appended(low, high)
            if self.visible.filter.context_lines:
                self.hits.recount()  # lines of before may be context now
        if not self.following:
            self.unseen += rows
        folded = outcome is not None and bool(outcome.gone or outcome.changed)
        self._changed(not folded and not self.visible.filter.context_lines, False)

    def lines_prepended(self, low: int, high: int) -> None:
        """Older lines wait to be built."""
        self.visible.prepended(high)
        if self.hits is not None and self.visible.filter.context_lines:
            self.hits.recount()
        self._changed(False, False)

    def lines_inserted(self, places: Sequence[int]) -> None:
        """Count on."""
        self.visible.inserted(places)
        self._renumber(lambda seq: shifted(seq, places))
        if self.hits is not None:
            self.hits.inserted(places)
            if not self.visible.is_complete:
                self.hits.recount()  # the lines around are filtered anew
        self._changed(False, True)

    def line_removed(self, seq: int) -> None:
        """Count back."""
        self.visible.removed(seq)
        self._renumber(lambda one: one - (one > seq))
        if self.hits is not None:
            self.hits.removed(seq)
            if not self.visible.is_complete:
                self.hits.recount()
        self._changed(False, True)

    def lines_dropped(self, low: int) -> None:
        """Forget the oldest."""
        self.visible.dropped(low)
        self._renumber(lambda one: max(one, low))
        if self.hits is not None:
            self.hits.dropped(low)
        self._changed(False, False)

    def store_cleared(self) -> None:
        """Forget everything; the filter stays."""
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
