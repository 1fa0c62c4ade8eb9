"""Making sure, on the disk, that a file ends inside of its folder."""

from __future__ import annotations

from pathlib import Path

from api_client.downloads.errors import DownloadError
from api_client.downloads.planning import is_taken, is_there
from api_client.downloads.records import PlannedFile

_MAX_RENAMES = 10_000


def free_name(file: PlannedFile) -> tuple[Path, bool]:
    """A name beside the file's own that nothing has, or that has this very file (then True)."""
    stem, ending = file.path.stem, file.path.suffix
    for number in range(1, _MAX_RENAMES):
        candidate = file.path.with_name(f"{stem}.{number}{ending}")
        if is_there(file, candidate):
            return candidate, True
        if not is_taken(candidate):
            return candidate, False
    raise DownloadError(f"{file.path.name}: there are too many files of this name already")
