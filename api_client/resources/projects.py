"""Training projects: list, get, create if missing, delete."""

from __future__ import annotations

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict

from api_client.addresses import route
from api_client.http.retry import RetryPolicy
from api_client.http.transport import Transport
from api_client.models import ProjectTombstone
from api_client.models.base import TOLERANT
from api_client.models.jobs import TrainingProject


@with_config(TOLERANT)
class ProjectsAnswer(TypedDict):
    """``GET /v1/training_projects``."""

    training_projects: list[TrainingProject] | None


@with_config(TOLERANT)
class ProjectAnswer(TypedDict):
    """A project after a get or upsert request."""

    training_project: TrainingProject


PROJECTS = TypeAdapter(ProjectsAnswer)
PROJECT = TypeAdapter(ProjectAnswer)


_PROJECTS = "training_projects"
_TOMBSTONE = TypeAdapter(ProjectTombstone)

ProjectList = list[TrainingProject]


class Projects:
    """Projects of the key's teams. Every method raises RequestError."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self, *, retry: RetryPolicy | None = None) -> ProjectList:
        """Return all projects, in the server's order (the API has no paging here)."""
        answer = await self._transport.request("GET", route(_PROJECTS), PROJECTS, retry=retry)
        return answer["training_projects"] or []

    async def get(self, project_id: str) -> TrainingProject:
        """Return a project."""
        path = route(_PROJECTS, project_id)
        return (await self._transport.request("GET", path, PROJECT))["training_project"]

    async def upsert(
        self, name: str, *, team_id: str | None = None, team_name: str | None = None
    ) -> TrainingProject:
        """Return the project with that name, creating it if necessary, by default in the default team.

        ``team_id`` decides the team. ``team_name`` is only sent along, as the official client does.
        """
        path = route(_PROJECTS) if team_id is None else route("teams", team_id, _PROJECTS)
        project = {"name": name} if team_name is None else {"name": name, "team_name": team_name}
        body = {"training_project": project}
        return (await self._transport.request("POST", path, PROJECT, body=body))["training_project"]

    async def delete(self, project_id: str) -> ProjectTombstone:
        """Delete a project with its jobs, undeployed checkpoints, and cache. Cannot be undone."""
        return await self._transport.request("DELETE", route(_PROJECTS, project_id), _TOMBSTONE)
