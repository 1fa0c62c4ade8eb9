"""The switch of a screen's time range: all its charts show the range that is highlighted."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui.screens.charts.view import PRESETS, ChartView, option_words, range_words
from tui.widgets.charts.ticks import Window

GAP = "  "


class RangeSwitch(Widget):
    """Shows the lengths to choose from, and what else is special about the charts."""

    DEFAULT_CSS = """
    RangeSwitch {
        height: 1;
        width: auto;
        color: $text-muted;
        & > .range-switch--active { color: $primary; text-style: bold underline; }
    }
    """
    COMPONENT_CLASSES = {"range-switch--active"}

    view: reactive[ChartView] = reactive(ChartView(), layout=True)
    brief: reactive[bool] = reactive(False, layout=True)
    """True to show only the length that is chosen."""

    @dataclass
    class Chosen(Message):
        """A length was clicked."""

        window: Window

    def _text(self) -> tuple[Text, list[tuple[int, int, Window]]]:
        active = self.get_component_rich_style("range-switch--active", partial=True)
        window, text = self.view.window, Text(no_wrap=True, end="")
        presets = [Window(), *(Window(span) for span in reversed(PRESETS))]
        if self.brief:
            presets = [window]
        special = option_words(self.view)
        if window not in presets:
            special.insert(0, range_words(window))
        if special:
            text.append(" · ".join(special) + GAP)
        edges = []
        for preset in presets:
            start = text.cell_len
            text.append(range_words(preset), active if preset == window else "")
            edges.append((start, text.cell_len, preset))
            text.append(GAP)
        text.right_crop(len(GAP) - 1)
        return text, edges

    def render(self) -> Text:
        return self._text()[0]

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return self._text()[0].cell_len

    def on_click(self, event: events.Click) -> None:
        for start, end, window in self._text()[1]:
            if start <= event.x < end:
                self.post_message(self.Chosen(window))
