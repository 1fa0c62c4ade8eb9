"""Pack files as a job's code is packed."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping


def packed(members: Mapping[str, bytes], *, is_zipped: bool = True) -> bytes:
    """A tar file of these contents by name; all of them may be executed."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz" if is_zipped else "w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
    return raw.getvalue()
