"""A notice over the screen's content: why there is nothing to see, or why it is old."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text
from textual.reactive import var
from textual.widget import Widget

from tui.insight.connection import Connection, Link
from tui.insight.text import inert
from tui.widgets.tones import tone_styles


class ConnectionNotice(Widget):
    """One or two lines under the header while the server does not answer as it should."""

    DEFAULT_CSS = """
    ConnectionNotice {
        height: auto; max-height: 3; width: 1fr; padding: 0 1; display: none;
        background: $error 15%;
        &:ansi { background: ansi_default; text-style: bold; }
        &.-visible { display: block; }
    }
    """

    connection: var[Connection] = var(Connection())

    def watch_connection(self, connection: Connection) -> None:
        """Only trouble shows, and costs nothing while there is none."""
        trouble = connection.link in (Link.LOST, Link.RETRYING, Link.UNAUTHORISED)
        self.set_class(trouble, "-visible")
        if trouble:
            self.refresh(layout=True)

    def render(self) -> Text:
        """What happened, since when, and what goes on."""
        connection = self.connection
        tones = tone_styles(self.app)
        since = _clock(connection.failing_since)
        reason = inert(connection.reason)
        if connection.link is Link.UNAUTHORISED:
            return Text.assemble(("✗ ", tones["bad"]), reason or "The server refuses the key.", end="")
        lead = "↻ No answer" if connection.link is Link.RETRYING else "✗ No answer"
        kept = " What you see is the last known." if connection.answered_at else ""
        return Text.assemble(
            (f"{lead} since {since}: " if since else f"{lead}: ", tones["bad"]), f"{reason}.{kept}", end=""
        )


def _clock(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%H:%M:%S") if moment else ""
