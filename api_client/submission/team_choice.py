"""Choose the team in which a submission creates its project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from api_client.errors import ConfigurationError, ErrorAnswer
from api_client.models import Team
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
    try:
        teams = await client.account.teams()
    except ErrorAnswer as error:
        if wanted is not None or error.status not in _NOT_FOR_US:
            raise
        teams = []
    if wanted is not None:
        return _named_team(teams, wanted)
    if len(teams) <= 1:
        return _chosen(teams[0]) if teams else TeamChoice()
    homes = {project.team_name for project in await client.projects.list() if project.name == project_name}
    with_project = [team for team in teams if team.name in homes]
    if len(with_project) > 1:
        names = ", ".join(sorted(team.name for team in with_project))
        raise ConfigurationError(f"several teams have a project '{project_name}' ({names}); choose a team")
    if with_project:
        return _chosen(with_project[0])
    default = next((f" '{team.name}'" for team in teams if team.default), "")
    return TeamChoice(warning=f"'{project_name}' is a new project and goes to the default team{default}")


def _named_team(teams: Sequence[Team], wanted: str) -> TeamChoice:
    """Return the team with that id, else name. Raises ConfigurationError, which lists the existing teams."""
    for team in sorted(teams, key=lambda team: team.id != wanted):
        if wanted in (team.id, team.name):
            return TeamChoice(team.id, team.name)
    names = ", ".join(sorted(team.name for team in teams)) or "none visible to this key"
    raise ConfigurationError(f"no team '{wanted}' (known: {names})")


def _chosen(team: Team) -> TeamChoice:
    # The plain route uses the default team, and every server supports it.
    return TeamChoice() if team.default else TeamChoice(team.id, team.name)
