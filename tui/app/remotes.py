"""Switch to another remote; show one team or project on Home, or all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial

from textual import on, work
from textual.markup import escape
from textual.screen import Screen

from api_client.errors import ApiClientError
from api_client.remotes import Remote
from api_client.remotes.listing import list_remotes
from tui.actions.keymap import key_for
from tui.analysis.connection import Connection
from tui.analysis.fleet.snapshot import FleetSnapshot, of_team, teams_of
from tui.analysis.transfers import Transfers
from tui.app.opening import ScreensMixin
from tui.feeds.fleet import FleetFeed
from tui.readers.session import Session
from tui.screens.base import AppScreen
from tui.screens.home.columns import ALL_PROJECTS
from tui.screens.home.screen import HomeScreen
from tui.screens.messages import OpenProjectRequested
from tui.text.sanitize import sanitize

TEAM_MEMORY = "teams"
ALL_TEAMS = ""

Publish = Callable[[FleetSnapshot], object]


class TeamsMixin(ScreensMixin):
    """App mixin that restricts Home to the jobs of one team or project."""

    _fleet: FleetSnapshot | None = None
    """The newest listing, including all teams."""
    _publish_fleet: Publish | None = None
    _team = ALL_TEAMS
    _demo: bool

    def first_screen(self) -> Screen[None]:
        """Return Home of the session, with the team chosen last."""
        assert self._session is not None
        kept = self._memory.table(TEAM_MEMORY).get(self._session.place)
        self._team = kept if isinstance(kept, str) else ALL_TEAMS
        self._fleet = None
        return HomeScreen(self._feed_fleet, self._location_label(), self._memory)

    def _location_label(self) -> str:
        """Return the name that Home shows: the remote, the chosen team, and a mark for demo data."""
        assert self._session is not None
        words = (self._session.place, self._team, "demo data" if self._demo else "")
        return " · ".join(word for word in words if word)

    def _feed_fleet(self, publish: Publish) -> FleetFeed:
        wanted = self._settings.configuration
        assert self._session is not None
        self._publish_fleet = publish
        return FleetFeed(
            self._session,
            self._take_fleet_of_all,
            rules=wanted.health,
            patterns=wanted.progress_patterns,
            prices=wanted.prices,
            list_interval_s=wanted.refresh.fleet_s,
        )

    def _take_fleet_of_all(self, fleet: FleetSnapshot) -> None:
        self._fleet = fleet
        if self._team and self._team not in {team.name for team in teams_of(fleet.projects)}:
            self._choose_team(ALL_TEAMS)  # the remembered team no longer exists, or has no projects
        elif self._publish_fleet is not None:
            self._publish_fleet(of_team(fleet, self._team))

    # User requests

    async def action_switch_project(self) -> None:
        fleet = self._fleet
        if fleet is None:
            self.notify("Projects are still loading.")
            return
        teams = teams_of(fleet.projects)
        running = sum(row.running for row in fleet.jobs)
        everything = f"{len(fleet.projects)} projects, {len(fleet.jobs)} jobs, {running} running"
        commands = [("all teams and projects", partial(self._show_team, ALL_TEAMS), everything)]
        commands += [
            (f"team {escape(team.name)}", partial(self._show_team, team.name), team.about) for team in teams
        ]
        for project in fleet.projects:
            about = f"{escape(project.team)} · " if project.team else ""
            about += f"{project.jobs} jobs, {project.running} running"
            commands.append(
                (f"project {escape(project.name)}", partial(self._show_project, project.id), about)
            )
        self.search_commands(commands, placeholder="Which team or project?")

    async def _show_team(self, team: str) -> None:
        self._choose_team(team)
        await self._go_home(ALL_PROJECTS)

    async def _show_project(self, project_id: str) -> None:
        fleet = self._fleet
        known = {project.id: project.team for project in fleet.projects} if fleet is not None else {}
        if self._team and known.get(project_id) != self._team:
            self._choose_team(ALL_TEAMS)
        await self._go_home(project_id)

    @on(OpenProjectRequested)
    async def _open_project(self, message: OpenProjectRequested) -> None:
        await self._show_project(message.project_id)

    def _choose_team(self, team: str) -> None:
        assert self._session is not None
        self._team = team
        kept = {place: name for place, name in self._memory.table(TEAM_MEMORY).items() if name}
        self._memory.put(TEAM_MEMORY, {**kept, self._session.place: team})
        for screen in self.screen_stack:
            if isinstance(screen, HomeScreen):
                screen.show_place(self._location_label())
        if self._fleet is not None and self._publish_fleet is not None:
            self._publish_fleet(of_team(self._fleet, team))

    async def _go_home(self, project_id: str) -> None:
        """Close all screens above Home, and select the project there."""
        if not any(isinstance(screen, HomeScreen) for screen in self.screen_stack):
            return
        while not isinstance(self.screen, HomeScreen):
            await self.pop_screen()
        self.screen.choose_project(project_id)


LOCAL = "local"
NO_OTHER_REMOTES = "No remotes configured; bt-tui login adds one."
SLOW_SERVER_S = 1.0
"""Notify the user that the server is being asked if it takes longer than this."""
NOT_SWITCHED_TOAST_S = 15.0
OWN_GROUPS = ("downloads", "ask about a download", "find job", "compare", "act", "batch")
"""Groups of the app's workers that belong to a session."""


class RemotesMixin(TeamsMixin):
    """App mixin that switches to another remote."""

    _own_emulator: Callable[[], Remote] | None = None
    """Starts the local emulator if it is not running, and blocks until then; None if it is not available."""

    def _connection_changed(self, connection: Connection) -> None:
        self.connection = connection

    def _session_with(self, remote: Remote) -> Session:
        return Session(remote, on_connection=self._connection_changed, read_only_by=self._read_only_by)

    @work(group="list remotes", exclusive=True, exit_on_error=False)
    async def action_switch_remote(self) -> None:
        """Choose among the remotes from the environment and the configuration files."""
        listing = await asyncio.to_thread(list_remotes, environ=os.environ)
        commands: list[tuple[str, Callable[[], object], str]] = []
        for one in listing.remotes:
            if one.remote is None:
                continue
            about = f"{one.remote.app_url} · from {one.remote.key_origin}"
            commands.append(
                (escape(sanitize(one.name)), partial(self._switch_to, one.remote), escape(sanitize(about)))
            )
        if self._own_emulator is not None and LOCAL not in {one.name for one in listing.remotes}:
            about = "the emulator on this machine; started if needed, keeps its data"
            commands.append((LOCAL, self._switch_to_own_emulator, about))
        if commands:
            self.search_commands(commands, placeholder="Switch to which remote?")
        else:
            self.notify(NO_OTHER_REMOTES, severity="warning")

    @work(group="start emulator", exclusive=True, exit_on_error=False)
    async def _switch_to_own_emulator(self) -> None:
        """Start the local emulator if it is not running, and switch to it."""
        assert self._own_emulator is not None
        self.notify("Connecting to the local emulator…")
        self._switch_to(await asyncio.to_thread(self._own_emulator))

    @work(group="switch remote", exclusive=True, exit_on_error=False)
    async def _switch_to(self, remote: Remote) -> None:
        """Switch to a remote if it answers and accepts the key; otherwise report the error and stay."""
        if self._has_downloads_under_way():
            return
        try:
            session = self._session_with(remote)
        except ApiClientError as error:
            self._report_not_switched(remote, error)
            return
        session.detach()
        try:
            await self._checked(session)
        except ApiClientError as error:
            await session.aclose()
            self._report_not_switched(remote, error)
        except BaseException:
            await session.aclose()
            raise
        else:
            if self._has_downloads_under_way():
                await session.aclose()
            else:
                await self._continue_with(session)

    async def _checked(self, session: Session) -> None:
        """Return once the session's server answers; raises the client's errors."""
        checking = asyncio.create_task(session.check())
        try:
            done, _ = await asyncio.wait({checking}, timeout=SLOW_SERVER_S)
            if not done:
                self.notify(f"Connecting to {session.place}…")
            await checking
        finally:
            checking.cancel()

    def _has_downloads_under_way(self) -> bool:
        """Return True if switching would end downloads, and notify the user of it."""
        if self.downloads.under_way:
            key = key_for("app.show_downloads", self._keys)
            self.notify(f"Downloads are running and would be canceled. {key} shows them.", severity="warning")
        return bool(self.downloads.under_way)

    def _report_not_switched(self, remote: Remote, error: ApiClientError) -> None:
        stays = f"\nStill on {self._session.place}." if self._session is not None else ""
        self.notify(
            f"{sanitize(str(error)).rstrip('.')}.{stays}",
            title=f"Can't switch to {sanitize(remote.name)}",
            severity="error",
            timeout=NOT_SWITCHED_TOAST_S,
        )

    async def _continue_with(self, session: Session) -> None:
        """Open Home for the session, and close everything that belongs to the previous one."""
        before = self._session
        if before is not None:
            before.detach()
        for group in OWN_GROUPS:
            self.workers.cancel_group(self, group)
        while len(self.screen_stack) > 2:
            await self.pop_screen()
        self._session = session
        self._downloads_feed, self._runs_read, self._demo = None, None, False
        self.downloads, self.connection = Transfers(), Connection()
        session.attach(self._connection_changed)
        first = self.first_screen()
        if isinstance(first, AppScreen):
            first.change_keys(self._keys)
        self.begin_history(first)
        await self.switch_screen(first)
        if before is not None:
            await before.aclose()
