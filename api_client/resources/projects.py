"""Training projects, and the content of their caches."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ConfigDict, TypeAdapter

from api_client import routes
from api_client.errors import NotFound
from api_client.http.decoding import Reasons, without_unreadable
from api_client.http.retry import RetryPolicy
from api_client.models import CacheSummary, ProjectTombstone, TrainingProject
from api_client.models.cache import CacheListing
from api_client.resources import Resource
from api_client.routes import Route

ProjectList = list[TrainingProject]


class Projects(Resource):
    """Projects of the key's teams. Every method raises RequestError."""

    async def list(
        self, *, retry: RetryPolicy | None = None, unreadable: Reasons | None = None
    ) -> ProjectList:
        """Return all projects, in the server's order (the API has no paging here).

        Raises InvalidAnswer for an invalid project. If ``unreadable`` is given, invalid projects are left out
        instead, and the reasons are added to it; then only a response without any valid project is an error.
        """
        return await self._transport.request(without_unreadable(routes.PROJECTS, unreadable), retry=retry)

    async def get(self, project_id: str) -> TrainingProject:
        """Return a project."""
        return await self._transport.request(routes.PROJECT, project_id)

    async def upsert(
        self, name: str, *, team_id: str | None = None, team_name: str | None = None
    ) -> TrainingProject:
        """Return the project with that name, creating it if necessary, by default in the default team.

        ``team_id`` decides the team. ``team_name`` is only sent along, as the official client does.
        """
        project = {"name": name} if team_name is None else {"name": name, "team_name": team_name}
        body = {"training_project": project}
        return await self._transport.request(routes.UPSERT_PROJECT, team_id=team_id, body=body)

    async def delete(self, project_id: str) -> ProjectTombstone:
        """Delete a project with its jobs, undeployed checkpoints, and cache. Cannot be undone."""
        return await self._transport.request(routes.DELETE_PROJECT, project_id)


# A null means "no cache", as in the official client; what the server sends is not documented.
_BUILD_ON_USE = ConfigDict(defer_build=True)
_SUMMARY_ROUTE: Route[CacheSummary | None] = routes.PROJECT_CACHE.with_reader(
    TypeAdapter(CacheSummary | None, config=_BUILD_ON_USE)
)
_LISTING_ROUTE: Route[CacheListing | None] = routes.PROJECT_CACHE.with_reader(
    TypeAdapter(CacheListing | None, config=_BUILD_ON_USE)
)
Content = TypeVar("Content")


class Cache(Resource):
    """Content of a project's cache after its most recent job."""

    async def summary(self, project_id: str) -> CacheSummary | None:
        """Return the files of a project's cache, or None if the project has no cache. Raises RequestError."""
        summary = await self._get(project_id, _SUMMARY_ROUTE)
        return summary if summary is not None and summary.model_fields_set else None

    async def listing(self, project_id: str) -> CacheListing | None:
        """Return the data of ``summary`` as plain records, which take a third of the memory.

        Use it for very many files. Returns None if the project has no cache. Raises RequestError.
        """
        listing = await self._get(project_id, _LISTING_ROUTE)
        return None if listing == CacheListing() else listing

    async def _get(self, project_id: str, route: Route[Content | None]) -> Content | None:
        try:
            return await self._transport.request(route, project_id)
        except NotFound:
            # Either the cache or the project does not exist; for the project, this raises NotFound again.
            await self._transport.request(routes.PROJECT, project_id)
            return None
