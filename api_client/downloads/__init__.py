"""Downloads: a plan of what would be written where, then a run of it that can be cut and gone on with.

``client.downloads`` is the door (``api_client.downloads.service``); the records are here.
"""

from __future__ import annotations

from api_client.downloads.errors import DestinationExists, DownloadError, FilesExist, NoArchive, NoRoom
from api_client.downloads.records import (
    DownloadPlan,
    DownloadProgress,
    DownloadReport,
    Existing,
    FileProgress,
    FileState,
    OnProgress,
    PlannedFile,
    RefusedName,
)

__all__ = [
    "DestinationExists",
    "DownloadError",
    "DownloadPlan",
    "DownloadProgress",
    "DownloadReport",
    "Existing",
    "FileProgress",
    "FileState",
    "FilesExist",
    "NoArchive",
    "NoRoom",
    "OnProgress",
    "PlannedFile",
    "RefusedName",
]
