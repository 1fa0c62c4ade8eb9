"""Choose which jobs Home shows: all jobs of the remote, or the jobs of one team or project."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from textual.markup import escape

from tui.analysis.fleet.snapshot import FleetSnapshot, limited_to_team, teams_of
from tui.analysis.run.finding import HealthFinding
from tui.app.palette import open_palette
from tui.app.service import BaseApp, Service
from tui.feeds.fleet import FleetFeed
from tui.screens.home.screen import HomeScreen
from tui.screens.messages import OpenProjectRequested
from tui.tables.fleet import ALL_PROJECTS
from tui.text.units import counted

if TYPE_CHECKING:
    from api_client.models import TrainingJob

ALL_TEAMS = ""

Publish = Callable[[FleetSnapshot], object]


class Teams(Service):
    """Creates Home's feed, limits it to a team, and switches team or project.

    The team of each remote is remembered for the next start.
    """

    def __init__(self, app: BaseApp, *, demo: bool = False) -> None:
        super().__init__(app)
        self._is_demo = demo
        self._fleet: FleetSnapshot | None = None
        """The newest snapshot, with the jobs of all teams."""
        self._publish: Publish | None = None
        self._remote_name = app.session.remote_name if app.session is not None else ""
        self.team = app.memory.state.teams.get(self._remote_name, ALL_TEAMS)

    def label(self) -> str:
        """Return Home's title: the remote, the chosen team, and "demo data" in the demo."""
        parts = (self._remote_name, self.team, "demo data" if self._is_demo else "")
        return " · ".join(filter(None, parts))

    def create_feed(self, publish: Publish) -> FleetFeed:
        session, settings = self._app.session, self._app.settings.configuration
        assert session is not None
        self._publish = publish
        return FleetFeed(session, self._publish_team, settings.runs, list_interval_s=settings.refresh.fleet_s)

    def _publish_team(self, fleet: FleetSnapshot) -> None:
        self._fleet = fleet
        if self.team and self.team not in {team.name for team in teams_of(fleet.projects)}:
            self._choose_team(ALL_TEAMS)  # the remembered team no longer exists, or has no projects
        elif self._publish is not None:
            self._publish(limited_to_team(fleet, self.team))

    def recent_findings(self, job: TrainingJob) -> tuple[HealthFinding, ...]:
        """Return Home's findings for the job if they are at most two minutes old, else none."""
        fleet = self._fleet
        if fleet is None or datetime.now(UTC) - fleet.at > timedelta(minutes=2):
            return ()  # Home polls less often while it is hidden
        return next((row.findings for row in fleet.jobs if row.id == job.id), ())

    # User requests

    def choose(self) -> None:
        """Open the list of teams and projects."""
        fleet = self._fleet
        if fleet is None:
            self._app.notify("Projects are still loading.")
            return
        teams = teams_of(fleet.projects)
        running_count = sum(row.running for row in fleet.jobs)
        projects_text, jobs_text = counted(len(fleet.projects), "project"), counted(len(fleet.jobs), "job")
        totals_text = f"{projects_text}, {jobs_text}, {running_count} running"
        commands = [("all teams and projects", partial(self._show_team, ALL_TEAMS), totals_text)]
        commands += [
            (f"team {escape(team.name)}", partial(self._show_team, team.name), team.about) for team in teams
        ]
        for project in fleet.projects:
            description = f"{escape(project.team)} · " if project.team else ""
            description += f"{counted(project.jobs, 'job')}, {project.running} running"
            show_project = partial(self._show_project, project.id)
            commands.append((f"project {escape(project.name)}", show_project, description))
        open_palette(self._app, commands, "Which team or project?")

    async def _show_team(self, team: str) -> None:
        self._choose_team(team)
        await self._go_home(ALL_PROJECTS)

    def open_project(self, message: OpenProjectRequested) -> None:
        self._app.call_next(self._show_project, message.project_id)

    async def _show_project(self, project_id: str) -> None:
        fleet = self._fleet
        team_by_project = (
            {project.id: project.team for project in fleet.projects} if fleet is not None else {}
        )
        if self.team and team_by_project.get(project_id) != self.team:
            self._choose_team(ALL_TEAMS)
        await self._go_home(project_id)

    def _choose_team(self, team: str) -> None:
        self.team = team
        team_by_remote = {remote: name for remote, name in self._app.memory.state.teams.items() if name}
        self._app.memory.put(teams={**team_by_remote, self._remote_name: team})
        for screen in self._app.screen_stack:
            if isinstance(screen, HomeScreen):
                screen.show_remote(self.label())
        if self._fleet is not None and self._publish is not None:
            self._publish(limited_to_team(self._fleet, team))

    async def _go_home(self, project_id: str) -> None:
        if not any(isinstance(screen, HomeScreen) for screen in self._app.screen_stack):
            return
        while not isinstance(self._app.screen, HomeScreen):
            await self._app.pop_screen()
        self._app.screen.choose_project(project_id)
