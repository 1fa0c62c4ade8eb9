"""The part of a log on the screen: its rows, the cursor, and where keys and the mouse lead."""

from __future__ import annotations

from collections.abc import Callable

from api_client.models.logs import NS_PER_S, LogGap
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.model import LogModel, ScrollPosition
from tui.widgets.log_view.renderer import LogRenderer


class Viewport:
    """Places the rows of a model on a screen of `height` lines; after moves, `moved` must invalidate it."""

    def __init__(self, model: LogModel, renderer: LogRenderer, moved: Callable[[], object]) -> None:
        self.height = 0
        self._model = model
        self._renderer = renderer
        self._moved = moved
        self._page: list[ScrollPosition] | None = None
        self._cursor_line: int | None = None
        self._waits_for_layout = False
        """True if a time was gone to while the view was hidden, without lines to place it on."""

    def _lines_of(self, row: int) -> int:
        return len(self._renderer.rows(self._model.row_key(row)))

    def invalidate(self) -> None:
        self._page = None

    def resize(self, height: int) -> None:
        self.height = height
        if self._waits_for_layout and height:
            self._waits_for_layout = False
            self._cursor_line = height // 3
            self.restore_line()
        self.invalidate()

    def page(self) -> list[ScrollPosition]:
        """Return the screen lines to show. While following, also update the top of the view."""
        if self._page is None:
            model = self._model
            self._show_days()
            top = self._bottom() if model.following else model.top
            page = self._page_from(top)
            if len(page) < self.height and top != ScrollPosition():
                top = self._bottom()
                page = self._page_from(top)
            if model.rows.is_complete:  # until then the cursor line may just not be built yet
                model.set_top(top)
            if self._renderer.register_nodes(self._replicas(page)):
                # A longer label shifts every line's text and changes where it wraps.
                return self.page()
            self._page = page
        return self._page

    def _show_days(self) -> None:
        """Show dates if the visible rows need them: counted in rows, as dates change the rows' heights."""
        model = self._model
        first = max(0, len(model) - max(1, self.height))
        first = first if model.following else min(first, model.top.row)
        if len(model) and model.store.span_ns is not None:
            self._renderer.times.show_days(model.rows.key(first).time_ns, model.store.span_ns[1])

    def _replicas(self, page: list[ScrollPosition]) -> set[str | None]:
        model = self._model
        shown = [
            model.store.attributes(model.row_key(row).key) for row in {position.row for position in page}
        ]
        return {attributes.replica for attributes in shown if not isinstance(attributes, LogGap)}

    # Follow and cursor

    @property
    def follow(self) -> bool:
        """True to keep the end visible; stopping puts the cursor on the last line."""
        return self._model.following

    @follow.setter
    def follow(self, follow: bool) -> None:
        model = self._model
        if follow != model.following:
            if not follow:
                self.page()
            model.following = follow
            model.set_cursor(None if follow else len(model) - 1)
            self._moved()

    def clear_selection(self) -> bool:
        had_selection = self._model.mark is not None
        self._model.mark = None
        self._moved()
        return had_selection

    def move_cursor(self, rows: int, *, extend: bool = False) -> None:
        """Move the cursor. Moving up stops following; moving down from the last line follows again."""
        model, row = self._model, self._model.current_row
        if row is None:
            return
        if self.follow:
            if rows < 0:
                self.follow = False
                if extend:
                    self.put_cursor(row + rows, extend=True)
            return
        lines = 0 if extend else self._tall_row_step(row, rows)
        if lines:
            self.scroll(lines)
        elif rows > 0 and row == len(model) - 1 and not extend:
            self.follow = True
        else:
            self.put_cursor(row + rows, extend=extend)

    def _tall_row_step(self, row: int, rows: int) -> int:
        """Return the lines to scroll within a row that is taller than the screen; 0 if there are none."""
        shown = [position.line for position in self.page() if position.row == row]
        if shown and rows > 0 and shown[-1] < self._lines_of(row) - 1:
            return 1
        return -1 if shown and rows < 0 and shown[0] > 0 else 0

    def put_cursor(self, row: int, *, extend: bool = False) -> None:
        """Move the cursor to a row, scrolling no more than needed."""
        self.follow = False
        row = max(0, min(row, len(self._model) - 1))
        self._model.set_cursor(row, extend=extend)
        self._show_from(self._top_for(row))

    def _top_for(self, row: int) -> ScrollPosition:
        page = self.page()
        top = page[0] if page else ScrollPosition()
        if ScrollPosition(row) <= top:
            return ScrollPosition(row)
        end = ScrollPosition(row, self._lines_of(row) - 1)
        lowest = min(self._position_after(end, 1 - self.height), ScrollPosition(row))
        return max(lowest, top)

    def seek(self, key: LineKey) -> None:
        """Move the cursor to a line, opening its fold; if off screen, put it a third of the way down."""
        row = self._model.reveal(key)
        self._page = None
        self._seek_row(row)

    def _seek_row(self, row: int) -> None:
        if not len(self._model):
            return
        was_shown = any(position.row == row for position in self.page())
        self.follow = False
        self._model.set_cursor(row)
        if not was_shown:
            self._show_from(self._position_after(ScrollPosition(row), -(self.height // 3)))
        self._moved()

    def go_to(self, key: LineKey | None) -> bool:
        """Go to a line; return False if there is none or the filter hides it."""
        if key is None or not self._model.passes(key):
            return False
        self.seek(key)
        return True

    def next_error(self, *, backwards: bool = False) -> bool:
        """Go to the next (or previous) error line shown in another row; return False if there is none."""
        model, key = self._model, self._model.cursor
        if key is None and not backwards:
            return False
        while True:
            key = model.store.error_after(key, backwards=backwards)
            # A folded traceback has several error lines but is one row.
            if key is None or (model.passes(key) and model.rows.row_of(key) != model.cursor_row):
                return self.go_to(key)

    def next_bookmark(self, *, backwards: bool = False) -> bool:
        """Go to the next (or previous) bookmark, wrapping around; return False if there is none."""
        cursor = self._model.cursor
        keys = sorted(filter(self._model.passes, self._model.store.bookmarks), reverse=backwards)
        if not keys or cursor is None:
            return self.go_to(max(keys, default=None))
        beyond = (key for key in keys if (key < cursor if backwards else key > cursor))
        return self.go_to(next(beyond, keys[0]))

    def toggle_bookmark(self) -> None:
        row = self._model.current_row
        if row is not None:
            self._model.store.toggle_bookmark(self._model.rows.key(row))
            self._moved()

    def go_to_time(self, time_ns: int) -> None:
        """Go to the first row at or after a time (epoch ns), else to the last, with the rows before it."""
        self.follow = False
        self._model.point_at(time_ns)
        self._cursor_line = self.height // 3
        self._waits_for_layout = not self.height
        if self._model.rows.is_complete:  # else at the end of the build
            self.restore_line()
        self._moved()

    def align_with(self, other: Viewport) -> None:
        """Show the time of the other view's cursor on the same screen line; follow if the other view does."""
        model, key = self._model, other._model.cursor
        if other.follow or key is None or not len(model):
            self.follow = other.follow
            return
        y = next((y for y, position in enumerate(other.page()) if position.row == other._model.cursor_row), 0)
        row = min(model.rows.index_at(key.time_ns), len(model) - 1)
        self.follow = False
        model.set_cursor(row)
        self._show_from(self._position_after(ScrollPosition(row), -y))

    def jump(self, seconds: float) -> None:
        row, rows = self._model.current_row, self._model.rows
        if row is None:
            return
        target = rows.index_at(rows.key(row).time_ns + int(seconds * NS_PER_S))
        if seconds < 0:
            self._seek_row(min(target, max(0, row - 1)))
        elif target >= len(rows):
            self.follow = True
        else:
            self._seek_row(target)

    def select_line(self, y: int, *, extend: bool) -> bool:
        """Put the cursor on a line of the screen; return False if there is none."""
        page = self.page()
        if y >= len(page):
            return False
        row = page[y].row
        if not extend or self._model.cursor_row != row:
            self.follow = False
            self._model.set_cursor(row, extend=extend)
            self._moved()
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
        """Return the top of the last full page."""
        return self._position_after(ScrollPosition(len(self._model)), -self.height)

    def _page_from(self, top: ScrollPosition) -> list[ScrollPosition]:
        """Return the screen lines from `top` down; fewer than a screen if the rows end."""
        page: list[ScrollPosition] = []
        row, line = top.row, top.line
        while row < len(self._model) and len(page) < self.height:
            stop = min(self._lines_of(row), line + self.height - len(page))
            page.extend(ScrollPosition(row, number) for number in range(line, stop))
            row, line = row + 1, 0
        return page

    def _position_after(self, start: ScrollPosition, lines: int) -> ScrollPosition:
        """Return the position ``lines`` screen lines further down (up if negative), within existing rows."""
        count = len(self._model)
        if not count:
            return ScrollPosition()
        row, line = start.row, start.line + lines
        while line < 0 < row:
            row -= 1
            line += self._lines_of(row)
        row = min(row, count - 1)
        while line >= (height := self._lines_of(row)) and row < count - 1:
            row, line = row + 1, line - height
        return ScrollPosition(row, max(0, min(line, height - 1)))

    def _show_from(self, top: ScrollPosition) -> None:
        """Show the rows from `top` on, but never beyond the last full page."""
        self.follow = False
        self._model.set_top(min(top, self._bottom()))
        self._moved()

    def _keep_cursor_in_sight(self) -> None:
        """Move the cursor with the scrolled text, unless there is a selection."""
        model, page = self._model, self.page()
        row = model.cursor_row
        if not page or model.mark is not None:
            return
        if row is None or not page[0].row <= row <= page[-1].row:
            model.set_cursor(page[0].row if row is None or row < page[0].row else page[-1].row)

    def scroll(self, lines: int) -> None:
        """Scroll by a number of lines. Scrolling up stops following; reaching the end follows again."""
        self.page()
        before = self._model.top
        top = self._position_after(before, lines)
        bottom = self._bottom()
        if lines > 0 and bottom <= top:
            self.follow = True
        elif top != before:
            self._show_from(top)
            self._keep_cursor_in_sight()

    def drag_to(self, y: int) -> None:
        last_line = max(1, self.height - 1)
        if y >= last_line:
            self.follow = True
        else:
            last_row = max(0, len(self._model) - 1)
            self._show_from(ScrollPosition(round(max(0, y) / last_line * last_row)))
            self._keep_cursor_in_sight()

    def panned(self, pan: int, steps: int) -> int:
        """Return the number of cells to cut off at the left after panning, limited by the longest line."""
        model, renderer = self._model, self._renderer
        step = max(1, renderer.text_cells // 4)
        texts = [renderer.rows(model.row_key(position.row))[position.line].text for position in self.page()]
        max_pan = max(pan, max(map(len, texts), default=0) - step)
        return max(0, min(pan + steps * step, max_pan))

    # Changing rows

    def keep_line(self) -> None:
        """Remember the screen line of the cursor before the rows change, for ``restore_line``."""
        row = self._model.cursor_row
        if self._cursor_line is None and row is not None:
            position = ScrollPosition(row)
            self._cursor_line = next((y for y, shown in enumerate(self.page()) if shown == position), None)

    def restore_line(self) -> None:
        line, row = self._cursor_line, self._model.cursor_row
        self._cursor_line = None
        if line is not None and row is not None:
            self._model.set_top(self._position_after(ScrollPosition(row), -line))
            self._page = None
