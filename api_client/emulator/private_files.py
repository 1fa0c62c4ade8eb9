"""Files and folders that only their owner may read, and how to delete such folders."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from api_client.files import (
    PRIVATE_FILE_MODE,
    PRIVATE_FOLDER_MODE,
    make_private_folder,
    write_private,
)

__all__ = ["PRIVATE_FILE_MODE", "PRIVATE_FOLDER_MODE", "make_private_folder", "remove_tree", "write_private"]


def remove_tree(path: Path) -> None:
    """Delete a folder and all below it, write-protected folders too; what cannot be deleted is left."""
    for parent, folders, _ in os.walk(path):
        for folder in (Path(parent), *(Path(parent) / name for name in folders)):
            if not folder.is_symlink():
                with contextlib.suppress(OSError):
                    folder.chmod(PRIVATE_FOLDER_MODE)
    shutil.rmtree(path, ignore_errors=True)
