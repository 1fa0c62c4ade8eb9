"""The content of a project's cache."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ConfigDict, TypeAdapter

from api_client.addresses import route
from api_client.errors import NotFound
from api_client.http.transport import Transport
from api_client.models import CacheSummary
from api_client.models.cache import CacheListing
from api_client.resources.projects import Projects

# A documented client treats null as "no cache"; the server's behavior is not documented (facts, 2.2).
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
            return await self._transport.request("GET", path, adapter)
        except NotFound:
            # Either the cache or the project does not exist. If it is the project, this raises NotFound
            # again.
            await self._projects.get(project_id)
            return None
