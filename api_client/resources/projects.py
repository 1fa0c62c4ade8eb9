"""Training projects, and the content of their caches."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ConfigDict, TypeAdapter

from api_client.addresses import route
from api_client.errors import NotFound
from api_client.http.decoding import LARGE
from api_client.http.retry import RetryPolicy
from api_client.http.transport import Transport
from api_client.models import CacheSummary, ProjectTombstone
from api_client.models.base import answer_with
from api_client.models.cache import CacheListing
from api_client.models.jobs import TrainingProject
from api_client.resources.partial_lists import ListReader

_ROUTE = "training_projects"
_PROJECTS = ListReader("training_projects", TrainingProject)
_PROJECT = answer_with("training_project", TrainingProject)
_TOMBSTONE = TypeAdapter(ProjectTombstone)

ProjectList = list[TrainingProject]
Reasons = list[str]


class Projects:
    """Projects of the key's teams. Every method raises RequestError."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(
        self, *, retry: RetryPolicy | None = None, unreadable: Reasons | None = None
    ) -> ProjectList:
        """Return all projects, in the server's order (the API has no paging here).

        If ``unreadable`` is given, projects that cannot be read are left out, and the reasons added to it;
        otherwise, and if no project can be read, such an answer is an InvalidAnswer.
        """
        return await _PROJECTS.read(self._transport, "GET", route(_ROUTE), unreadable, retry=retry)

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


# A documented client treats null as "no cache"; the server's behavior is not documented.
_SUMMARY: TypeAdapter[CacheSummary | None] = TypeAdapter(
    CacheSummary | None, config=ConfigDict(defer_build=True)
)
_LISTING: TypeAdapter[CacheListing | None] = TypeAdapter(
    CacheListing | None, config=ConfigDict(defer_build=True)
)
Answer = TypeVar("Answer")


class Cache:
    """Content of a project's cache, as its most recent job left it."""

    def __init__(self, transport: Transport, projects: Projects) -> None:
        self._transport = transport
        self._projects = projects

    async def summary(self, project_id: str) -> CacheSummary | None:
        """Return the files of a project's cache, or None if it has none. Raises RequestError."""
        summary = await self._get(project_id, _SUMMARY)
        return summary if summary is not None and summary.model_fields_set else None

    async def listing(self, project_id: str) -> CacheListing | None:
        """Return the data of ``summary`` as plain records, which take a third of the memory.

        Use it for very many files. Returns None if the project has no cache. Raises RequestError.
        """
        listing = await self._get(project_id, _LISTING)
        return None if listing == CacheListing() else listing

    async def _get(self, project_id: str, adapter: TypeAdapter[Answer | None]) -> Answer | None:
        path = route("training_projects", project_id, "cache", "summary")
        try:
            return await self._transport.request("GET", path, adapter, limit=LARGE)
        except NotFound:
            # Either the cache or the project does not exist. If it is the project, this raises NotFound
            # again.
            await self._projects.get(project_id)
            return None
