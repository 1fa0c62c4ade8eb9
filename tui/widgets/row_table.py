"""A table that draws only its visible rows, and drops columns if it is too narrow for all of them."""

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
"""The cells of a row: for each, the column, the sanitized spans, and the width."""


def _spans_width(spans: Sequence[Span]) -> int:
    return sum(cell_len(text) for text, _tone in spans)


def _cell_segments(
    column: Column[Any], spans: Sequence[Span], cells: int, base: Style, tones: Mapping[str, Style]
) -> list[Segment]:
    spans = fill_cell(spans, cells)
    length = _spans_width(spans)
    if length > cells and column.clip == "middle" and spans:
        *before, (text, tone) = spans
        spans = [*before, (clip_middle(text, max(1, cells - _spans_width(before))), tone)]
        length = _spans_width(spans)
    drawn_segments = [Segment(text, base + tones.get(tone, Style.null())) for text, tone in spans]
    if length > cells:
        visible_segments = list(Strip(drawn_segments).crop(0, cells - 1))
        return [*visible_segments, Segment("…", visible_segments[-1].style if visible_segments else base)]
    pad = Segment(" " * (cells - length), base)
    return [pad, *drawn_segments] if column.align == "right" else [*drawn_segments, pad]


class RowTable(CursorRows, Generic[Row]):
    """A scrolling table with a cursor; the first line is the heading."""

    DEFAULT_CSS = "RowTable.-empty { max-height: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "open")]

    sort_mark: reactive[Sort | None] = reactive(None)
    """The sort order that an arrow in the heading shows; the caller sorts the rows."""

    @dataclass
    class TableMessage(Message):
        table: RowTable[Any]

        @property
        def control(self) -> RowTable[Any]:
            return self.table

    @dataclass
    class Selected(TableMessage):
        """The user opened a row: pressed enter, or clicked the row that the cursor was on."""

        key: str

    @dataclass
    class Highlighted(TableMessage):
        """The cursor moved to another row."""

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
        sizes_by_content: bool = False,
        aligned_with: RowTable[Any] | None = None,
    ) -> None:
        """Create an empty table.

        ``key`` returns the unique key of a row. ``opens`` is True if enter opens a row. With
        ``sizes_by_content``, the widths of columns follow from their content. Columns that the table
        ``aligned_with`` also has get the same widths as in that table, unless a column would have to be
        dropped or cut for this.
        """
        super().__init__(id=id)
        self._all_columns = tuple(columns)
        self._needed_columns = needed_columns(columns, ())
        self._key = key
        self._opens = opens
        self._sizes_by_content = sizes_by_content
        self._aligned_with = aligned_with
        self._gap = GAP
        self._rows: Sequence[Row] = ()
        self.headings_of: Callable[[Sequence[Row]], Sequence[Heading]] = lambda _rows: ()
        """Returns the headings above groups of rows; each heading takes a line."""
        self._headings: Sequence[Heading] = ()
        self.stays_on_top = False
        """True to keep the cursor on whichever row is first, until the user moves the cursor."""
        self._cursor_target: str | None = None
        """Key of the row that the user moved the cursor to; the cursor returns if the row reappears."""
        self._layout: tuple[tuple[Column[Row], int], ...] = ()
        """The columns that fit, with their widths."""
        self._layout_width = -1
        self._painted: tuple[int, list[object]] = (0, [])
        """The scroll offset and the content of the screen lines when they were last painted."""
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
    def visible_column_widths(self) -> dict[str, int]:
        """The widths of the columns on the screen, by column ID."""
        self._update_layout(self.scrollable_content_region.width)
        return {column.id: cells for column, cells in self._layout}

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Show these rows. The cursor stays on the row with the same key, and on the same screen line.

        Without rows, only the heading is left: hiding the table would move the focus to another widget.
        """
        previous_key, previous_cursor = self.cursor_key, self._cursor
        cursor_line = self._line_of(previous_cursor) - self.scroll_offset.y
        self._rows, self._headings = rows, self.headings_of(rows)
        columns = needed_columns(self._all_columns, rows)
        if self._sizes_by_content or columns != self._needed_columns:
            self._needed_columns, self._layout_width = columns, -1
        self.set_class(not rows, "-empty")
        index = self._index_of(self._cursor_target)
        if index is None and not (self.stays_on_top and self._cursor_target is None):
            index = self._index_of(previous_key)
        self._cursor = index if index is not None else max(0, min(previous_cursor, len(rows) - 1))
        self.virtual_size = Size(0, len(rows) + len(self._headings) + HEADING_LINES)
        visible_lines = range(self.size.height - HEADING_LINES)
        new_cursor_line = self._line_of(self._cursor) - self.scroll_offset.y
        left_screen = cursor_line in visible_lines and new_cursor_line not in visible_lines
        if index is not None and (self.scroll_offset.y or left_screen):
            self.scroll_to(y=max(0, self._line_of(self._cursor) - cursor_line), animate=False, force=True)
        self._repaint(whole=self._cursor != previous_cursor)
        if self.cursor_key != previous_key and self.cursor_key is not None:
            self.post_message(self.Highlighted(self, self.cursor_key))

    def _repaint(self, *, whole: bool) -> None:
        """Repaint the screen lines whose content changed since the last call, or all lines if ``whole``."""
        top, (painted_top, painted_lines) = self.scroll_offset.y, self._painted
        self._update_layout(self.scrollable_content_region.width)
        lines = list(map(self._line_content, range(self.size.height)))
        self._painted = top, lines
        if whole or (top, len(lines)) != (painted_top, len(painted_lines)):
            self.refresh()
            return
        for y, (painted, current) in enumerate(zip(painted_lines, lines, strict=True)):
            if painted != current:
                self.refresh_line(y + top)

    def _line_content(self, y: int) -> object:
        """Return the content of a screen line for comparison: comparing strips would need drawing them."""
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
        headings_above = sum(
            first_row + number < line for number, (first_row, _) in enumerate(self._headings)
        )
        if headings_above < len(self._headings):
            next_first_row, _ = self._headings[headings_above]
            if next_first_row + headings_above == line:
                return None
        return line - headings_above

    def _heading_on(self, line: int) -> Heading:
        return next(heading for number, heading in enumerate(self._headings) if heading[0] + number == line)

    def move_to(self, key: str) -> None:
        index = self._index_of(key)
        if index is not None:
            self._move_cursor(index)

    # Drawing

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        self._update_layout(width)
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

    def _update_layout(self, width: int) -> None:
        """Choose the columns and their widths for a width of the table, unless it has not changed."""
        if width == self._layout_width:
            return
        columns: Sequence[Column[Row]] = self._needed_columns
        if self._sizes_by_content:
            columns = sized_columns(columns, self._rows[:500], width)
            self._gap = gap_between(columns, width)
        self._layout, self._layout_width = fitted_columns(columns, width, self._gap), width
        if self._aligned_with is not None:
            widths, gap = self._aligned_with.visible_column_widths, self._aligned_with._gap
            aligned_columns = [
                replace(column, width=widths[column.id], flex=0) if column.id in widths else column
                for column in columns
            ]
            aligned_layout = fitted_columns(aligned_columns, width, gap)
            min_widths = {column.id: column.width for column in columns}
            drops_column = len(aligned_layout) != len(self._layout)
            if not drops_column and all(
                aligned_cells >= min(cells, min_widths[column.id])
                for (column, aligned_cells), (_, cells) in zip(aligned_layout, self._layout, strict=True)
            ):
                self._layout, self._gap = aligned_layout, gap

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
        """Return the cells of a row; a text that is too long extends over the empty cells after it."""
        row_cells: Cells = []
        for column, cells in self._layout:
            spans = [(sanitize(text), tone) for text, tone in column.cell(row)]
            previous_column, previous_spans, room = row_cells[-1] if row_cells else (column, (), 0)
            is_too_long = previous_column.align == "left" and _spans_width(previous_spans) > room
            if is_too_long and not _spans_width(spans):
                row_cells[-1] = (previous_column, previous_spans, room + self._gap + cells)
            else:
                row_cells.append((column, spans, cells))
        return row_cells

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
            self._cursor_target = self.cursor_key

    def _cursor_moved(self) -> None:
        if (key := self.cursor_key) is not None:
            self.post_message(self.Highlighted(self, key))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "select" or (self._opens and bool(self._rows))

    def action_select(self) -> None:
        self._cursor_target = self.cursor_key
        if self._cursor_target is not None:
            self.post_message(self.Selected(self, self._cursor_target))

    def _row_clicked(self, *, was_at_cursor: bool) -> None:
        if was_at_cursor:
            self.action_select()

    def _heading_clicked(self, x: int) -> None:
        left = MARGIN
        for column, cells in self._layout:
            if left <= x < left + cells + self._gap:
                self.post_message(self.HeadingPressed(self, column.id))
                return
            left += cells + self._gap
