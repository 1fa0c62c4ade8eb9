"""The part of a log on the screen: its rows, and where scrolling and the cursor lead.

A scroll position is a row and a line within it. So scrolling costs what is on the screen, and no table of all
heights is kept.
"""

from __future__ import annotations

from api_client.models.logs import LogGap
from tui.widgets.log_view.layout import ScrollPosition, earlier, last_page, moved, page_from
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.renderer import LogRenderer

_JUMP_TARGET_SHARE = 3  # an off-screen search result is put a third of the way down
_PAN_SHARE = 4  # pan by a quarter of the width


class Viewport:
    """Places the rows of a model on a screen of `height` lines."""

    def __init__(self, model: LogModel, renderer: LogRenderer) -> None:
        self.height = 0
        self._model = model
        self._renderer = renderer
        self._page: list[ScrollPosition] | None = None
        self._kept_line: int | None = None

    def lines_of(self, row: int) -> int:
        return len(self._renderer.rows(self._model.store, self._model.face(row)))

    def invalidate(self) -> None:
        """Forget the page, because rows or their heights have changed."""
        self._page = None

    def page(self) -> list[ScrollPosition]:
        """Return the screen lines to show. While following, also update the top of the view."""
        if self._page is None:
            model, count = self._model, len(self._model)
            top = self.bottom() if model.following else model.top
            page = page_from(count, top, self.height, self.lines_of)
            if len(page) < self.height and top != ScrollPosition():
                top = self.bottom()
                page = page_from(count, top, self.height, self.lines_of)
            if model.rows.is_complete:  # until then the cursor line may just not be built yet
                model.go(top)
            if self._renderer.register_nodes(self._replicas(page)):
                # A longer label shifts every line's text and changes where it wraps.
                return self.page()
            self._page = page
        return self._page

    def _replicas(self, page: list[ScrollPosition]) -> set[str | None]:
        model = self._model
        words = [model.store.word(model.face(row).key) for row in {place.row for place in page}]
        return {word.replica for word in words if not isinstance(word, LogGap)}

    @property
    def is_full(self) -> bool:
        """True if the current page is known and fills the screen."""
        return self._page is not None and len(self._page) == self.height

    # --- scrolling ----------------------------------------------------------------------------

    def bottom(self) -> ScrollPosition:
        """Return the top of the last full page."""
        return last_page(len(self._model), self.height, self.lines_of)

    def scrolled(self, lines: int) -> ScrollPosition:
        """Return the top after scrolling by a number of lines."""
        self.page()
        return moved(len(self._model), self._model.top, lines, self.lines_of)

    def go(self, top: ScrollPosition) -> None:
        """Show the rows from `top` on, but never beyond the last full page."""
        self._model.go(earlier(top, self.bottom()))
        self._page = None

    def keep_cursor_in_sight(self) -> None:
        """Move the cursor with the scrolled text, unless there is a selection."""
        model, page = self._model, self.page()
        row = model.cursor_row
        if not page or model.has_selection:
            return
        if row is None or not page[0].row <= row <= page[-1].row:
            model.set_cursor(page[0].row if row is None or row < page[0].row else page[-1].row)

    def tall_row_step(self, row: int, rows: int) -> int:
        """Return the lines to scroll within a row that is taller than the screen; 0 if there are none."""
        shown = [place.line for place in self.page() if place.row == row]
        if shown and rows > 0 and shown[-1] < self.lines_of(row) - 1:
            return 1
        return -1 if shown and rows < 0 and shown[0] > 0 else 0

    def top_for(self, row: int) -> ScrollPosition:
        """Return the top that shows a row while scrolling no more than needed."""
        page = self.page()
        top = page[0] if page else ScrollPosition()
        if ScrollPosition(row) == earlier(ScrollPosition(row), top):
            return ScrollPosition(row)
        if any(place.row == row for place in page) and page[-1].row != row:
            return top
        end = ScrollPosition(row, self.lines_of(row) - 1)
        lowest = earlier(moved(len(self._model), end, 1 - self.height, self.lines_of), ScrollPosition(row))
        return top if earlier(lowest, top) == lowest else lowest

    def top_around(self, row: int) -> ScrollPosition:
        """Return the top that shows a row a third of the way down."""
        above = self.height // _JUMP_TARGET_SHARE
        return moved(len(self._model), ScrollPosition(row), -above, self.lines_of)

    def shows(self, row: int) -> bool:
        return any(place.row == row for place in self.page())

    def panned(self, pan: int, steps: int) -> int:
        """Return the cells to cut off after panning, at most to the end of the longest visible line."""
        model, renderer = self._model, self._renderer
        step = max(1, renderer.text_cells // _PAN_SHARE)
        texts = [renderer.rows(model.store, model.face(place.row))[place.line].text for place in self.page()]
        furthest = max(pan, max(map(len, texts), default=0) - step)
        return max(0, min(pan + steps * step, furthest))

    # --- changing rows ------------------------------------------------------------------------

    def keep_line(self) -> None:
        """Remember the screen line of the cursor before the rows change."""
        row = self._model.cursor_row
        if self._kept_line is None and row is not None:
            place = ScrollPosition(row)
            self._kept_line = next((y for y, known in enumerate(self.page()) if known == place), None)

    def restore_line(self) -> None:
        """Put the cursor back on its screen line."""
        line, row = self._kept_line, self._model.cursor_row
        self._kept_line = None
        if line is not None and row is not None:
            self._model.go(moved(len(self._model), ScrollPosition(row), -line, self.lines_of))
            self._page = None
