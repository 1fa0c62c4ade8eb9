"""Widgets that wrap text into rows: a scrolling panel, and a widget that is as high as its text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from tui.tables.column import Span
from tui.text.sanitize import ELLIPSIS, MAX_WRAPPED_LENGTH
from tui.widgets.tones import tone_styles

NAME_BREAKS = "-_/:=,"
"""Characters after which a name may be broken if it does not fit into a row."""

Row = tuple[int, int]
"""The range of a line's characters that a row shows: the first, and one past the last."""


def hanging_indent(text: str, cells: int) -> int:
    """Return the indent of the second and further rows of a line: two cells more than that of the first."""
    return min(len(text) - len(text.lstrip(" ")) + 2, cells // 2)


def break_line(text: str, cells: int, hanging: int) -> list[Row]:
    """Break a sanitized line into rows of at most ``cells``; further rows are ``hanging`` cells shorter.

    A row ends between words if it is at least half full, else after a character of ``NAME_BREAKS``, and
    inside a word only if the word is longer than a row. Spaces at the end of a row are dropped.
    """
    rows: list[Row] = []
    begin, room = 0, cells
    while True:
        piece = text[begin : begin + room]
        # chop_cells returns [] for a text that takes no cells, such as only combining marks.
        chopped = [piece] if piece.isascii() else chop_cells(piece, room) or [piece]
        end = begin + max(1, len(chopped[0]))
        if end >= len(text):
            return [*rows, (begin, len(text))]
        end = _end_of_row(text, begin, end, begin + room // 2, cells - hanging)
        rows.append((begin, end))
        begin = end
        while begin < len(text) and text[begin] == " ":
            begin += 1
        if begin == len(text):
            return rows
        room = max(1, cells - hanging)


def _end_of_row(text: str, begin: int, end: int, half: int, next_cells: int) -> int:
    """Return where a row from ``begin`` ends, if the text up to ``end`` fits.

    ``half`` is the middle of the row; the next row has ``next_cells``.
    """
    space = text.rfind(" ", begin, end + 1)
    if text[begin : max(begin, space)].isspace() or space <= begin:
        space = -1
    if space >= half:
        return space
    name_break = max(text.rfind(character, half, end) for character in NAME_BREAKS) + 1
    if name_break > begin:
        return name_break
    word = text[space + 1 : space + 2 + next_cells].partition(" ")[0]
    return space if space > begin and len(word) <= next_cells else end


Line = str | Text | Sequence[Span]
"""A line: sanitized text, styled text, or spans of text and tone."""


class TextPanel(ScrollView, can_focus=True):
    """A scrolling panel of wrapped lines. The lines must already be sanitized."""

    ALLOW_SELECT = False
    # Reserve space for the scroll bar: if wrapping made it appear, it would change the width again.
    DEFAULT_CSS = """
    TextPanel {
        background: $background; color: $foreground; scrollbar-size: 0 1; scrollbar-gutter: stable;
        overflow-x: hidden; padding: 0;
        &:focus { background: $surface; }
        &:ansi { background: ansi_default; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_down", "down", show=False),
        Binding("up,k", "scroll_up", "up", show=False),
        Binding("home,g", "scroll_home", "top", show=False),
        Binding("end,G", "scroll_end", "bottom", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()
        self._width = 0
        self._first_rows: list[int] = []
        """For each line, the index of its first row."""
        self._rows_by_line: dict[int, list[Row]] = {}
        """The rows of each line that does not fit into one row."""

    @property
    def lines(self) -> Sequence[Line]:
        return self._lines

    def set_lines(self, lines: Sequence[Line], *, keep_place: bool = False) -> None:
        """Show these lines, scrolled to the top unless ``keep_place``."""
        self._lines = lines
        if not keep_place:
            self.scroll_to(y=0, animate=False, force=True)
        self._break_lines()

    def on_resize(self) -> None:
        if self.scrollable_content_region.width != self._width:
            top = self._line_at(self.scroll_offset.y)
            self._break_lines()
            if top:
                self.scroll_to(y=self._first_rows[top], animate=False, force=True)

    def _break_lines(self) -> None:
        self._width = width = self.scrollable_content_region.width
        self._first_rows, self._rows_by_line, row = [], {}, 0
        for number, line in enumerate(self._lines):
            self._first_rows.append(row)
            text = _plain(line)
            if width and not (len(text) <= width if text.isascii() else cell_len(text) <= width):
                self._rows_by_line[number] = break_line(text, width, _hanging(line, width))
                row += len(self._rows_by_line[number])
            else:
                row += 1
        self.virtual_size = Size(0, row)
        self.refresh(layout=self.styles.auto_dimensions)

    def _line_at(self, row: int) -> int:
        return max(0, bisect_right(self._first_rows, row) - 1)

    def render_line(self, y: int) -> Strip:
        width, base = self.scrollable_content_region.width, self.rich_style
        row = y + self.scroll_offset.y
        if row >= self.virtual_size.height or not self._lines:
            return Strip.blank(width, base)
        number = self._line_at(row)
        line, row_of_line = self._lines[number], row - self._first_rows[number]
        begin, end = self._rows_by_line[number][row_of_line] if number in self._rows_by_line else (0, None)
        indent = " " * _hanging(line, width) if row_of_line else ""
        segments = [Segment(indent, base), *self._segments(line, begin, end, base)]
        return Strip(segments).adjust_cell_length(width, base)

    def _segments(self, line: Line, begin: int, end: int | None, base: Style) -> Iterator[Segment]:
        if isinstance(line, str):
            line = Text(line, end="")
        elif not isinstance(line, Text):
            tones = tone_styles(self.app)
            line = Text.assemble(*((text, tones.get(tone, Style.null())) for text, tone in line))
        for text, style, _ in line[begin:end].render(self.app.console, end=""):
            yield Segment(text, base + (style or Style.null()))


def _plain(line: Line) -> str:
    if isinstance(line, str):
        return line
    return line.plain if isinstance(line, Text) else "".join(text for text, _ in line)


def _hanging(line: Line, width: int) -> int:
    """Return the indent of further rows: below the value of a "name value" line, unless the name is long."""
    if not isinstance(line, str | Text) and len(line) > 1:
        name = line[0][0]
        if name.endswith(" ") and len(name) <= 0.4 * width:
            return len(name)
    return hanging_indent(_plain(line), width)


MAX_SCREEN_SHARE = 0.4
"""Maximum height of a ``WrappedText`` as a fraction of the screen, so that the rest stays visible."""


def wrapped_rows(text: Text, cells: int) -> list[Text]:
    """Break every line of a text into rows of at most ``cells``, between words where possible.

    The further rows of a line have the indent of its first row.
    """
    rows = []
    for line in text.split("\n", allow_blank=True):
        indent = min(len(line.plain) - len(line.plain.lstrip(" ")), cells // 2)
        first, *others = break_line(line.plain, max(1, cells), indent)
        rows += [line[slice(*first)], *(Text.assemble(" " * indent, line[slice(*row)]) for row in others)]
    return rows


def join_rows(rows: Sequence[Text], cells: int, max_rows: int) -> Text:
    """Join the first ``max_rows`` rows; if there are more, the last row ends in an ellipsis."""
    kept_rows = list(rows[:max_rows])
    if len(rows) > max_rows > 0:
        kept_rows[-1] = Text(" ").join(rows[max_rows - 1 :])
        kept_rows[-1].truncate(cells, overflow="ellipsis")
    return Text("\n", no_wrap=True, end="").join(kept_rows)


def truncated(text: str | Text) -> Text:
    """Return at most ``MAX_WRAPPED_LENGTH`` characters of a text, and an ellipsis if it was cut."""
    if isinstance(text, str):
        text = Text(text[: MAX_WRAPPED_LENGTH + 1])
    return text if len(text) <= MAX_WRAPPED_LENGTH else Text.assemble(text[:MAX_WRAPPED_LENGTH], ELLIPSIS)


class WrappedText(Widget):
    """Sanitized text that takes as many rows as it needs, up to ``MAX_SCREEN_SHARE`` of the screen.

    Use it for reasons, errors and questions: Textual's Static would cut a long text without an ellipsis.
    """

    DEFAULT_CSS = "WrappedText { width: 1fr; height: auto; }"

    def __init__(self, text: str | Text = "", *, scrolls: bool = False, id: str | None = None) -> None:
        """Create the widget; ``scrolls`` is True in a scrolling container, where the text is never cut."""
        super().__init__(id=id)
        self._scrolls = scrolls
        self._text = truncated(text)

    @property
    def text(self) -> Text:
        return self._text

    def update(self, text: str | Text) -> None:
        new_text = truncated(text)
        # Text.__eq__ ignores styles of a part of the text.
        if new_text != self._text or new_text.spans != self._text.spans:
            self._text = new_text
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        rows = len(wrapped_rows(self.text, width)) if self.text else 0
        return rows if self._scrolls else min(rows, max(1, int(viewport.height * MAX_SCREEN_SHARE)))

    def render(self) -> Text:
        width, height = self.size
        return join_rows(wrapped_rows(self.text, width), width, height)
