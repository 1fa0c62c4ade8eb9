"""A notice over the screen's content: why there is nothing to see, or why it is old."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text
from textual.reactive import var

from tui.insight.connection import Connection, Link, Refusal
from tui.insight.text import inert
from tui.widgets.tones import tone_styles
from tui.widgets.wrapped_text import WrappedText

OTHER_KEY = " bt-tui login takes another key."


class ConnectionNotice(WrappedText):
    """Some lines under the header while the server does not answer as it should."""

    DEFAULT_CSS = """
    ConnectionNotice {
        padding: 0 1; display: none;
        background: $error 15%;
        &:ansi { background: ansi_default; text-style: bold; }
        &.-visible { display: block; }
    }
    """

    connection: var[Connection] = var(Connection())

    def watch_connection(self, connection: Connection) -> None:
        """Only trouble shows, and costs nothing while there is none."""
        trouble = connection.link in (Link.LOST, Link.RETRYING, Link.UNAUTHORISED) or connection.stale
        self.set_class(bool(trouble), "-visible")
        if trouble:
            self.refresh(layout=True)

    @property
    def text(self) -> Text:
        """What happened, since when, and what goes on."""
        connection = self.connection
        tones = tone_styles(self.app)
        since = _clock(connection.failing_since)
        reason = inert(connection.reason).rstrip(".")
        kept = " What you see is the last known." if connection.answered_at else ""
        if connection.link is Link.UNAUTHORISED:
            said = reason or "The server refuses the key"
            return Text.assemble(
                (f"✗ Since {since}: " if since else "✗ ", tones["bad"]), f"{said}.{kept}{OTHER_KEY}", end=""
            )
        stale = connection.stale
        if stale and (connection.link is Link.LIVE or (connection.link is Link.LOST and connection.refusals)):
            return self._refused(stale)
        if connection.link in (Link.LIVE, Link.CONNECTING):
            return Text("", end="")  # painted once more before it is hidden, below another screen
        lead = "↻ No answer" if connection.link is Link.RETRYING else "✗ No answer"
        return Text.assemble(
            (f"{lead} since {since}: " if since else f"{lead}: ", tones["bad"]), f"{reason}.{kept}", end=""
        )

    def _refused(self, refusals: tuple[Refusal, ...]) -> Text:
        """The server is there, but some of what is shown is not to be had any more."""
        names = [one.what for one in refusals]
        named = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        first = min(refusals, key=lambda one: one.since)
        return Text.assemble(
            (f"✗ Not read anew since {_clock(first.since)}: {named}. ", tone_styles(self.app)["bad"]),
            f"{first.reason.rstrip('.')}. What you see of it is the last known; it is asked for again"
            " by itself.",
            end="",
        )


def _clock(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%H:%M:%S") if moment else ""
