"""A job's archive → a folder that appears whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from api_client.archives import MAX_BYTES, BadArchive, Unpacker
from api_client.downloads.errors import DestinationExists, DownloadError
from api_client.downloads.part_file import translated
from api_client.files import TEMPORARY_PREFIX

ROOM_LEFT_BYTES = 64 * 1024**2
"""What unpacking leaves free on the disk."""


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a tar archive into ``folder``, which must not exist; it appears whole or not at all.

    Raises DestinationExists, and DownloadError for an archive that is damaged, too large, or has a member
    that is refused. The archive itself stays.
    """
    if folder.exists() or folder.is_symlink():
        raise DestinationExists(folder)
    with translated(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = folder.parent / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        draft.mkdir()
        try:
            max_bytes = min(MAX_BYTES, shutil.disk_usage(draft).free - ROOM_LEFT_BYTES)
            with Unpacker(draft, max_bytes=max_bytes) as unpacker:
                unpacker.add(archive)
            draft.rename(folder)
        except BadArchive as error:
            raise DownloadError(f"{archive.name} is not unpacked: {error}") from None
        finally:
            if draft.exists():
                shutil.rmtree(draft, ignore_errors=True)
    return folder
