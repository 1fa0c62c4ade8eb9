"""State of a log view: rows, position, cursor and selection; everything but the screen."""

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
    """A screen line: index of a row, and the line within it.

    With it, scrolling only lays out visible rows, and no table of all row heights is needed.
    """

    row: int = 0
    line: int = 0


class LogModel:
    """The rows of a view of a store, and positions such as the cursor, which stay on their lines.

    Positions are keys of lines, so that filters, folds and lines added anywhere don't affect them.
    """

    def __init__(
        self,
        store: LogStore,
        options: LogOptions | None = None,
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        self.store = store
        self.rows = LogRows(store, options or LogOptions())
        self.cursor: LineKey | None = None
        self.match: LineKey | None = None  # of a search
        self._changed = changed
        self._following = True
        self._last_seen = _BEFORE_ALL
        self._top, self._top_line = _BEFORE_ALL, 0
        self.mark: LineKey | None = None  # start of the selection
        self._pretty: set[LineKey] = set()
        store.subscribe(self)

    def lines_changed(self) -> None:
        """Update the rows after the store changed; the rows of new blocks need ``build``."""
        self.rows.sync(may_move=self._following)
        self.cursor, self.mark = self._remaining(self.cursor), self._remaining(self.mark)
        self.match = self._remaining(self.match)
        if not len(self.store):
            self._last_seen = _BEFORE_ALL
        self._changed()

    def _remaining(self, key: LineKey | None) -> LineKey | None:
        """Return the key, or that of the next line if its line was dropped or its gap was filled."""
        at, index = (0, 0) if key is None else self.store.position(key)
        return None if key is None or at == len(self.store.blocks) else self.store.blocks[at].key(index)

    # Options

    @property
    def options(self) -> LogOptions:
        return self.rows.options

    @options.setter
    def options(self, options: LogOptions) -> None:
        """Change what is shown; if lines must be filtered or folded again, call ``rows.build`` until True."""
        before = self.rows.options
        if (options.filters, options.folds) != (before.filters, before.folds):
            self.rows.set_options(options)
        self.rows.options = options

    @property
    def following(self) -> bool:
        """True if the view stays at the end; a fold may then move to its newest line."""
        return self._following

    @following.setter
    def following(self, following: bool) -> None:
        self._following = following
        self._last_seen = self.store.blocks[-1].last if self.store.blocks else _BEFORE_ALL

    @property
    def unseen(self) -> int:
        """Number of rows added at the end since following stopped."""
        if self._following:
            return 0
        return len(self) - self.rows.count_before(
            LineKey(self._last_seen.time_ns, self._last_seen.serial + 1)
        )

    @property
    def passing_count(self) -> int:
        """Number of lines that pass the filter, folded or not."""
        return sum(len(part.passing) for part in self.rows.parts)

    # Rows

    def __len__(self) -> int:
        return len(self.rows)

    def row_key(self, row: int) -> RowKey:
        part, index = self.rows.part(row)
        key, fold = part.block.key(index), part.fold_at(index)
        shown = key if fold is None or fold.is_open else part.key(fold.shown)
        return RowKey(key, shown, fold, shown in self._pretty)

    def row_flags(self, row: int) -> RowFlags:
        low, high = self.selected_rows()
        return RowFlags(
            cursor=self.cursor is not None and self.cursor_row == row,
            selected=low <= row < high and self.mark is not None,
            bookmark=bool(self.store.bookmarks) and self.rows.key(row) in self.store.bookmarks,
            match=self.match is not None and self.rows.row_of(self.match) == row,
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

    def point_at(self, time_ns: int) -> None:
        """Put the cursor and the top at the first line at or after a time, else at the last one.

        The line may be in a block whose rows are not built yet.
        """
        key = self._remaining(LineKey(time_ns, self.store.first_serial))
        if key is None and self.store.blocks:
            key = self.store.blocks[-1].last
        self.mark = None
        if key is not None:
            self.cursor, self._top, self._top_line = key, key, 0

    @property
    def cursor_row(self) -> int | None:
        """The row of the cursor line; None while following."""
        if self.cursor is None or not len(self):
            return None
        return min(self.rows.row_of(self.cursor), len(self) - 1)

    def set_cursor(self, row: int | None, *, extend: bool = False) -> None:
        """Move the cursor to a row; with ``extend``, select from the previous cursor position on."""
        if row is None or not len(self):
            self.cursor = self.mark = None
            return
        self.mark = (self.mark or self.cursor) if extend else None
        self.cursor = self.rows.key(max(0, min(row, len(self) - 1)))

    @property
    def current_row(self) -> int | None:
        """The row that keys act on: the cursor row, or the last one while following."""
        row = self.cursor_row
        return len(self) - 1 if row is None and len(self) else row

    @property
    def cursor_entry(self) -> LogEntry | None:
        """The cursor line; the newest line while following; None if the log is empty."""
        row = self.current_row
        return None if row is None else self.store.entry(self.row_key(row).shown)

    def selected_rows(self) -> tuple[int, int]:
        """Return the first and one past the last selected row; the cursor row if nothing is selected."""
        row = self.current_row
        if row is None:
            return 0, 0
        other = row if self.mark is None else min(self.rows.row_of(self.mark), len(self) - 1)
        return min(row, other), max(row, other) + 1

    def selected_entries(self) -> list[LogEntry]:
        """Return the selected lines, or the cursor line, with all lines of folded tracebacks."""
        keys: set[LineKey] = set()
        for row in range(*self.selected_rows()):
            part, index = self.rows.part(row)
            fold = part.fold_at(index)
            if fold is not None and fold.kind == "traceback" and not fold.is_open:
                keys.update(map(part.key, fold.lines))
            else:
                keys.add(self.row_key(row).shown)
        return [self.store.entry(key) for key in sorted(keys)]

    def entries(self, *, filtered: bool) -> Iterator[LogEntry]:
        """Yield all entries in time order, or those that pass the filter, including folded ones.

        May end early or skip entries if lines arrive meanwhile: consume it without yielding to the event
        loop, or use it only on a log that has ended.
        """
        if filtered:
            for part in list(self.rows.parts):
                yield from self.store.entries(part.block, part.passing)
        else:
            for block in list(self.store.blocks):
                yield from self.store.entries(block, range(len(block)))

    # Going to lines

    def passes(self, key: LineKey) -> bool:
        """Return True if a line passes the filter, folded or not."""
        return self.rows.find(key) is not None

    def reveal(self, key: LineKey) -> int:
        """Open the fold that hides a line; return the line's row."""
        position = self.rows.find(key)
        fold = position[0].fold_around(position[1]) if position is not None else None
        if position is not None and fold is not None and key.serial not in (fold.anchor, fold.shown):
            self.rows.set_open(position[0], fold, True)
        return min(self.rows.row_of(key), max(0, len(self) - 1))

    # Opening rows

    def toggle_fold(self, row: int) -> bool:
        """Open or close a row's fold, or the object in its message; return False if it has neither."""
        part, index = self.rows.part(row)
        fold, shown = part.fold_around(index), self.row_key(row).shown
        if fold is not None:
            self.rows.set_open(part, fold, not fold.is_open)
            return True
        entry = self.store.entry(shown)
        has_object = not isinstance(entry, LogGap) and pretty_rows(entry.message) is not None
        if has_object:
            self._pretty ^= {shown}
        return has_object
