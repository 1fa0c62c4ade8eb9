"""One line of tabs: the screen's views, each with its key."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget


class TabStrip(Widget):
    """Tabs in a single line; textual's own take two."""

    DEFAULT_CSS = """
    TabStrip {
        height: 1;
        width: 1fr;
        color: $text-muted;
        & > .tab-strip--active { color: $primary; text-style: bold underline; }
        & > .tab-strip--key { color: $text-muted; }
    }
    """
    COMPONENT_CLASSES = {"tab-strip--active", "tab-strip--key"}

    active: reactive[str] = reactive("")

    class Chosen(Message):
        """A click on a tab."""

        def __init__(self, tab_id: str) -> None:
            super().__init__()
            self.tab_id = tab_id

    def __init__(self, tabs: Sequence[tuple[str, str, str]], *, id: str | None = None) -> None:
        """``tabs`` are (id, key, label)."""
        super().__init__(id=id)
        self._tabs = tuple(tabs)
        self._edges: list[tuple[int, int, str]] = []

    def render(self) -> Text:
        """All tabs, the active one marked by more than its colour."""
        active = self.get_component_rich_style("tab-strip--active", partial=True)
        key_style = self.get_component_rich_style("tab-strip--key", partial=True)
        narrow = sum(len(label) + 5 for _, _, label in self._tabs) > self.size.width
        line = Text(no_wrap=True, overflow="ellipsis", end="")
        self._edges = []
        for tab_id, key, label in self._tabs:
            start = line.cell_len
            line.append(" ")
            if not narrow:
                line.append(f"{key} ", key_style)
            line.append(label, active if tab_id == self.active else "")
            line.append(" " if narrow else "  ")
            self._edges.append((start, line.cell_len, tab_id))
        return line

    def on_click(self, event: events.Click) -> None:
        """Choose the tab under the mouse."""
        for start, end, tab_id in self._edges:
            if start <= event.x < end:
                self.post_message(self.Chosen(tab_id))
