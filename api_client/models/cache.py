"""The cache of a project, as its most recent job left it."""

from __future__ import annotations

from api_client.models.base import ApiModel, TolerantList


class CachedFile(ApiModel):
    """A file or directory of the cache; ``modified`` is the server's own text."""

    path: str
    size_bytes: int = 0
    modified: str = ""
    file_type: str = ""
    permissions: str = ""


class CacheSummary(ApiModel):
    """All files of a project's cache at ``timestamp``."""

    timestamp: str = ""
    project_id: str = ""
    file_summaries: TolerantList[CachedFile] = []
