"""Putting fetched files where the job will read them: whole, write-protected, nowhere else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath

from api_client.emulator.runner.weights_order import FetchFailed

READ_ONLY_FILE = 0o444
READ_ONLY_FOLDER = 0o555


def place(source: Path, destination: Path, name: str, *, link: bool) -> None:
    """Make ``destination/name`` the file ``source``: a hard link if ``link`` and the disk allows, or a copy.

    ``name`` comes from a server and is refused (``FetchFailed``) if it leads out of the destination.
    """
    target = destination / safe_name(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    if link:
        try:
            target.hardlink_to(source)
            return
        except FileExistsError as error:
            raise FetchFailed(f"two files are called {name!r}") from error
        except OSError:
            pass  # another disk, or one without hard links
    shutil.copyfile(source, target)
    shutil.copystat(source, target)
    target.chmod(READ_ONLY_FILE)


def safe_name(name: str) -> PurePosixPath:
    """A relative path that stays inside; raises ``FetchFailed`` for any other."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
        raise FetchFailed(f"the source has a file with an unusable name: {name!r}")
    return path


def seal(folder: Path) -> tuple[int, int]:
    """Write-protect all folders; returns how many files there are and their bytes."""
    count, size_bytes = 0, 0
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            count += 1
            size_bytes += (Path(parent) / name).stat().st_size
        Path(parent).chmod(READ_ONLY_FOLDER)
    return count, size_bytes
