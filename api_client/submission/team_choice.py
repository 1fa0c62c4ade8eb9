"""Choose the team in which a submission creates its project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from api_client.errors import ConfigurationError, ErrorAnswer
from api_client.models import Team
from api_client.models import TrainingProject as CreatedProject
from api_client.submission.client import SubmissionClient

_NOT_FOR_US = frozenset(
    {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED}
)


@dataclass(frozen=True, slots=True)
class TeamChoice:
    """Team to create in; without an id, the server's default. ``warning`` says what was guessed."""

    team_id: str | None = None
    name: str | None = None
    warning: str | None = None


async def choose_team(client: SubmissionClient, *, project_name: str, wanted: str | None) -> TeamChoice:
    """Find the team with the id or name ``wanted``, or the one that already has the project.

    Raises ConfigurationError if there is no such team, or if several have such a project; RequestError.
    """
    teams = await _teams(client, must_know=wanted is not None)
    if wanted is not None:
        return _named_team(teams, wanted)
    # With at most one team there is no choice.
    projects = await client.projects.list() if len(teams) > 1 else []
    return _likely_team(teams, projects, project_name)


def _named_team(teams: Sequence[Team], wanted: str) -> TeamChoice:
    """Return the team with that id, else name. Raises ConfigurationError, which lists the existing teams."""
    for team in sorted(teams, key=lambda team: team.id != wanted):
        if wanted in (team.id, team.name):
            return TeamChoice(team.id, team.name)
    names = ", ".join(sorted(team.name for team in teams)) or "none visible to this key"
    raise ConfigurationError(f"no team '{wanted}' (known: {names})")


def _likely_team(teams: Sequence[Team], projects: Sequence[CreatedProject], project_name: str) -> TeamChoice:
    """Return the only team, or the one that has a project with that name, or the default.

    Raises ConfigurationError if several teams have such a project.
    """
    if len(teams) == 1:
        return _chosen(teams[0])
    by_name = {team.name: team for team in teams}
    homes = {
        project.team_name
        for project in projects
        if project.name == project_name and project.team_name in by_name
    }
    if len(homes) > 1:
        names = ", ".join(sorted(str(name) for name in homes))
        raise ConfigurationError(f"several teams have a project '{project_name}' ({names}); choose a team")
    for name in homes:
        return _chosen(by_name[str(name)])
    if len(teams) > 1:
        default = next((team.name for team in teams if team.default), None)
        where = f"the default team '{default}'" if default else "the default team"
        return TeamChoice(warning=f"'{project_name}' is a new project and goes to {where}")
    return TeamChoice()


def _chosen(team: Team) -> TeamChoice:
    # The plain route uses the default team, and every server supports it.
    return TeamChoice() if team.default else TeamChoice(team.id, team.name)


async def _teams(client: SubmissionClient, *, must_know: bool) -> list[Team]:
    """List all teams; none if the key or the server does not list them, unless ``must_know``."""
    try:
        return await client.account.teams()
    except ErrorAnswer as error:
        if must_know or error.status not in _NOT_FOR_US:
            raise
    return []
