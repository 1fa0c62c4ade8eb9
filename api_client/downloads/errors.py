"""Why a download does not start, or a file of it does not arrive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from api_client.downloads.records import PlannedFile
from api_client.errors import ApiClientError


class DownloadError(ApiClientError):
    """Something on this machine, or about the files themselves, keeps them from being written."""


class NoArchive(DownloadError):
    """The job has no code to download; the server's words, if it had any, are in the message."""


class NoRoom(DownloadError):
    """The disk has too little room; parts that are there stay, and the next run goes on with them."""


class FilesExist(DownloadError):
    """Files of other content are in the way: ``conflicts``. Somebody must say what to do with them."""

    def __init__(self, message: str, conflicts: Sequence[PlannedFile]) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)


class DestinationExists(DownloadError):
    """The folder or archive that would be written is there already (``path``), and is left alone."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is there already: remove it, or choose another directory")
        self.path = path
