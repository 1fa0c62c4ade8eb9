"""The notice that the server is unreachable or rejects requests, or that this machine's clock is wrong."""

from __future__ import annotations

from rich.text import Text
from textual.reactive import var

from tui.analysis.connection import Connection, ConnectionState
from tui.text.sanitize import sanitize
from tui.text.times import TIME_OF_DAY, local_time
from tui.text.units import duration
from tui.widgets.text_panel import WrappedText
from tui.widgets.tones import tone_styles


class ConnectionNotice(WrappedText):
    """Shown while the server is unreachable or rejects requests, or its clock and this machine's differ."""

    DEFAULT_CSS = """
    ConnectionNotice {
        padding: 0 1; display: none;
        background: $error 15%;
        &:ansi { background: ansi_default; text-style: bold; }
        &.-visible { display: block; }
    }
    """

    connection: var[Connection] = var(Connection())

    def watch_connection(self) -> None:
        is_visible = bool(self.text)
        self.set_class(is_visible, "-visible")
        if is_visible:
            self.refresh(layout=True)

    @property
    def text(self) -> Text:
        cause, rest = self._cause_and_consequence(self.connection)
        tone = "warn" if cause.startswith("▲") else "bad"
        return Text.assemble((cause, tone_styles(self.app)[tone]), rest, end="")

    def _cause_and_consequence(self, connection: Connection) -> tuple[str, str]:
        """Return the cause of the notice, and the rest of its text; two empty texts without a problem."""
        link, stale = connection.link, connection.stale
        since = local_time(connection.failing_since, TIME_OF_DAY)
        reason = sanitize(connection.reason).rstrip(".")
        stale_note = " Showing last known data." if connection.answered_at else ""
        if link is ConnectionState.UNAUTHORIZED:
            why = reason or "The server refuses the key"
            return (
                f"✗ Since {since}: " if since else "✗ ",
                f"{why}.{stale_note} Replace the key where it comes from.",
            )
        is_live = link is ConnectionState.LIVE
        if stale and (is_live or (link is ConnectionState.LOST and connection.stale_resources)):
            names = [resource.name for resource in stale]
            joined_names = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
            first = min(stale, key=lambda resource: resource.since)
            return (
                f"✗ Not updated since {local_time(first.since, TIME_OF_DAY)}: {joined_names}",
                f" – {first.reason.rstrip('.')}. Retrying automatically.",
            )
        if is_live and connection.clock_ahead_s:
            difference = duration(abs(connection.clock_ahead_s))
            relation = "ahead of" if connection.clock_ahead_s > 0 else "behind"
            return (
                f"▲ This machine's clock is {difference} {relation} the server's. ",
                "Set it: ages, charts and alerts are wrong.",
            )
        if is_live or link is ConnectionState.CONNECTING:
            return "", ""
        lead = "↻ No answer" if link is ConnectionState.RETRYING else "✗ No answer"
        return f"{lead} since {since}: " if since else f"{lead}: ", f"{reason}.{stale_note}"
