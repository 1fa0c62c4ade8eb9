"""The visible part of a log view: which rows are on the screen, scrolling, and moves of the cursor."""

from __future__ import annotations

from collections.abc import Callable

from api_client.models.logs import NS_PER_S, LogGap
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.model import LogModel, ScrollPosition
from tui.widgets.log_view.renderer import LogRenderer


class Viewport:
    """Places the rows of a model on a screen of ``height`` lines.

    It calls ``on_move`` after the cursor, the selection or the scroll position changed; the callee must call
    ``invalidate``.
    """

    def __init__(self, model: LogModel, renderer: LogRenderer, on_move: Callable[[], object]) -> None:
        self.height = 0
        self._model = model
        self._renderer = renderer
        self._on_move = on_move
        self._page: list[ScrollPosition] | None = None
        self._cursor_line: int | None = None
        """Screen line to put the cursor on once the rows are complete."""
        self._waits_for_layout = False
        """True if ``go_to_time`` was called before the height of the view was known."""

    def _line_count(self, row: int) -> int:
        return len(self._renderer.rows(self._model.row_key(row)))

    def invalidate(self) -> None:
        self._page = None

    def resize(self, height: int) -> None:
        self.height = height
        if self._waits_for_layout and height:
            self._waits_for_layout = False
            self._cursor_line = height // 3
            self.restore_cursor_line()
        self.invalidate()

    def page(self) -> list[ScrollPosition]:
        """Return the screen lines to show. While following, also update the top of the view."""
        if self._page is None:
            model = self._model
            self._update_date_visibility()
            top = self._bottom() if model.following else model.top
            page = self._page_from(top)
            if len(page) < self.height and top != ScrollPosition():
                top = self._bottom()
                page = self._page_from(top)
            if model.rows.is_complete:  # else the top line may be in a block whose rows are not built yet
                model.set_top(top)
            if self._renderer.register_nodes(self._replicas(page)):
                # A wider gutter narrows the text, which may wrap at other places.
                return self.page()
            self._page = page
        return self._page

    def _update_date_visibility(self) -> None:
        """Show dates if the visible lines are of several days.

        The first visible row is estimated as if each row had one line, because dates change the heights.
        """
        model = self._model
        first_row = max(0, len(model) - max(1, self.height))
        first_row = first_row if model.following else min(first_row, model.top.row)
        if len(model) and model.store.span_ns is not None:
            first_ns, last_ns = model.rows.key(first_row).time_ns, model.store.span_ns[1]
            self._renderer.times.update_date_visibility(first_ns, last_ns)

    def _replicas(self, page: list[ScrollPosition]) -> set[str | None]:
        model = self._model
        keys = [model.row_key(row).position_key for row in {position.row for position in page}]
        visible = map(model.store.attributes, keys)
        return {attributes.replica for attributes in visible if not isinstance(attributes, LogGap)}

    # Follow and cursor

    @property
    def follow(self) -> bool:
        """True to keep the end of the log visible; setting it to False puts the cursor on the last row."""
        return self._model.following

    @follow.setter
    def follow(self, follow: bool) -> None:
        model = self._model
        if follow != model.following:
            if not follow:
                self.page()
            model.following = follow
            model.set_cursor(None if follow else len(model) - 1)
            self._on_move()

    def clear_selection(self) -> bool:
        had_selection = self._model.selection_start is not None
        self._model.selection_start = None
        self._on_move()
        return had_selection

    def move_cursor(self, rows: int, *, extend: bool = False) -> None:
        """Move the cursor. Moving up stops following; moving down from the last row follows again.

        In a row that is taller than the screen, scroll by one line instead.
        """
        model, row = self._model, self._model.current_row
        if row is None:
            return
        if self.follow:
            if rows < 0:
                self.follow = False
                if extend:
                    self.put_cursor(row + rows, extend=True)
            return
        lines = 0 if extend else self._lines_to_scroll_within(row, rows)
        if lines:
            self.scroll(lines)
        elif rows > 0 and row == len(model) - 1 and not extend:
            self.follow = True
        else:
            self.put_cursor(row + rows, extend=extend)

    def _lines_to_scroll_within(self, row: int, rows: int) -> int:
        """Return the lines to scroll to see more of a row: 1 down, -1 up, 0 if its end is visible."""
        visible_lines = [position.line for position in self.page() if position.row == row]
        if visible_lines and rows > 0 and visible_lines[-1] < self._line_count(row) - 1:
            return 1
        return -1 if visible_lines and rows < 0 and visible_lines[0] > 0 else 0

    def put_cursor(self, row: int, *, extend: bool = False) -> None:
        """Move the cursor to a row, scrolling no more than needed."""
        self.follow = False
        row = max(0, min(row, len(self._model) - 1))
        self._model.set_cursor(row, extend=extend)
        self._show_from(self._top_for(row))

    def _top_for(self, row: int) -> ScrollPosition:
        """Return the top of the screen, changed as little as needed for a row to be visible."""
        page = self.page()
        top = page[0] if page else ScrollPosition()
        if ScrollPosition(row) <= top:
            return ScrollPosition(row)
        row_end = ScrollPosition(row, self._line_count(row) - 1)
        first_possible_top = min(self._position_after(row_end, 1 - self.height), ScrollPosition(row))
        return max(first_possible_top, top)

    def seek(self, key: LineKey) -> None:
        """Move the cursor to a line, opening its fold. Scroll an invisible line to a third of the height."""
        row = self._model.reveal(key)
        self._page = None
        self._seek_row(row)

    def _seek_row(self, row: int) -> None:
        if not len(self._model):
            return
        was_visible = any(position.row == row for position in self.page())
        self.follow = False
        self._model.set_cursor(row)
        if not was_visible:
            self._show_from(self._position_after(ScrollPosition(row), -(self.height // 3)))
        self._on_move()

    def go_to(self, key: LineKey | None) -> bool:
        """Go to a line; return False if the key is None or the filter hides the line."""
        if key is None or not self._model.passes(key):
            return False
        self.seek(key)
        return True

    def next_error(self, *, backwards: bool = False) -> bool:
        """Go to the next (or previous) error line in another row; return False if there is none."""
        model, key = self._model, self._model.cursor
        if key is None and not backwards:
            return False
        while True:
            key = model.store.error_after(key, backwards=backwards)
            # A folded traceback has several error lines but is one row.
            if key is None or (model.passes(key) and model.rows.row_of(key) != model.cursor_row):
                return self.go_to(key)

    def next_bookmark(self, *, backwards: bool = False) -> bool:
        """Go to the next (or previous) bookmark, wrapping around; return False without bookmarks."""
        cursor = self._model.cursor
        keys = sorted(filter(self._model.passes, self._model.store.bookmarks), reverse=backwards)
        if not keys or cursor is None:
            return self.go_to(max(keys, default=None))
        keys_after_cursor = (key for key in keys if (key < cursor if backwards else key > cursor))
        return self.go_to(next(keys_after_cursor, keys[0]))

    def toggle_bookmark(self) -> None:
        row = self._model.current_row
        if row is not None:
            self._model.store.toggle_bookmark(self._model.rows.key(row))
            self._on_move()

    def go_to_time(self, time_ns: int) -> None:
        """Go to the first row at or after a time (epoch ns), or to the last row; show rows before it, too."""
        self.follow = False
        self._model.put_at_time(time_ns)
        self._cursor_line = self.height // 3
        self._waits_for_layout = not self.height
        if self._model.rows.is_complete:  # else at the end of the build
            self.restore_cursor_line()
        self._on_move()

    def align_with(self, other: Viewport) -> None:
        """Show the time of another view's cursor on the same screen line; follow if that view follows."""
        model, key = self._model, other._model.cursor
        if other.follow or key is None or not len(model):
            self.follow = other.follow
            return
        y = next((y for y, position in enumerate(other.page()) if position.row == other._model.cursor_row), 0)
        row = min(model.rows.first_row_at(key.time_ns), len(model) - 1)
        self.follow = False
        model.set_cursor(row)
        self._show_from(self._position_after(ScrollPosition(row), -y))

    def jump(self, seconds: float) -> None:
        """Move the cursor by an amount of time; negative moves up. At the end of the log, follow."""
        row, rows = self._model.current_row, self._model.rows
        if row is None:
            return
        target_row = rows.first_row_at(rows.key(row).time_ns + int(seconds * NS_PER_S))
        if seconds < 0:
            self._seek_row(min(target_row, max(0, row - 1)))
        elif target_row >= len(rows):
            self.follow = True
        else:
            self._seek_row(target_row)

    def select_line(self, y: int, *, extend: bool) -> bool:
        """Put the cursor on the row at screen line ``y``; return False if there is no row."""
        page = self.page()
        if y >= len(page):
            return False
        row = page[y].row
        if not extend or self._model.cursor_row != row:
            self.follow = False
            self._model.set_cursor(row, extend=extend)
            self._on_move()
        return True

    def select_to_line(self, y: int) -> None:
        self.select_line(max(0, min(y, self.height - 1)), extend=True)

    def toggle_fold(self) -> bool:
        model, row = self._model, self._model.current_row
        key = None if row is None else model.rows.key(row)
        if row is None or key is None or not model.toggle_fold(row):
            return False
        self.invalidate()
        self.put_cursor(model.rows.row_of(key))
        return True

    # Scrolling

    def _bottom(self) -> ScrollPosition:
        """Return the scroll position at which the end of the log is at the bottom of the screen."""
        return self._position_after(ScrollPosition(len(self._model)), -self.height)

    def _page_from(self, top: ScrollPosition) -> list[ScrollPosition]:
        """Return the screen lines from ``top`` to the bottom of the screen, or to the end of the log."""
        page: list[ScrollPosition] = []
        row, line = top.row, top.line
        while row < len(self._model) and len(page) < self.height:
            end_line = min(self._line_count(row), line + self.height - len(page))
            page.extend(ScrollPosition(row, number) for number in range(line, end_line))
            row, line = row + 1, 0
        return page

    def _position_after(self, start: ScrollPosition, lines: int) -> ScrollPosition:
        """Return the position ``lines`` screen lines below ``start`` (above if negative), within the log."""
        row_count = len(self._model)
        if not row_count:
            return ScrollPosition()
        row, line = start.row, start.line + lines
        while line < 0 < row:
            row -= 1
            line += self._line_count(row)
        row = min(row, row_count - 1)
        while line >= (row_lines := self._line_count(row)) and row < row_count - 1:
            row, line = row + 1, line - row_lines
        return ScrollPosition(row, max(0, min(line, row_lines - 1)))

    def _show_from(self, top: ScrollPosition) -> None:
        """Scroll to ``top``, but not further than to the end of the log; stop following."""
        self.follow = False
        self._model.set_top(min(top, self._bottom()))
        self._on_move()

    def _keep_cursor_visible(self) -> None:
        """Move the cursor to the first or last visible row if it is off screen, unless lines are selected."""
        model, page = self._model, self.page()
        row = model.cursor_row
        if not page or model.selection_start is not None:
            return
        if row is None or not page[0].row <= row <= page[-1].row:
            model.set_cursor(page[0].row if row is None or row < page[0].row else page[-1].row)

    def scroll(self, lines: int) -> None:
        """Scroll by a number of lines. Scrolling up stops following; reaching the end follows again."""
        self.page()
        previous_top = self._model.top
        top = self._position_after(previous_top, lines)
        bottom = self._bottom()
        if lines > 0 and bottom <= top:
            self.follow = True
        elif top != previous_top:
            self._show_from(top)
            self._keep_cursor_visible()

    def drag_to(self, y: int) -> None:
        """Scroll to where the scroll bar was dragged; at its lower end, follow."""
        last_line = max(1, self.height - 1)
        if y >= last_line:
            self.follow = True
        else:
            last_row = max(0, len(self._model) - 1)
            self._show_from(ScrollPosition(round(max(0, y) / last_line * last_row)))
            self._keep_cursor_visible()

    def panned(self, pan: int, steps: int) -> int:
        """Return the new ``pan`` (cells cut off at the left) after ``steps`` to the right (negative: left).

        A step is a quarter of the width of the text. The longest visible line limits panning to the right.
        """
        model, renderer = self._model, self._renderer
        step_cells = max(1, renderer.text_cells // 4)
        texts = [renderer.rows(model.row_key(position.row))[position.line].text for position in self.page()]
        max_pan = max(pan, max(map(len, texts), default=0) - step_cells)
        return max(0, min(pan + steps * step_cells, max_pan))

    # Changing rows

    def remember_cursor_line(self) -> None:
        """Remember the screen line of the cursor before the rows change, for ``restore_cursor_line``."""
        row = self._model.cursor_row
        if self._cursor_line is None and row is not None:
            start = ScrollPosition(row)
            self._cursor_line = next((y for y, position in enumerate(self.page()) if position == start), None)

    def restore_cursor_line(self) -> None:
        """Scroll so that the cursor is on the remembered screen line, if there is one."""
        line, row = self._cursor_line, self._model.cursor_row
        self._cursor_line = None
        if line is not None and row is not None:
            self._model.set_top(self._position_after(ScrollPosition(row), -line))
            self._page = None
