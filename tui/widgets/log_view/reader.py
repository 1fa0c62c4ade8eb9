"""Keyboard navigation of a log: scrolling, a cursor line, a selection of lines."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from api_client.models.logs import LogEntry, LogGap
from tui.widgets.log_view.canvas import LogCanvas
from tui.widgets.log_view.layout import ScrollPosition, earlier, last_page, moved
from tui.widgets.log_view.messages import GapRetryRequested, OldestReached

_PAN_SHARE = 4  # pan by a quarter of the width
_JUMP_TARGET_SHARE = 3  # an off-screen search result is put a third of the way down


class LogNavigation(LogCanvas, can_focus=True):
    """A log view with a cursor. Only the user scrolls it; arriving lines never do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move_cursor(1)", "Down", show=False, id="log.down"),
        Binding("up,k", "move_cursor(-1)", "Up", show=False, id="log.up"),
        Binding("shift+down,J", "extend_selection(1)", "Select down", show=False, id="log.select_down"),
        Binding("shift+up,K", "extend_selection(-1)", "Select up", show=False, id="log.select_up"),
        Binding(
            "pagedown,space,ctrl+d,ctrl+f", "scroll_pages(1)", "Page down", show=False, id="log.page_down"
        ),
        Binding("pageup,ctrl+u,ctrl+b", "scroll_pages(-1)", "Page up", show=False, id="log.page_up"),
        Binding("home,g", "first", "First line", show=False, id="log.first"),
        Binding("end,G", "last", "Last line, follow", show=False, id="log.last"),
        Binding("left", "pan(-1)", "Left", show=False, id="log.left"),
        Binding("right", "pan(1)", "Right", show=False, id="log.right"),
        Binding("enter", "open_row", "Open", show=False, id="log.open"),
    ]

    _asked_older = False

    # --- cursor line --------------------------------------------------------------------------

    @property
    def cursor_entry(self) -> LogEntry | None:
        """The cursor line; the newest line while following; None if the log is empty."""
        row = self._own_row()
        return None if row is None else self._model.store.entry(self._model.face(row).shown)

    def _own_row(self) -> int | None:
        """The row that keys act on: the cursor row, or the last one while following."""
        if not len(self._model):
            return None
        row = self._model.cursor_row
        return len(self._model) - 1 if row is None else row

    def selected_entries(self) -> list[LogEntry]:
        """Return the selected lines, else the cursor line (the newest one while following)."""
        model = self._model
        if model.cursor is None:
            entry = self.cursor_entry
            return [] if entry is None else [entry]
        return list(model.store.entries(model.selected_seqs()))

    def action_move_cursor(self, rows: int) -> None:
        """Move the cursor. Moving up stops following; moving down from the last line follows again."""
        model = self._model
        if model.has_selection:
            model.clear_selection()
        self._step(rows, extend=False)

    def action_extend_selection(self, rows: int) -> None:
        self._step(rows, extend=True)

    def clear_selection(self) -> bool:
        had = self._model.has_selection
        self._model.clear_selection()
        self._paint()
        return had

    def _step(self, rows: int, *, extend: bool) -> None:
        model = self._model
        if not len(model):
            return
        page = self._current_page()
        if self.follow:
            if rows < 0:
                self.follow = False  # this puts the cursor on the last line
                if extend:
                    self._put_cursor((model.cursor_row or 0) + rows, extend=True)
            return
        row = model.cursor_row
        if row is None:
            row = page[0].row if page else 0
        if not extend and self._scrolled_within(row, rows):
            return
        if rows > 0 and row == len(model) - 1 and not extend:
            self.follow = True
            return
        self._put_cursor(row + rows, extend=extend)
        if rows < 0 and model.cursor_row == 0:
            self._ask_older()

    def _scrolled_within(self, row: int, rows: int) -> bool:
        """Scroll within a row that is taller than the screen; return True if the step was used for that."""
        page = self._current_page()
        shown = [place.line for place in page if place.row == row]
        if not shown:
            return False
        if (rows > 0 and shown[-1] < self._lines_of(row) - 1) or (rows < 0 and shown[0] > 0):
            self._scroll(1 if rows > 0 else -1)
            return True
        return False

    def _put_cursor(self, row: int, *, extend: bool = False) -> None:
        """Move the cursor to a row, scrolling no more than needed."""
        model = self._model
        row = max(0, min(row, len(model) - 1))
        model.set_cursor(row, extend=extend)
        page = self._current_page()
        top = page[0] if page else ScrollPosition()
        if ScrollPosition(row) == earlier(ScrollPosition(row), top):
            top = ScrollPosition(row)
        elif not any(place.row == row for place in page) or page[-1].row == row:
            lowest = moved(
                len(model), ScrollPosition(row, self._lines_of(row) - 1), 1 - self._height, self._lines_of
            )
            lowest = earlier(lowest, ScrollPosition(row))
            top = top if earlier(lowest, top) == lowest else lowest
        self._read_at(top, keep_cursor=True)

    def _seek_row(self, row: int) -> None:
        """Move the cursor to a search result; if off screen, put it a third of the way down."""
        model = self._model
        if not len(model):
            return
        seen = any(place.row == row for place in self._current_page())
        if self.follow:
            self.follow = False
        model.set_cursor(row)
        if seen:
            self._paint()
        else:
            above = self._height // _JUMP_TARGET_SHARE
            self._read_at(moved(len(model), ScrollPosition(row), -above, self._lines_of), keep_cursor=True)

    def action_open_row(self) -> None:
        """Retry the lines of a gap, toggle a fold, or expand an object."""
        entry = self.cursor_entry
        if isinstance(entry, LogGap):
            self.post_message(GapRetryRequested(self, entry))
        elif not self.toggle_fold():
            self.notify("Nothing to expand on this line.", timeout=3)

    def toggle_fold(self) -> bool:
        """Toggle the fold at the cursor line, or expand its object; return True if anything changed."""
        row = self._own_row()
        if row is None or not self._model.opens(row):
            return False
        if self.follow:
            self.follow = False
        changed = self._model.toggle_fold(row)
        if changed:
            self._page = None
            self._put_cursor(self._model.cursor_row or 0)
        return changed

    # --- scrolling ----------------------------------------------------------------------------

    def _read_at(self, top: ScrollPosition, *, keep_cursor: bool = False) -> None:
        model = self._model
        bottom = last_page(len(model), self._height, self._lines_of)
        if self.follow:
            self.follow = False
        model.go(earlier(top, bottom))
        self._page = None
        if not keep_cursor:
            self._keep_cursor_in_sight()
        self._paint()

    def _keep_cursor_in_sight(self) -> None:
        """Move the cursor with the scrolled text, unless there is a selection."""
        model, page = self._model, self._current_page()
        row = model.cursor_row
        if not page or model.has_selection:
            return
        if row is None or not page[0].row <= row <= page[-1].row:
            nearest = page[0].row if row is None or row < page[0].row else page[-1].row
            model.set_cursor(nearest)

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll by a number of lines. Scrolling up stops following; reaching the end follows again."""
        self._scroll(lines)

    def _scroll(self, lines: int) -> None:
        self._current_page()
        count, before = len(self._model), self._model.top
        top = moved(count, before, lines, self._lines_of)
        bottom = last_page(count, self._height, self._lines_of)
        if lines > 0 and earlier(bottom, top) == bottom:
            self.follow = True
        elif top != before:
            self._read_at(top)
        if lines < 0 and top == ScrollPosition():
            self._ask_older()

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll by a number of screens, keeping one line of overlap."""
        self._scroll(pages * max(1, self._height - 1))

    def action_first(self) -> None:
        self.follow = False
        self._model.set_cursor(0)
        self._read_at(ScrollPosition(), keep_cursor=True)
        self._ask_older()

    def action_last(self) -> None:
        """Go to the newest line and follow."""
        self.follow = True

    def action_toggle_follow(self) -> None:
        self.follow = not self.follow

    def action_toggle_wrap(self) -> None:
        self.wrap = not self.wrap

    def action_pan(self, steps: int) -> None:
        """Shift long lines by a quarter of the width, at most to the end of the longest visible line."""
        if self.wrap:
            return
        model = self._model
        step = max(1, self._text_cells() // _PAN_SHARE)
        longest = max(
            (
                len(self._renderer.rows(model.store, model.face(place.row))[place.line].text)
                for place in self._current_page()
            ),
            default=0,
        )
        furthest = max(self._pan, longest - step)
        self._pan = max(0, min(self._pan + steps * step, furthest))
        self._lay_out()
        self._paint()

    def _ask_older(self) -> None:
        if not self._asked_older:
            self._asked_older = True
            self.post_message(OldestReached(self))

    # --- modes --------------------------------------------------------------------------------

    def watch_wrap(self) -> None:
        self._pan = 0
        self._model.go(ScrollPosition(self._model.top.row))
        self._lay_out()
        self._paint()
