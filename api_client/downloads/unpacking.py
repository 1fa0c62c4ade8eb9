"""A job's archive → a folder: nothing outside of it, no links out, no devices, nothing without end."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import zlib
from pathlib import Path

from api_client.downloads.errors import DestinationExists, DownloadError
from api_client.downloads.names import OWN_PREFIX
from api_client.downloads.part_file import translated

MAX_MEMBERS = 500_000
MAX_UNPACKED_BYTES = 64 * 1024**3
"""More code than anybody submits; less than what makes a disk useless."""

ROOM_LEFT_BYTES = 64 * 1024**2
"""What unpacking leaves free on the disk."""


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a gzipped tar archive into ``folder``, which must not be there yet; it appears whole or not.

    Raises DestinationExists, and DownloadError for an archive that is damaged, too large, or has a member
    that would end outside. The archive itself stays.
    """
    if folder.exists() or folder.is_symlink():
        raise DestinationExists(folder)
    if not hasattr(tarfile, "data_filter"):
        raise DownloadError("this Python cannot unpack archives safely; keep the archive, or update Python")
    with translated(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=OWN_PREFIX, dir=folder.parent))
        try:
            _extract(archive, draft)
            # mkdtemp's folder is for its owner alone; ours is like any other.
            draft.chmod(0o755)
            draft.rename(folder)
        finally:
            if draft.exists():
                shutil.rmtree(draft, ignore_errors=True)
    return folder


def _extract(archive: Path, target: Path) -> None:
    limit_bytes = min(MAX_UNPACKED_BYTES, shutil.disk_usage(target).free - ROOM_LEFT_BYTES)
    size_bytes = 0
    try:
        # As a stream: what a member announces is checked before it is written.
        with tarfile.open(archive, "r|*") as members:
            for number, member in enumerate(members, start=1):
                size_bytes += max(0, member.size)
                if number > MAX_MEMBERS or size_bytes > limit_bytes:
                    raise DownloadError(
                        f"{archive.name} holds more than may be unpacked here; it is left packed"
                    )
                members.extract(member, target, filter="data")
    except tarfile.FilterError as error:
        name = error.tarinfo.name
        raise DownloadError(
            f"{archive.name} is not unpacked: {name!r} would end outside, or is no file"
        ) from None
    except (tarfile.TarError, EOFError, zlib.error, ValueError, UnicodeError) as error:
        raise DownloadError(f"{archive.name} is no sound archive ({type(error).__name__})") from None
