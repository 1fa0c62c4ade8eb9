"""Run the dashboard on fixed data, with Textual's pilot at the keyboard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import textual.pilot
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input, TextArea

from api_client.deployment import DeployAnswers
from support.worlds import StubFleetFeed, StubRunFeed, fleet, run
from tui.analysis.connection import Connection, ConnectionState
from tui.analysis.fleet.snapshot import FleetSnapshot
from tui.analysis.run.snapshot import RunSnapshot
from tui.app import BtTuiApp
from tui.feeds.deployment import DeployFeed
from tui.forms.deployment import DeployForm
from tui.readers.session import Session
from tui.screens.base import AppScreen
from tui.screens.deploy.screen import DeployScreen
from tui.screens.home.screen import HomePage, HomeScreen
from tui.screens.job.screen import JobScreen
from tui.settings.model import Configuration, Loaded
from tui.widgets.log_view.view import LogView

LIVE = Connection(ConnectionState.LIVE, answered_at=None)
READ_ONLY = Loaded(Configuration(readonly=True), {"readonly": "flag --readonly"})


class Dashboard(BtTuiApp):
    """The real app, its first screen on a stub's feed; what it is asked to do is noted, not done."""

    def __init__(
        self, first: Callable[[], Screen[None]], *, connection: Connection = LIVE, **options: Any
    ) -> None:
        super().__init__(None, **options)
        self._first = first
        self.connection = connection

    def first_screen(self) -> Screen[None]:
        return self._first()


def screen_view(make: Callable[[], AppScreen], connection: Connection = LIVE, **options: Any) -> Dashboard:
    def first() -> Screen[None]:
        screen = make()
        screen.connection = connection
        return screen

    return Dashboard(first, connection=connection, **options)


class StubFeed:
    """Publishes one snapshot when it runs, and the next at each refresh."""

    def __init__(self, *snapshots: Any, publish: Callable[[Any], object]) -> None:
        self.snapshots, self.publish = list(snapshots), publish

    async def run(self) -> None:
        self.refresh()
        await asyncio.Event().wait()

    def refresh(self) -> None:
        if self.snapshots:
            self.publish(self.snapshots.pop(0))


def home(snapshot: FleetSnapshot | None = None, **options: Any) -> Dashboard:
    shown = fleet() if snapshot is None else snapshot

    def first() -> AppScreen:
        """Open the page, which reads the settings."""
        feed = partial(StubFleetFeed, shown)
        return HomePage().open(replace(app.navigation.services, fleet_feed=feed, label=lambda: "acme"))

    app = screen_view(first, **options)
    return app


def loading_home(connection: Connection) -> Dashboard:
    return screen_view(lambda: HomeScreen(partial(StubFleetFeed, None), "acme"), connection)


def job_view(snapshot: RunSnapshot | None = None, *, tab: str = "live", **feed: Any) -> Dashboard:
    shown = run() if snapshot is None else snapshot
    return screen_view(lambda: JobScreen(shown.job, partial(StubRunFeed, shown, **feed), tab=tab))


class StubDeployFeed(DeployFeed):
    """The feed at one question of the form, from which it continues; it sends no requests."""

    def __init__(self, form: DeployForm, **callbacks: Callable[[Any], object]) -> None:
        super().__init__(cast(Session, SimpleNamespace(clock=None)), DeployAnswers(), **callbacks)
        self._first = replace(form, always_asked=frozenset({form.current}))

    async def begin(self) -> None:
        self.show(self._first)


def deploy_view(form: DeployForm) -> Dashboard:
    return screen_view(lambda: DeployScreen(partial(StubDeployFeed, form), "acme"))


class Heard:
    """A message hook that keeps the messages of some kinds, each once."""

    def __init__(self, *kinds: type[Message]) -> None:
        self.kinds, self.messages = kinds, list[Any]()

    def __call__(self, message: Message) -> None:
        if isinstance(message, self.kinds) and all(message is not one for one in self.messages):
            self.messages.append(message)


def text_of(app: BtTuiApp) -> str:
    visible_screen_stack.set(app._background_screens)  # seen through a dialog
    lines = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in lines)


class Pictures:
    """Counts what dashboards draw: a picture that would not be drawn again need not be compared."""

    drawn = 0


render_update = Compositor.render_update


def noted(compositor: Compositor, full: bool = False, **options: Any) -> Any:
    """Draw nothing but whole pictures: no terminal shows a change, and ``text_of`` draws what a test sees."""
    if full:
        picture = render_update(compositor, full, **options)
        Pictures.drawn += picture is not None
        return picture
    Pictures.drawn += bool(compositor._dirty_regions)
    compositor._dirty_regions.clear()
    return None


Compositor.render_update = noted  # type: ignore[method-assign]


async def settle(pilot: Pilot[Any]) -> None:
    """Let messages, layout, the search of a log and their consequences come to rest."""
    await pilot.pause()
    for _ in range(2):  # without asking every widget again, which takes most of a pause
        await textual.pilot.wait_for_idle(0)
        pilot.app.screen._on_timer_update()
    while any(worker.group == "search" and not worker.is_finished for worker in pilot.app.workers):
        await pilot.pause()
    while getattr(pilot.app.screen, "_sync_timer", None) is not None:  # the charts follow the log's cursor
        await pilot.pause(0.02)
    for widget in pilot.app.screen.walk_children():  # three queries would match each of them
        if isinstance(widget, LogView):
            widget._paint()
        elif isinstance(widget, Input | TextArea):
            widget.cursor_blink = False  # a picture must not depend on when it is taken
    shown = ""
    for number in range(20):  # a layout may have been drawn in part
        drawn = Pictures.drawn
        await pilot.pause(0.02)
        if number and drawn == Pictures.drawn:
            return
        if number:  # a clock that goes on draws the same again
            shown, before = text_of(cast(BtTuiApp, pilot.app)), shown
            if shown == before:
                return


@asynccontextmanager
async def opened(
    app: Dashboard, size: tuple[int, int] = (80, 24), **options: Any
) -> AsyncIterator[Pilot[Any]]:
    async with app.run_test(size=size, **options) as pilot:
        await settle(pilot)
        yield pilot


async def pressed(pilot: Pilot[Any], *keys: str) -> str:
    """Press keys; return what is on the screen once it is at rest."""
    await pilot.press(*keys)
    await settle(pilot)
    return text_of(cast(BtTuiApp, pilot.app))


async def resized(pilot: Pilot[Any], width: int, height: int) -> str:
    """Give the terminal another size; return what is on the screen then."""
    await pilot.resize_terminal(width, height)
    return await pressed(pilot)


async def published(pilot: Pilot[Any], snapshot: RunSnapshot) -> str:
    """Let a newer state of the run arrive; return what is on the job screen then."""
    pilot.app.screen.post_message(JobScreen.Published(snapshot))
    return await pressed(pilot)
