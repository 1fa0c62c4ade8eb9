"""Downloads and uploads of files behind presigned URLs; interrupted downloads resume in the same folder.

Use ``client.downloads`` (``api_client.transfers.downloads``); this package exports its records.
"""

from api_client.transfers.records import (
    DestinationExists,
    DownloadError,
    DownloadPlan,
    DownloadProgress,
    DownloadReport,
    Existing,
    FileProgress,
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
    "NoArchive",
    "NoRoom",
    "OnProgress",
    "PlannedFile",
    "RefusedName",
]
