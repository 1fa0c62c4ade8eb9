"""Base class of the widgets that have a heading, rows and a cursor: tables, the file tree, the GPU matrix."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.reactive import reactive
from textual.scroll_view import ScrollView

from tui.widgets.components import CachedComponentStyles

HEADING_LINES = 1


class CursorRows(CachedComponentStyles, ScrollView, can_focus=True):
    """Moves a cursor over rows, by keys and mouse; subclasses draw the rows.

    A subclass implements ``row_count``, ``_cursor_moved`` and ``_row_clicked``, and may handle clicks on the
    heading. Rows are counted from 0; lines are counted from the first line below the heading.
    """

    DEFAULT_CSS = """
    CursorRows {
        background: $background;
        color: $foreground;
        scrollbar-size: 0 1;
        overflow-x: hidden;
        & > .rows--heading { color: $text-muted; text-style: bold; }
        & > .rows--cursor { background: $block-cursor-background; text-style: bold; }
        & > .rows--cursor-blurred { background: $block-cursor-blurred-background; }
        & > .rows--hover { background: $boost; }
        &:ansi > .rows--cursor { text-style: reverse; }
        &:ansi > .rows--cursor-blurred { text-style: underline; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"rows--{name}" for name in ("heading", "cursor", "cursor-blurred", "hover")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "cursor_by(1)", "down", show=False),
        Binding("up,k", "cursor_by(-1)", "up", show=False),
        Binding("pagedown,ctrl+f", "cursor_by_page(1)", "page down", show=False),
        Binding("pageup,ctrl+b", "cursor_by_page(-1)", "page up", show=False),
        Binding("ctrl+d", "cursor_by_page(0.5)", "half a page down", show=False),
        Binding("ctrl+u", "cursor_by_page(-0.5)", "half a page up", show=False),
        Binding("home,g", "cursor_to_end(False)", "top", show=False),
        Binding("end,G", "cursor_to_end(True)", "bottom", show=False),
    ]

    blurred_cursor: reactive[bool] = reactive(True)
    """True to show the cursor even without focus, because other widgets show details of its row."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._cursor = 0
        self._hovered_row: int | None = None

    @property
    def row_count(self) -> int:
        raise NotImplementedError

    @property
    def footer_lines(self) -> int:
        """Number of lines below the rows that do not scroll."""
        return 0

    def _cursor_moved(self) -> None:
        raise NotImplementedError

    def _row_clicked(self, *, was_at_cursor: bool) -> None:
        """Handle a click on a row after moving the cursor to it; ``was_at_cursor``: it was there already."""
        raise NotImplementedError

    def _heading_clicked(self, x: int) -> None:
        """Handle a click on the heading."""

    # Styles

    def _component_style(self, name: str) -> Style:
        return self.rich_style + self.get_component_rich_style(f"rows--{name}", partial=True)

    def _component_at(self, index: int) -> str:
        """Return the component style of a row: cursor or hover; empty for an ordinary row."""
        if index == self._cursor:
            return "cursor" if self.has_focus else "cursor-blurred" if self.blurred_cursor else ""
        return "hover" if index == self._hovered_row else ""

    def _refresh_row(self, index: int) -> None:
        self.refresh_line(self._line_of(index) + HEADING_LINES)

    def _line_of(self, index: int) -> int:
        """Return the line of a row; group headings take lines, too."""
        return index

    def _index_of_line(self, line: int) -> int | None:
        """Return the index of the row on a line, even beyond the last row; None for a group heading."""
        return line

    # The cursor

    def _move_cursor(self, index: int) -> None:
        index = max(0, min(index, self.row_count - 1))
        if not self.row_count or index == self._cursor:
            return
        previous, self._cursor = self._cursor, index
        self._scroll_to_cursor()
        self._refresh_row(previous)
        self._refresh_row(index)
        self._cursor_moved()

    def _scroll_to_cursor(self) -> None:
        line = self._line_of(self._cursor)
        # Scroll the heading of the group into view, too, if it is just above the row.
        group_heading = 1 if line and self._index_of_line(line - 1) is None else 0
        height = group_heading + 1 + HEADING_LINES + self.footer_lines
        region = Region(0, line - group_heading, 1, height)
        self.scroll_to_region(region, animate=False, force=True, x_axis=False)

    def action_cursor_by(self, lines: int) -> None:
        self._move_cursor(self._cursor + lines)

    def action_cursor_by_page(self, pages: float) -> None:
        self.action_cursor_by(int(pages * max(2, self.size.height - HEADING_LINES - 1)))

    def action_cursor_to_end(self, last: bool) -> None:
        self._move_cursor(self.row_count - 1 if last else 0)

    # The mouse

    def _row_at(self, x: int, y: int) -> int | None:
        index = self._index_of_line(y - HEADING_LINES + self.scroll_offset.y)
        return index if index is not None and y >= HEADING_LINES and index < self.row_count else None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._hover_over(self._row_at(event.x, event.y))

    def on_leave(self) -> None:
        self._hover_over(None)

    def _hover_over(self, index: int | None) -> None:
        previous, self._hovered_row = self._hovered_row, index
        if index != previous:
            for changed_row in (previous, index):
                if changed_row is not None:
                    self._refresh_row(changed_row)

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            self._heading_clicked(event.x)
        elif (index := self._row_at(event.x, event.y)) is not None:
            was_at_cursor = index == self._cursor
            self._move_cursor(index)
            self._row_clicked(was_at_cursor=was_at_cursor)
