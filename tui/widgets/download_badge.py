"""What is being downloaded, in a few words of the footer."""

from __future__ import annotations

from rich.text import Text
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui.insight.transfers import Transfers
from tui.widgets.tones import tone_styles


class DownloadBadge(Widget):
    """``↓ 2 files 43 % 112 MiB/s`` while something is under way. A click opens the list."""

    DEFAULT_CSS = """
    DownloadBadge { width: auto; height: 1; padding: 0 1; background: $surface; display: none; }
    """

    words: reactive[str] = reactive("", layout=True)

    class Pressed(Message):
        """A click on the badge."""

    def on_mount(self) -> None:
        """Screens of the dashboard know the downloads; a screen that does not has none to show."""
        if hasattr(self.screen, "downloads"):
            self.watch(self.screen, "downloads", self._show)

    def _show(self, downloads: Transfers) -> None:
        self.words = downloads.indicator()
        self.display = bool(self.words)

    def render(self) -> Text:
        """The words."""
        return Text(self.words, tone_styles(self.app)["running"], no_wrap=True, end="")

    def on_click(self) -> None:
        """Ask for the list."""
        self.post_message(self.Pressed())
