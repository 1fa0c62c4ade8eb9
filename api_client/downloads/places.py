"""Making sure, on the disk, that a file ends inside of its folder."""

from __future__ import annotations

from pathlib import Path

from api_client.downloads.errors import DownloadError
from api_client.downloads.part_file import translated
from api_client.downloads.planning import is_taken, is_there
from api_client.downloads.records import PlannedFile

_MAX_RENAMES = 10_000


def make_folders(folder: Path, path: Path) -> None:
    """Make the folders between ``folder`` and ``path``.

    Raises DownloadError if one of them is a link or a file: links may lead anywhere.
    """
    with translated(path):
        folder.mkdir(parents=True, exist_ok=True)
        current = folder
        for part in path.relative_to(folder).parts[:-1]:
            current = current / part
            if current.is_symlink():
                raise DownloadError(f"{path.name} is not written: {current} is a link")
            current.mkdir(exist_ok=True)


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
