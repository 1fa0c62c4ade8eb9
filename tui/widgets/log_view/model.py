"""State of a log view that does not depend on the screen: rows, scroll position, cursor and selection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from api_client.models.logs import LogEntry, LogGap
from tui.analysis.logs.structured import pretty_rows
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.renderer import RowFlags, RowKey
from tui.widgets.log_view.rows import LogRows
from tui.widgets.log_view.store import LogStore

_BEFORE_ALL = LineKey(-(1 << 63), 0)


@dataclass(frozen=True, slots=True, order=True)
class ScrollPosition:
    """A screen line, as the number of a row and the number of a screen line within the row.

    Counting all screen lines instead would need the height of every row, so the layout of the whole log.
    """

    row: int = 0
    line: int = 0


class LogModel:
    """The rows of a log view, and its positions: cursor, selection, top of the screen, search match.

    A position is the key of a line, so it stays on its line when rows are filtered, folded or added.
    """

    def __init__(
        self,
        store: LogStore,
        options: LogOptions | None = None,
        on_change: Callable[[], object] = lambda: None,
    ) -> None:
        self.store = store
        self.rows = LogRows(store, options or LogOptions())
        self.cursor: LineKey | None = None
        self.current_match: LineKey | None = None
        """The current match of the search."""
        self._on_change = on_change
        self._following = True
        self._last_seen = _BEFORE_ALL
        """The newest line when following stopped; lines after it count as unseen."""
        self._top, self._top_line = _BEFORE_ALL, 0
        self.selection_start: LineKey | None = None
        """Where the selection begins (it ends at the cursor); None if nothing is selected."""
        self._expanded: set[LineKey] = set()
        """Lines whose JSON object or Python dict is shown over several rows."""
        store.subscribe(self)

    def lines_changed(self) -> None:
        """Update rows and positions after the store changed; the rows of new blocks need ``rows.build``."""
        self.rows.sync(may_move=self._following)
        self.cursor = self._existing_key(self.cursor)
        self.selection_start = self._existing_key(self.selection_start)
        self.current_match = self._existing_key(self.current_match)
        if not len(self.store):
            self._last_seen = _BEFORE_ALL
        self._on_change()

    def _existing_key(self, key: LineKey | None) -> LineKey | None:
        """Return a key; if its line was dropped or its gap was filled, the key of the next line."""
        if key is None:
            return None
        block_number, index = self.store.position(key)
        return None if block_number == len(self.store.blocks) else self.store.blocks[block_number].key(index)

    # Options

    @property
    def options(self) -> LogOptions:
        return self.rows.options

    @options.setter
    def options(self, options: LogOptions) -> None:
        """Change filters, folds and display; afterwards, call ``rows.build`` until it returns True."""
        previous_options = self.rows.options
        if (options.filters, options.folds) != (previous_options.filters, previous_options.folds):
            self.rows.set_options(options)
        self.rows.options = options

    @property
    def following(self) -> bool:
        """True if the view stays at the end of the log; folds may then move to their newest line."""
        return self._following

    @following.setter
    def following(self, following: bool) -> None:
        self._following = following
        self._last_seen = self.store.blocks[-1].last_key if self.store.blocks else _BEFORE_ALL

    @property
    def unseen(self) -> int:
        """Number of rows that were added at the end since following stopped; 0 while following."""
        if self._following:
            return 0
        first_unseen = LineKey(self._last_seen.time_ns, self._last_seen.serial + 1)
        return len(self) - self.rows.count_before(first_unseen)

    @property
    def passing_count(self) -> int:
        """Number of lines that pass the filter, folded or not."""
        return sum(len(block_rows.passing) for block_rows in self.rows.all_block_rows)

    # Rows

    def __len__(self) -> int:
        return len(self.rows)

    def row_key(self, row: int) -> RowKey:
        block_rows, index = self.rows.locate(row)
        key, fold = block_rows.block.key(index), block_rows.fold_at(index)
        text_key = key if fold is None or fold.is_open else block_rows.key(fold.text_serial)
        return RowKey(key, text_key, fold, text_key in self._expanded)

    def row_flags(self, row: int) -> RowFlags:
        low, high = self.selected_rows()
        return RowFlags(
            is_cursor=self.cursor is not None and self.cursor_row == row,
            is_selected=low <= row < high and self.selection_start is not None,
            is_bookmarked=bool(self.store.bookmarks) and self.rows.key(row) in self.store.bookmarks,
            is_match=self.current_match is not None and self.rows.row_of(self.current_match) == row,
        )

    # Positions

    @property
    def top(self) -> ScrollPosition:
        if not len(self):
            return ScrollPosition()
        row = min(self.rows.row_of(self._top), len(self) - 1)
        return ScrollPosition(row, self._top_line if self.rows.key(row) == self._top else 0)

    def set_top(self, position: ScrollPosition) -> None:
        if position.row < len(self):
            self._top, self._top_line = self.rows.key(position.row), position.line

    def put_at_time(self, time_ns: int) -> None:
        """Put the cursor and the top at the first line at or after a time, or else at the last line.

        The line may be in a block whose rows are not built yet.
        """
        key = self._existing_key(LineKey(time_ns, self.store.first_serial))
        if key is None and self.store.blocks:
            key = self.store.blocks[-1].last_key
        self.selection_start = None
        if key is not None:
            self.cursor, self._top, self._top_line = key, key, 0

    @property
    def cursor_row(self) -> int | None:
        """The row of the cursor; None while following."""
        if self.cursor is None or not len(self):
            return None
        return min(self.rows.row_of(self.cursor), len(self) - 1)

    def set_cursor(self, row: int | None, *, extend: bool = False) -> None:
        """Move the cursor to a row; with ``extend``, extend the selection to it. None removes the cursor."""
        if row is None or not len(self):
            self.cursor = self.selection_start = None
            return
        self.selection_start = (self.selection_start or self.cursor) if extend else None
        self.cursor = self.rows.key(max(0, min(row, len(self) - 1)))

    @property
    def current_row(self) -> int | None:
        """The row that keys act on: the cursor's row; while following, the last row. None without rows."""
        row = self.cursor_row
        return len(self) - 1 if row is None and len(self) else row

    @property
    def cursor_entry(self) -> LogEntry | None:
        """The entry in the current row; None without rows."""
        row = self.current_row
        return None if row is None else self.store.entry(self.row_key(row).text_key)

    def selected_rows(self) -> tuple[int, int]:
        """Return the first selected row, and one past the last; without a selection, only the current row."""
        row = self.current_row
        if row is None:
            return 0, 0
        start = self.selection_start
        start_row = row if start is None else min(self.rows.row_of(start), len(self) - 1)
        return min(row, start_row), max(row, start_row) + 1

    def selected_entries(self) -> list[LogEntry]:
        """Return the entries of the selected rows, or of the current row; a traceback with all its lines."""
        keys: set[LineKey] = set()
        for row in range(*self.selected_rows()):
            block_rows, index = self.rows.locate(row)
            fold = block_rows.fold_at(index)
            if fold is not None and fold.kind == "traceback" and not fold.is_open:
                keys.update(map(block_rows.key, fold.serials))
            else:
                keys.add(self.row_key(row).text_key)
        return [self.store.entry(key) for key in sorted(keys)]

    def entries(self, *, filtered: bool) -> Iterator[LogEntry]:
        """Yield all entries in time order, folded or not; if ``filtered``, only entries that pass the filter.

        If lines arrive during the iteration, entries may be missing: consume the iterator without yielding to
        the event loop, or only for a log that has ended.
        """
        if filtered:
            for block_rows in list(self.rows.all_block_rows):
                yield from self.store.entries(block_rows.block, block_rows.passing)
        else:
            for block in list(self.store.blocks):
                yield from self.store.entries(block, range(len(block)))

    # Going to lines

    def passes(self, key: LineKey) -> bool:
        """Return True if a line passes the filter, folded or not."""
        return self.rows.find(key) is not None

    def reveal(self, key: LineKey) -> int:
        """Open the fold that hides a line; return the line's row."""
        location = self.rows.find(key)
        if location is not None:
            block_rows, index = location
            fold = block_rows.fold_of(index)
            if fold is not None and key.serial not in (fold.anchor, fold.text_serial):
                self.rows.set_open(block_rows, fold, True)
        return min(self.rows.row_of(key), max(0, len(self) - 1))

    # Opening rows

    def toggle_fold(self, row: int) -> bool:
        """Open or close a row's fold, else the object in its message; return False if the row has neither."""
        block_rows, index = self.rows.locate(row)
        fold, text_key = block_rows.fold_of(index), self.row_key(row).text_key
        if fold is not None:
            self.rows.set_open(block_rows, fold, not fold.is_open)
            return True
        entry = self.store.entry(text_key)
        has_object = not isinstance(entry, LogGap) and pretty_rows(entry.message) is not None
        if has_object:
            self._expanded ^= {text_key}
        return has_object
