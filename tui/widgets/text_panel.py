"""Lines of text to scroll through, drawn as they come into sight: any length costs a screenful."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.insight.text import clip
from tui.widgets.tones import Span, tone_styles

Line = str | Text | Sequence[Span]
"""A line: inert text, a text with styles of its own, or toned spans."""

_PAN_CELLS = 8


class TextPanel(ScrollView, can_focus=True):
    """A scrolling panel of lines that are not wrapped; the caller makes them inert."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    TextPanel {
        background: $background; color: $foreground; scrollbar-size: 0 1; overflow-x: hidden; padding: 0;
        &:focus { background: $surface; }
        &:ansi { background: ansi_default; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_down", "down", show=False),
        Binding("up,k", "scroll_up", "up", show=False),
        Binding("home,g", "scroll_home", "top", show=False),
        Binding("end,G", "scroll_end", "bottom", show=False),
        Binding("right,l", "pan(1)", "right", show=False),
        Binding("left,h", "pan(-1)", "left", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()
        self._pan = 0

    @property
    def lines(self) -> Sequence[Line]:
        """What it shows."""
        return self._lines

    def set_lines(self, lines: Sequence[Line], *, keep_place: bool = False) -> None:
        """Show these lines, from the top unless the place is to be kept."""
        self._lines = lines
        if not keep_place:
            self._pan = 0
            self.scroll_to(y=0, animate=False, force=True)
        self.virtual_size = Size(0, len(lines))
        self.refresh()

    def action_pan(self, steps: int) -> None:
        """Look at what is further right or left."""
        self._pan = max(0, self._pan + steps * _PAN_CELLS)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        width, base = self.scrollable_content_region.width, self.rich_style
        index = y + self.scroll_offset.y
        if index >= len(self._lines):
            return Strip.blank(width, base)
        line = self._lines[index]
        if isinstance(line, Text):
            segments = list(line.render(self.app.console, end=""))
            strip = Strip([Segment(text, base + (style or Style.null())) for text, style, _ in segments])
        elif isinstance(line, str):
            # No more of a line of megabytes is looked at than can be seen.
            strip = Strip([Segment(clip(line, self._pan + width), base)])
        else:
            tones = tone_styles(self.app)
            strip = Strip([Segment(text, base + tones.get(tone, Style.null())) for text, tone in line])
        return strip.crop(self._pan, self._pan + width).adjust_cell_length(width, base)
