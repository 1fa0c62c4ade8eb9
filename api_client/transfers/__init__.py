"""Downloads and uploads of files behind presigned URLs; interrupted downloads resume in the same folder.

Use ``client.downloads`` (``api_client.transfers.downloads``); this package exports its records.
"""

from api_client.transfers.records import (
    DestinationExists as DestinationExists,
    DownloadError as DownloadError,
    DownloadPlan as DownloadPlan,
    DownloadProgress as DownloadProgress,
    DownloadReport as DownloadReport,
    Existing as Existing,
    FileProgress as FileProgress,
    FileState as FileState,
    NoArchive as NoArchive,
    NoRoom as NoRoom,
    OnProgress as OnProgress,
    PlannedFile as PlannedFile,
    RefusedName as RefusedName,
)
