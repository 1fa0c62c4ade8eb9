"""The objects of the object store, and the signatures that grant access to them.

A signature, in a URL or as an upload credential, grants access to one path for a limited time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from api_client.files import PRIVATE_FILE_MODE, AtomicFile, make_private_folder

BUCKET = "bt-emulator"
"""The emulator's only bucket."""


MAX_PARTS = 10_000


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
            incoming.commit()
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
        return folder if re.fullmatch(r"[0-9a-f]{32}", upload_id) and folder.is_dir() else None


class IncomingObject:
    """An object being written. ``commit`` stores it; without ``commit``, nothing is stored."""

    def __init__(self, target: Path) -> None:
        self._file = AtomicFile(target, mode=PRIVATE_FILE_MODE, replace=True)
        self._hash = hashlib.md5(usedforsecurity=False)

    def __enter__(self) -> IncomingObject:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.discard()

    @property
    def md5(self) -> str:
        """MD5 (hex) of the data written so far: the entity tag that S3 uses."""
        return self._hash.hexdigest()

    def write(self, chunk: bytes) -> None:
        self._hash.update(chunk)
        self._file.file.write(chunk)

    def commit(self) -> None:
        self._file.commit()


PRESIGNED_LIFETIME_S = 900
"""Lifetime of a presigned URL. The platform publishes no figure ("short-lived")."""


EXPIRES_PARAMETER = "X-Emulator-Expires"
SIGNATURE_PARAMETER = "X-Emulator-Signature"


@dataclass(frozen=True, repr=False)
class Signer:
    """Signs with HMAC-SHA256. ``secret`` never leaves the emulator; ``lifetime_s`` applies to URLs."""

    secret: bytes
    lifetime_s: int = PRESIGNED_LIFETIME_S

    def presign(self, quoted_path: str, *, now_s: float) -> str:
        """Add a query that lets anyone GET the path until it expires. ``now_s`` is in epoch seconds."""
        expires = int(now_s) + self.lifetime_s
        query = {EXPIRES_PARAMETER: expires, SIGNATURE_PARAMETER: self._sign("GET", quoted_path, expires)}
        return f"{quoted_path}?{urlencode(query)}"

    def upload_token(self, object_name: str, *, now_s: float) -> str:
        """Return a session token that lets its holder read and write one object until it expires."""
        expires = int(now_s) + 6 * 3600  # long enough for the largest archive
        return f"{expires}.{self._sign('PUT', object_name, expires)}"

    def upload_token_is_valid(self, object_name: str, token: str, *, now_s: float) -> bool:
        """Return True if this emulator issued the token for this object, and it has not expired."""
        expires, _, signature = token.partition(".")
        return self.is_valid_signature("PUT", object_name, expires, signature) and int(expires) >= now_s

    def _sign(self, purpose: str, subject: str, expires: int) -> str:
        text = f"{purpose}\n{subject}\n{expires}".encode(errors="surrogateescape")
        return hmac.new(self.secret, text, hashlib.sha256).hexdigest()

    def is_valid_signature(self, purpose: str, subject: str, expires: str, signature: str) -> bool:
        """Return True if this emulator signed this purpose, path and expiry time, even if it has expired."""
        if not (expires.isascii() and expires.isdigit() and len(expires) <= 18):
            return False
        expected = self._sign(purpose, subject, int(expires))
        return hmac.compare_digest(expected.encode(), signature.encode(errors="replace"))
