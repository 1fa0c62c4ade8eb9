"""The notice about the connection."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

from textual.app import App, ComposeResult

from support.dashboard import text_of
from tui.analysis.connection import Connection, ConnectionState, StaleResource
from tui.widgets.notice import ConnectionNotice

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Noticing(App[None]):
    """Nothing but the notice."""

    def compose(self) -> ComposeResult:
        yield ConnectionNotice()


async def test_it_can_be_painted_at_any_time_even_when_nothing_is_wrong_any_more() -> None:
    """Below another screen it is painted once more before the layout hides it."""
    app = Noticing()
    async with app.run_test() as pilot:
        notice = app.query_one(ConnectionNotice)
        stale = (StaleResource("the log", "404", NOON),)
        for link, stale_resources in product(ConnectionState, ((), stale)):
            notice.connection = Connection(link, stale_resources=stale_resources)
            notice.display = True
            await pilot.pause()
            assert ("Stale since" in text_of(app)) == (
                bool(stale_resources) and link in (ConnectionState.LIVE, ConnectionState.LOST)
            )
