"""Downloads: a plan of what would be written where, then a run of it that can be cut and gone on with.

``client.downloads`` is the door (``api_client.transfers.downloads``); the records are here.
"""

from __future__ import annotations

from api_client.transfers.records import (
    DestinationExists,
    DownloadError,
    DownloadPlan,
    DownloadProgress,
    DownloadReport,
    Existing,
    FileProgress,
    FilesExist,
    FileState,
    NoArchive,
    NoRoom,
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
