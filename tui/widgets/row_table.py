"""A table that draws only its visible rows, with columns that are dropped when space is short."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from tui.tables.column import (
    GAP,
    MARGIN,
    Column,
    Heading,
    Row,
    Sort,
    Span,
    fill_cell,
    fitted_columns,
    gap_between,
    needed_columns,
    sized_columns,
)
from tui.text.names import clip_middle
from tui.text.sanitize import sanitize
from tui.widgets.cursor_rows import HEADING_LINES, CursorRows
from tui.widgets.tones import tone_styles

Cells = list[tuple[Column[Any], Sequence[Span], int]]
"""The cells of a row: column, sanitized texts, and width."""


def _length(spans: Sequence[Span]) -> int:
    return sum(cell_len(text) for text, _tone in spans)


def _cell_segments(
    column: Column[Any], spans: Sequence[Span], cells: int, base: Style, tones: Mapping[str, Style]
) -> list[Segment]:
    spans = fill_cell(spans, cells)
    length = _length(spans)
    if length > cells and column.clip == "middle" and spans:
        *before, (text, tone) = spans
        spans = [*before, (clip_middle(text, max(1, cells - _length(before))), tone)]
        length = _length(spans)
    drawn = [Segment(text, base + tones.get(tone, Style.null())) for text, tone in spans]
    if length > cells:
        shown = list(Strip(drawn).crop(0, cells - 1))
        return [*shown, Segment("…", shown[-1].style if shown else base)]
    pad = Segment(" " * (cells - length), base)
    return [pad, *drawn] if column.align == "right" else [*drawn, pad]


class RowTable(CursorRows, Generic[Row]):
    """A scrolling table with a cursor; the first line is the heading."""

    DEFAULT_CSS = "RowTable.-empty { max-height: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "open")]

    sort_mark: reactive[Sort | None] = reactive(None)
    """Display only: the caller sorts the rows."""

    @dataclass
    class TableMessage(Message):
        table: RowTable[Any]

        @property
        def control(self) -> RowTable[Any]:
            return self.table

    @dataclass
    class Selected(TableMessage):
        """A row was opened by Enter or a click on the row under the cursor."""

        key: str

    @dataclass
    class Highlighted(TableMessage):
        key: str

    @dataclass
    class HeadingPressed(TableMessage):
        """A column heading was clicked."""

        column_id: str

    def __init__(
        self,
        columns: Sequence[Column[Row]],
        key: Callable[[Row], str],
        *,
        id: str | None = None,
        opens: bool = True,
        sized: bool = False,
        like: RowTable[Any] | None = None,
    ) -> None:
        """Create an empty table.

        ``opens`` enables opening a row with enter; ``sized`` sizes columns by their content. Columns that the
        table ``like`` has, too, get the widths they have there, if all columns still fit.
        """
        super().__init__(id=id)
        self._all_columns = tuple(columns)
        self._needed_columns = needed_columns(columns, ())
        self._key = key
        self._opens = opens
        self._sized = sized
        self._like = like
        self._gap = GAP
        self._rows: Sequence[Row] = ()
        self.headings_of: Callable[[Sequence[Row]], Sequence[Heading]] = lambda _rows: ()
        """Returns the headings above groups of rows; each takes a line of its own."""
        self._headings: Sequence[Heading] = ()
        self.stays_on_top = False
        """True to keep the cursor on the first row, whichever that is, until the user moves it."""
        self._chosen: str | None = None
        """The row the cursor was last moved to or that was opened; it returns there if the row reappears."""
        self._layout: tuple[tuple[Column[Row], int], ...] = ()
        self._layout_width = -1
        self._painted: tuple[int, list[object]] = (0, [])
        self.add_class("-empty")

    @property
    def row_count(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> Sequence[Row]:
        return self._rows

    @property
    def cursor_key(self) -> str | None:
        return self._key(self._rows[self._cursor]) if self._rows else None

    @property
    def cursor_row(self) -> Row | None:
        return self._rows[self._cursor] if self._rows else None

    @property
    def columns_shown(self) -> dict[str, int]:
        """The width of each column that is shown, by its id."""
        self._fit(self.scrollable_content_region.width)
        return {column.id: cells for column, cells in self._layout}

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Show these records. The cursor stays on its key, on its screen line, and in view if it was.

        Without records only the heading is left. The table is not hidden, so that it keeps the focus.
        """
        before, cursor = self.cursor_key, self._cursor
        top = self._line_of(cursor) - self.scroll_offset.y
        self._rows, self._headings = rows, self.headings_of(rows)
        needed = needed_columns(self._all_columns, rows)
        if self._sized or needed != self._needed_columns:
            self._needed_columns, self._layout_width = needed, -1
        self.set_class(not rows, "-empty")
        index = self._index_of(self._chosen)
        if index is None and not (self.stays_on_top and self._chosen is None):
            index = self._index_of(before)
        self._cursor = index if index is not None else max(0, min(cursor, len(rows) - 1))
        self.virtual_size = Size(0, len(rows) + len(self._headings) + HEADING_LINES)
        in_view = range(self.size.height - HEADING_LINES)
        is_lost = top in in_view and self._line_of(self._cursor) - self.scroll_offset.y not in in_view
        if index is not None and (self.scroll_offset.y or is_lost):
            self.scroll_to(y=max(0, self._line_of(self._cursor) - top), animate=False, force=True)
        self._repaint(whole=self._cursor != cursor)
        if self.cursor_key != before and self.cursor_key is not None:
            self.post_message(self.Highlighted(self, self.cursor_key))

    def _repaint(self, *, whole: bool) -> None:
        """Repaint the screen lines whose content changed since the last call, or all."""
        top, painted = self.scroll_offset.y, self._painted
        self._fit(self.scrollable_content_region.width)
        self._painted = top, list(map(self._line_content, range(self.size.height)))
        if whole or (top, len(self._painted[1])) != (painted[0], len(painted[1])):
            self.refresh()
            return
        for y, (before, now) in enumerate(zip(painted[1], self._painted[1], strict=True)):
            if before != now:
                self.refresh_line(y + top)

    def _line_content(self, y: int) -> object:
        """Return the content of a screen line, to compare: that is faster than drawing its strip."""
        if y == 0:
            return self._titles()
        line = y - HEADING_LINES + self.scroll_offset.y
        index = self._index_of_line(line)
        if index is None:
            return self._heading_on(line)
        return self._cells(self._rows[index]) if 0 <= index < len(self._rows) else None

    def _index_of(self, key: str | None) -> int | None:
        indexes = (index for index, row in enumerate(self._rows) if self._key(row) == key)
        return None if key is None else next(indexes, None)

    def _line_of(self, index: int) -> int:
        return index + sum(first <= index for first, _ in self._headings)

    def _index_of_line(self, line: int) -> int | None:
        above = sum(first + place < line for place, (first, _) in enumerate(self._headings))
        is_heading = above < len(self._headings) and self._headings[above][0] + above == line
        return None if is_heading else line - above

    def _heading_on(self, line: int) -> Heading:
        return next(heading for place, heading in enumerate(self._headings) if heading[0] + place == line)

    def move_to(self, key: str) -> None:
        index = self._index_of(key)
        if index is not None:
            self._move_cursor(index)

    # Drawing

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        self._fit(width)
        if y == 0:
            return self._strip(self._titles(), self._component_style("heading"))
        line = y - HEADING_LINES + self.scroll_offset.y
        index = self._index_of_line(line)
        if index is None:
            spans = [(sanitize(text), tone) for text, tone in self._heading_on(line)[1]]
            return self._strip([(self._layout[0][0], spans, width - 2 * MARGIN)], self.rich_style)
        if not 0 <= index < len(self._rows):
            return Strip.blank(width, self.rich_style)
        component = self._component_at(index)
        base = self._component_style(component) if component else self.rich_style
        return self._strip(self._cells(self._rows[index]), base)

    def _fit(self, width: int) -> None:
        if width == self._layout_width:
            return
        columns: Sequence[Column[Row]] = self._needed_columns
        if self._sized:
            columns = sized_columns(columns, self._rows[:500], width)
            self._gap = gap_between(columns, width)
        self._layout, self._layout_width = fitted_columns(columns, width, self._gap), width
        if self._like is not None:
            widths, gap = self._like.columns_shown, self._like._gap
            alike = [
                replace(column, width=widths[column.id], flex=0) if column.id in widths else column
                for column in columns
            ]
            layout = fitted_columns(alike, width, gap)
            own_widths = {column.id: column.width for column in columns}
            if len(layout) == len(self._layout) and all(  # no column is dropped or cut by it
                cells >= min(was, own_widths[column.id])
                for (column, cells), (_, was) in zip(layout, self._layout, strict=True)
            ):
                self._layout, self._gap = layout, gap

    def _arrow(self, column: Column[Row]) -> str:
        mark = self.sort_mark
        return "▴▾"[mark[1]] if mark is not None and mark[0] == column.id else ""

    def _titles(self) -> Cells:
        titles: Cells = []
        for column, cells in self._layout:
            arrow = self._arrow(column)
            title = clip_middle(column.title, max(1, cells - len(arrow)))
            titles.append((column, [(title + arrow, "")], cells))
        return titles

    def _cells(self, row: Row) -> Cells:
        """Return the cells with their widths; a text that is too long extends over empty cells after it."""
        placed: Cells = []
        for column, cells in self._layout:
            spans = [(sanitize(text), tone) for text, tone in column.cell(row)]
            before, text, room = placed[-1] if placed else (column, (), 0)
            if not _length(spans) and before.align == "left" and _length(text) > room:
                placed[-1] = (before, text, room + self._gap + cells)
            else:
                placed.append((column, spans, cells))
        return placed

    def _strip(self, cells: Cells, base: Style) -> Strip:
        tones = tone_styles(self.app)
        segments: list[Segment] = []
        for position, (column, spans, room) in enumerate(cells):
            segments.append(Segment(" " * (self._gap if position else MARGIN), base))
            segments += _cell_segments(column, spans, room, base, tones)
        return Strip(segments).adjust_cell_length(self._layout_width, base)

    # Navigation

    def _move_cursor(self, index: int) -> None:
        super()._move_cursor(index)
        if self._rows:
            self._chosen = self.cursor_key

    def _cursor_moved(self) -> None:
        if (key := self.cursor_key) is not None:
            self.post_message(self.Highlighted(self, key))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "select" or (self._opens and bool(self._rows))

    def action_select(self) -> None:
        self._chosen = self.cursor_key
        if self._chosen is not None:
            self.post_message(self.Selected(self, self._chosen))

    def _row_clicked(self, *, again: bool) -> None:
        if again:
            self.action_select()

    def _heading_clicked(self, x: int) -> None:
        left = MARGIN
        for column, cells in self._layout:
            if left <= x < left + cells + self._gap:
                self.post_message(self.HeadingPressed(self, column.id))
                return
            left += cells + self._gap
