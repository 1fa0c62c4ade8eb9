"""The notice that the server is unreachable or rejects requests, or that the clock is off."""

from __future__ import annotations

from rich.text import Text
from textual.reactive import var

from tui.analysis.connection import Connection, ConnectionState, StaleResource
from tui.text.sanitize import sanitize
from tui.text.times import TIME_OF_DAY, local_time
from tui.text.units import duration
from tui.widgets.text_panel import WrappedText
from tui.widgets.tones import tone_styles

OTHER_KEY = " Replace the key where it comes from."


class ConnectionNotice(WrappedText):
    """Lines below the header while the server is unreachable, rejects requests or has another time."""

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
        trouble = (
            connection.link in (ConnectionState.LOST, ConnectionState.RETRYING, ConnectionState.UNAUTHORIZED)
            or connection.stale
            or connection.clock_ahead_s
        )
        self.set_class(bool(trouble), "-visible")
        if trouble:
            self.refresh(layout=True)

    @property
    def text(self) -> Text:
        connection = self.connection
        tones = tone_styles(self.app)
        since = local_time(connection.failing_since, TIME_OF_DAY)
        reason = sanitize(connection.reason).rstrip(".")
        stale_note = " Showing last known data." if connection.answered_at else ""
        if connection.link is ConnectionState.UNAUTHORIZED:
            why = reason or "The server refuses the key"
            return Text.assemble(
                (f"✗ Since {since}: " if since else "✗ ", tones["bad"]),
                f"{why}.{stale_note}{OTHER_KEY}",
                end="",
            )
        stale = connection.stale
        if stale and (
            connection.link is ConnectionState.LIVE
            or (connection.link is ConnectionState.LOST and connection.stale_resources)
        ):
            return self._refused(stale)
        if connection.link is ConnectionState.LIVE and connection.clock_ahead_s:
            return self._wrong_clock(connection.clock_ahead_s)
        if connection.link in (ConnectionState.LIVE, ConnectionState.CONNECTING):
            return Text("", end="")  # painted once more before it is hidden, below another screen
        lead = "↻ No answer" if connection.link is ConnectionState.RETRYING else "✗ No answer"
        return Text.assemble(
            (f"{lead} since {since}: " if since else f"{lead}: ", tones["bad"]),
            f"{reason}.{stale_note}",
            end="",
        )

    def _wrong_clock(self, ahead_s: float) -> Text:
        way = "ahead of" if ahead_s > 0 else "behind"
        return Text.assemble(
            (
                f"▲ This machine's clock is {duration(abs(ahead_s))} {way} the server's. ",
                tone_styles(self.app)["warn"],
            ),
            "Set it: ages, charts and alerts are wrong.",
            end="",
        )

    def _refused(self, stale_resources: tuple[StaleResource, ...]) -> Text:
        names = [resource.what for resource in stale_resources]
        named = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        first = min(stale_resources, key=lambda resource: resource.since)
        since = local_time(first.since, TIME_OF_DAY)
        return Text.assemble(
            (f"✗ Stale since {since}: {named}", tone_styles(self.app)["bad"]),
            f" – {first.reason.rstrip('.')}. Showing last known data; retrying automatically.",
            end="",
        )
