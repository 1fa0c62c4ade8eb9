"""Digests of objects: read from a store's headers, and computed from a file."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator
from email.message import Message

CHUNK_BYTES = 1024 * 1024

_STRONGEST_FIRST = {"sha512": 64, "sha256": 32, "sha1": 20, "md5": 16, "crc32": 4}
"""Digests that the standard library can compute, and their sizes in bytes."""

_NAMES = {"md5": "md5", "sha": "sha1", "sha-1": "sha1", "sha-256": "sha256", "sha-512": "sha512"}
_MD5_TAG = re.compile(r'"([0-9a-f]{32})"', re.ASCII)


def digest_in(headers: Message, *, is_whole: bool) -> str:
    """Return the strongest digest of the whole object, like ``sha256:0f…``; empty if there is none.

    ``is_whole`` is True if the body is the whole object.
    """
    found = dict(_digests(headers, is_whole))
    return next(
        (f"{algorithm}:{found[algorithm]}" for algorithm in _STRONGEST_FIRST if algorithm in found), ""
    )


def digest_of(descriptor: int, algorithm: str, is_off: Callable[[], bool]) -> str:
    """Compute the digest of an open file in chunks; empty once ``is_off`` returns True."""
    hasher = None if algorithm == "crc32" else hashlib.new(algorithm, usedforsecurity=False)
    checksum = offset = 0
    while chunk := os.pread(descriptor, CHUNK_BYTES, offset):
        if is_off():
            return ""
        offset += len(chunk)
        if hasher is None:
            checksum = zlib.crc32(chunk, checksum)
        else:
            hasher.update(chunk)
    return f"{algorithm}:{checksum:08x}" if hasher is None else f"{algorithm}:{hasher.hexdigest()}"


def is_digest(text: str) -> bool:
    """Return True if the text is a digest that ``digest_of`` can compute."""
    algorithm, _, value = text.partition(":")
    return len(value) == 2 * _STRONGEST_FIRST.get(algorithm, -1)


def _digests(headers: Message, is_whole: bool) -> Iterator[tuple[str, str]]:
    """Yield algorithm and value of every digest that certainly covers the whole object.

    ``Digest`` and ``Repr-Digest`` cover it whatever part is sent (RFC 3230, RFC 9530), as does Google's
    ``x-goog-hash``. Amazon's checksums may cover a part, and Content-MD5 covers the body.
    """
    for name, value in _pairs(headers.get("digest", "") + "," + headers.get("repr-digest", "")):
        yield from _decoded(_NAMES.get(name.lower(), ""), value.strip(":"))
    for name, value in _pairs(headers.get("x-goog-hash", "")):
        yield from _decoded("md5" if name == "md5" else "", value)
    if is_whole:
        for algorithm in ("sha256", "sha1", "crc32"):
            # A checksum of checksums ends with the number of parts: it is not base64 and cannot be verified.
            yield from _decoded(algorithm, headers.get(f"x-amz-checksum-{algorithm}", ""))
        yield from _decoded("md5", headers.get("content-md5", ""))
    tag = _MD5_TAG.fullmatch(headers.get("etag", "").strip())
    if tag and _tags_are_md5(headers):
        yield "md5", tag[1]


def _tags_are_md5(headers: Message) -> bool:
    """Return True if this store's 32-digit entity tags are MD5 sums.

    S3's are, except for objects encrypted with KMS or customer keys; other servers may use anything.
    """
    is_s3 = "x-amz-request-id" in headers or "x-amz-id-2" in headers
    encryption = headers.get("x-amz-server-side-encryption", "").lower()
    has_own_key = "x-amz-server-side-encryption-customer-algorithm" in headers
    return is_s3 and "kms" not in encryption and not has_own_key


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for item in text.split(","):
        name, equals, value = item.strip().partition("=")
        if equals:
            yield name.strip(), value.strip()


def _decoded(algorithm: str, text: str) -> Iterator[tuple[str, str]]:
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return
    if len(raw) == _STRONGEST_FIRST.get(algorithm):
        yield algorithm, raw.hex()
