"""Training projects: list, get, create if missing, delete."""

from __future__ import annotations

from pydantic import TypeAdapter

from api_client.addresses import route
from api_client.http.retry import RetryPolicy
from api_client.http.transport import Transport
from api_client.models import ProjectTombstone
from api_client.models.base import answer_with, answer_with_list
from api_client.models.jobs import TrainingProject

_ROUTE = "training_projects"
_PROJECTS = answer_with_list("training_projects", TrainingProject)
_PROJECT = answer_with("training_project", TrainingProject)
_TOMBSTONE = TypeAdapter(ProjectTombstone)

ProjectList = list[TrainingProject]


class Projects:
    """Projects of the key's teams. Every method raises RequestError."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(self, *, retry: RetryPolicy | None = None) -> ProjectList:
        """Return all projects, in the server's order (the API has no paging here)."""
        return await self._transport.request("GET", route(_ROUTE), _PROJECTS, retry=retry)

    async def get(self, project_id: str) -> TrainingProject:
        """Return a project."""
        return await self._transport.request("GET", route(_ROUTE, project_id), _PROJECT)

    async def upsert(
        self, name: str, *, team_id: str | None = None, team_name: str | None = None
    ) -> TrainingProject:
        """Return the project with that name, creating it if necessary, by default in the default team.

        ``team_id`` decides the team. ``team_name`` is only sent along, as the official client does.
        """
        path = route(_ROUTE) if team_id is None else route("teams", team_id, _ROUTE)
        project = {"name": name} if team_name is None else {"name": name, "team_name": team_name}
        body = {"training_project": project}
        return await self._transport.request("POST", path, _PROJECT, body=body)

    async def delete(self, project_id: str) -> ProjectTombstone:
        """Delete a project with its jobs, undeployed checkpoints, and cache. Cannot be undone."""
        return await self._transport.request("DELETE", route(_ROUTE, project_id), _TOMBSTONE)
