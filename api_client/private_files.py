"""Files and folders that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE_FOLDER_MODE = 0o700
PRIVATE_FILE_MODE = 0o600


def make_private_folder(path: Path) -> None:
    """Make the folder, or tighten the one that is there."""
    path.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER_MODE)
    path.chmod(PRIVATE_FOLDER_MODE)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that was never readable by others, not even for a moment; replaces the old one at once.

    Whoever reads it meanwhile, or after a crash, finds the old content or the new, and no half of it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = open_new_private(temporary)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def open_new_private(path: Path) -> int:
    """A descriptor to write a new file that only its owner may read. Raises FileExistsError, OSError."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE)


def give_name(unfinished: Path, path: Path, *, replace: bool) -> None:
    """Give a file that is complete its name.

    Unless ``replace`` it raises FileExistsError where another has the name by now: a plain rename would
    replace that one. Raises OSError. What is left of ``unfinished`` is the caller's to delete.
    """
    if replace:
        unfinished.replace(path)
        return
    try:
        path.hardlink_to(unfinished)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(str(path)) from None
        unfinished.rename(path)
