"""Which team a project belongs to, as the official client decides it without asking (API facts, 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from api_client.errors import BadRequest, ConfigurationError, ErrorAnswer, InvalidAnswer
from api_client.models import Team, TrainingProject
from api_client.resources.account import Account
from api_client.resources.graphql import Graphql
from api_client.resources.projects import Projects

_QUERY = "query Teams { teams { id name default } }"
_TEAMS = TypeAdapter(list[Team])
_NO_SUCH_ROUTE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED})
_NOT_FOR_US = _NO_SUCH_ROUTE | {HTTPStatus.FORBIDDEN}


@dataclass(frozen=True, slots=True)
class TeamChoice:
    """The team to create in; without an id, the server's default. ``warning`` says what was guessed."""

    team_id: str | None = None
    name: str | None = None
    warning: str | None = None


class TeamDirectory(Protocol):
    """The parts of a client that know of teams."""

    @property
    def account(self) -> Account:
        """Teams by REST."""
        ...

    @property
    def graphql(self) -> Graphql:
        """Teams by GraphQL."""
        ...

    @property
    def projects(self) -> Projects:
        """Projects and their teams."""
        ...


async def choose_team(directory: TeamDirectory, *, project_name: str, wanted: str | None) -> TeamChoice:
    """Find the team ``wanted`` by name, or the one that the project is in already.

    Raises ConfigurationError if there is no such team, or if several have such a project; RequestError.
    """
    teams = await _teams(directory, must_know=wanted is not None)
    if wanted is not None:
        return named_team(teams, wanted)
    # With one team or none there is nothing to choose between.
    projects = await directory.projects.list() if len(teams) > 1 else []
    return likely_team(teams, projects, project_name)


def named_team(teams: Sequence[Team], wanted: str) -> TeamChoice:
    """The team of that name. Raises ConfigurationError listing those there are."""
    for team in teams:
        if team.name == wanted:
            return TeamChoice(team.id, team.name)
    known = ", ".join(sorted(team.name for team in teams)) or "none that this key can see"
    raise ConfigurationError(f"there is no team '{wanted}'; the teams are: {known}")


def likely_team(teams: Sequence[Team], projects: Sequence[TrainingProject], project_name: str) -> TeamChoice:
    """The only team, or the one that has a project of that name, or the default.

    Raises ConfigurationError if several teams have such a project.
    """
    if len(teams) == 1:
        return _chosen(teams[0])
    by_name = {team.name: team for team in teams}
    homes = {each.team_name for each in projects if each.name == project_name and each.team_name in by_name}
    if len(homes) > 1:
        names = ", ".join(sorted(str(name) for name in homes))
        raise ConfigurationError(
            f"several teams have a project '{project_name}' ({names}): say which team is meant"
        )
    for name in homes:
        return _chosen(by_name[str(name)])
    if len(teams) > 1:
        default = next((team.name for team in teams if team.default), None)
        where = f"the default team '{default}'" if default else "the default team"
        return TeamChoice(warning=f"'{project_name}' is a new project: it goes to {where}")
    return TeamChoice()


def _chosen(team: Team) -> TeamChoice:
    # The plain route means the default team, and every server has that one.
    return TeamChoice() if team.default else TeamChoice(team.id, team.name)


async def _teams(directory: TeamDirectory, *, must_know: bool) -> list[Team]:
    """All teams, by REST or else as the official client asks for them; none if there are no such routes."""
    try:
        return await directory.account.teams()
    except ErrorAnswer as error:
        if error.status not in _NOT_FOR_US:
            raise
    try:
        data = await directory.graphql.execute(_QUERY)
        return _TEAMS.validate_python(data.get("teams") or [])
    except (ErrorAnswer, InvalidAnswer) as error:
        is_absent = isinstance(error, InvalidAnswer | BadRequest) or (
            isinstance(error, ErrorAnswer) and error.status in _NOT_FOR_US
        )
        if must_know or not is_absent:
            raise
    except ValidationError:
        if must_know:
            raise InvalidAnswer("the server's list of teams is not what it promises") from None
    return []
