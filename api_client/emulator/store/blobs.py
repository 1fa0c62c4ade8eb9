"""The objects of the object store."""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from api_client.files import PRIVATE_FILE_MODE, AtomicFile, make_private_folder

BUCKET = "bt-emulator"
"""The emulator's only bucket."""

MAXIMUM_OBJECT_BYTES = 5 * 1024**3
"""The platform's size limit for an archive."""

MAXIMUM_PARTS = 10_000


class BlobStore:
    """Objects by bucket and key, and unfinished multipart uploads."""

    def __init__(self, folder: Path) -> None:
        self._objects = folder / "objects"
        self._uploads = folder / "uploads"
        make_private_folder(self._objects)
        make_private_folder(self._uploads)

    def path(self, bucket: str, key: str) -> Path | None:
        """Return the object's file, or None if it does not exist."""
        path = self._object_path(bucket, key)
        return path if path.is_file() else None

    def receive(self, bucket: str, key: str) -> IncomingObject:
        return IncomingObject(self._object_path(bucket, key))

    def start_upload(self) -> str:
        upload_id = secrets.token_hex(16)
        make_private_folder(self._uploads / upload_id)
        return upload_id

    def receive_part(self, upload_id: str, number: int) -> IncomingObject | None:
        """Start writing a part; return None if the upload does not exist."""
        folder = self._upload_folder(upload_id)
        return None if folder is None else IncomingObject(folder / str(number))

    def complete_upload(self, upload_id: str, numbers: Sequence[int], bucket: str, key: str) -> str | None:
        """Join the parts into the object; return its entity tag.

        Returns None if the upload or a part is missing.
        """
        folder = self._upload_folder(upload_id)
        if folder is None or not all((folder / str(number)).is_file() for number in numbers):
            return None
        with self.receive(bucket, key) as incoming:
            for number in numbers:
                with (folder / str(number)).open("rb") as part:
                    shutil.copyfileobj(part, incoming, 1024 * 1024)
            incoming.keep()
        shutil.rmtree(folder)
        return f"{incoming.md5}-{len(numbers)}"

    def abort_upload(self, upload_id: str) -> bool:
        """Delete an upload; return False if it does not exist."""
        folder = self._upload_folder(upload_id)
        if folder is not None:
            shutil.rmtree(folder)
        return folder is not None

    def _object_path(self, bucket: str, key: str) -> Path:
        name = f"{bucket}/{key}".encode(errors="surrogateescape")
        return self._objects / hashlib.sha256(name).hexdigest()

    def _upload_folder(self, upload_id: str) -> Path | None:
        folder = self._uploads / upload_id
        return folder if re.compile(r"[0-9a-f]{32}").fullmatch(upload_id) and folder.is_dir() else None


class ObjectTooLarge(Exception):
    pass


class IncomingObject:
    """A file being written. ``keep`` puts it in place; without it, nothing remains."""

    def __init__(self, target: Path) -> None:
        self._file = AtomicFile(target, mode=PRIVATE_FILE_MODE, replace=True)
        self._hash = hashlib.md5(usedforsecurity=False)
        self.size_bytes = 0

    def __enter__(self) -> IncomingObject:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.discard()

    @property
    def md5(self) -> str:
        """MD5 of the data so far in hex, the entity tag that S3 uses."""
        return self._hash.hexdigest()

    def write(self, chunk: bytes) -> None:
        self.size_bytes += len(chunk)
        if self.size_bytes > MAXIMUM_OBJECT_BYTES:
            raise ObjectTooLarge(f"over {MAXIMUM_OBJECT_BYTES} bytes")
        self._hash.update(chunk)
        self._file.file.write(chunk)

    def keep(self) -> None:
        self._file.commit()
