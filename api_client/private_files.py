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
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
