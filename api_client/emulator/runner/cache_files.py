"""What a project's cache holds on this machine."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

from api_client.models import CachedFile


def list_cache(root: Path) -> list[CachedFile] | None:
    """Every file and directory below ``root`` by relative path; None if there is no cache."""
    if not root.is_dir():
        return None
    found = []
    for parent, folders, names in os.walk(root):
        folders.sort()
        for name in sorted((*folders, *names)):
            path = Path(parent) / name
            try:
                status = path.lstat()
            except OSError:
                continue  # gone meanwhile
            is_folder = stat.S_ISDIR(status.st_mode)
            found.append(
                CachedFile(
                    path=path.relative_to(root).as_posix(),
                    size_bytes=0 if is_folder else status.st_size,
                    modified=datetime.fromtimestamp(status.st_mtime, UTC).isoformat(),
                    file_type="directory" if is_folder else "file",
                    permissions=stat.filemode(status.st_mode),
                )
            )
    return found
