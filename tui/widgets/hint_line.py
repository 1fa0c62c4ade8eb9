"""A tip for newcomers over the footer: a key and what it does. A click sends it away."""

from __future__ import annotations

from rich.text import Text
from textual.message import Message
from textual.reactive import var

from tui.widgets.tones import tone_styles
from tui.widgets.wrapped_text import WrappedText


class HintLine(WrappedText):
    """Shows ``keys`` and ``words``; nothing, and takes no room, without words."""

    DEFAULT_CSS = """
    HintLine { padding: 0 1; display: none; }
    HintLine.-visible { display: block; }
    """

    shown: var[tuple[str, str]] = var(("", ""))

    class Dismissed(Message):
        """Somebody wants to see this hint no more."""

    def watch_shown(self, shown: tuple[str, str]) -> None:
        """Other words, or none."""
        self.set_class(bool(shown[1]), "-visible")
        self.refresh(layout=True)

    @property
    def text(self) -> Text:
        """The hint."""
        tones = tone_styles(self.app)
        keys, words = self.shown
        return Text.assemble(
            ("tip  ", tones["accent"]),
            (keys, tones["key"]),
            (f" {words}", tones["muted"]),
        )

    def on_click(self) -> None:
        """Send it away."""
        self.post_message(self.Dismissed())
