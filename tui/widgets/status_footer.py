"""The last line of every screen: what the keys do here, and how the connection stands."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.reactive import var
from textual.widget import Widget

from tui.insight.connection import Connection, Link
from tui.insight.units import age
from tui.widgets.download_badge import DownloadBadge
from tui.widgets.key_hints import KeyHints
from tui.widgets.tones import tone_styles

STALE_AFTER_S = 15.0
"""Longer without an answer than this, the data counts as old."""


class ConnectionBadge(Widget):
    """The connection in two or three words, counting down to the next try."""

    DEFAULT_CSS = """
    ConnectionBadge { width: auto; height: 1; padding: 0 1; background: $surface; }
    """

    connection: var[Connection] = var(Connection())
    _shown = ""

    def on_mount(self) -> None:
        """Ages are told in seconds: look once a second whether the words have changed."""
        self.set_interval(1.0, self._say)

    def watch_connection(self) -> None:
        """Every answer is news, but seldom changes the words."""
        self._say()

    def _say(self) -> None:
        if self._words()[0] != self._shown:
            self.refresh(layout=True)

    def render(self) -> Text:
        """The words, in a tone that fits; the sign alone tells them apart as well."""
        words, tone = self._words()
        self._shown = words
        return Text(words, tone_styles(self.app)[tone], no_wrap=True, end="")

    @property
    def words(self) -> str:
        """What the badge says now."""
        return self._words()[0]

    def _words(self) -> tuple[str, str]:
        connection, now = self.connection, datetime.now(UTC)
        match connection.link:
            case Link.CONNECTING:
                return "○ connecting", "muted"
            case Link.RETRYING:
                left = (connection.retry_at - now).total_seconds() if connection.retry_at else 0.0
                return f"↻ retrying in {round(left)} s" if round(left) > 0 else "↻ retrying", "warn"
            case Link.LOST:
                since = connection.failing_since
                return f"✗ offline {age((now - since).total_seconds())}" if since else "✗ offline", "bad"
            case Link.UNAUTHORISED:
                return "✗ key refused", "bad"
            case Link.LIVE:
                if connection.stale:
                    since = min(one.since for one in connection.stale)
                    return f"○ stale {age((now - since).total_seconds())}", "warn"
                quiet = (now - connection.answered_at).total_seconds() if connection.answered_at else 0.0
                if quiet > STALE_AFTER_S:
                    return f"○ stale {age(quiet)}", "warn"
                return "● live", "good"


class StatusFooter(Horizontal):
    """Key hints on the left; downloads, if there are any, and the connection on the right."""

    DEFAULT_CSS = """
    StatusFooter {
        dock: bottom; height: 1; background: $surface;
        & > KeyHints { background: $surface; }
    }
    """

    connection: var[Connection] = var(Connection())

    def compose(self) -> ComposeResult:
        """The hints read the bindings of whatever has the focus."""
        yield KeyHints()
        yield DownloadBadge()
        yield ConnectionBadge().data_bind(StatusFooter.connection)
