"""The cache of a project."""

from __future__ import annotations

from pydantic import ConfigDict, TypeAdapter

from api_client.addresses import route
from api_client.errors import NotFound
from api_client.http.transport import Transport
from api_client.models import CacheSummary
from api_client.resources.projects import Projects

# Null is a documented client's idea of "no cache"; what the server does is not documented (facts, 2.2).
_SUMMARY: TypeAdapter[CacheSummary | None] = TypeAdapter(
    CacheSummary | None, config=ConfigDict(defer_build=True)
)


class Cache:
    """What a project's most recent job left in its cache."""

    def __init__(self, transport: Transport, projects: Projects) -> None:
        self._transport = transport
        self._projects = projects

    async def summary(self, project_id: str) -> CacheSummary | None:
        """The files of a project's cache, or None if it has none. Raises RequestError."""
        path = route("training_projects", project_id, "cache", "summary")
        try:
            summary = await self._transport.request("GET", path, _SUMMARY)
        except NotFound:
            # No cache, or no project? If it is the project, this raises NotFound again.
            await self._projects.get(project_id)
            return None
        return summary if summary is not None and summary.model_fields_set else None
