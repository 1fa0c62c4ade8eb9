"""What an answer's headers tell of an object: which bytes come, which object it is, what its digests are."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

_CONTENT_RANGE = re.compile(r"bytes\s+(\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.ASCII)
_UNSATISFIED = re.compile(r"bytes\s+\*/(\d{1,18})", re.ASCII)
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_MD5_TAG = re.compile(r'"([0-9a-f]{32})"', re.ASCII)

_SIZES = {"md5": 16, "sha1": 20, "sha256": 32, "sha512": 64, "crc32": 4}
"""Digests that the standard library computes, and their sizes in bytes."""
_DIGEST_NAMES = {"md5": "md5", "sha": "sha1", "sha-1": "sha1", "sha-256": "sha256", "sha-512": "sha512"}


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest that a server promises; ``of_whole`` if it is the object's for certain.

    Else it may be that of the bytes in the answer alone.
    """

    algorithm: str
    hexadecimal: str
    of_whole: bool


@dataclass(frozen=True, slots=True)
class ObjectHead:
    """An answer before its body: the body's bytes are ``start`` … of an object of ``total_bytes``.

    ``length`` and ``total_bytes`` are None where the server does not say; ``is_partial`` tells a range
    from the whole. ``etag`` and ``last_modified`` are as they came, empty if they did not.
    """

    start: int
    length: int | None
    total_bytes: int | None
    is_partial: bool
    etag: str = ""
    last_modified: str = ""
    content_type: str = ""
    digests: tuple[Digest, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the body is the whole object."""
        return not self.is_partial or (self.start == 0 and self.length == self.total_bytes)


def read_head(status: int, headers: Mapping[str, str]) -> ObjectHead | None:
    """The head of an answer of success, or None if it contradicts itself.

    ``headers`` must not care for upper and lower case.
    """
    length = content_length(headers)
    span: int | None
    total: int | None
    if status == HTTPStatus.PARTIAL_CONTENT:
        found = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
        if found is None:
            return None
        start, last = int(found[1]), int(found[2])
        total = None if found[3] == "*" else int(found[3])
        span = last - start + 1
        contradicts = length not in (None, span) or (total is not None and last >= total)
        if last < start or contradicts:
            return None
        is_partial = True
    else:
        start, span, total, is_partial = 0, length, length, False
    whole = not is_partial or (start == 0 and span == total)
    return ObjectHead(
        start=start,
        length=span,
        total_bytes=total,
        is_partial=is_partial,
        etag=headers.get("etag", "").strip(),
        last_modified=headers.get("last-modified", "").strip(),
        content_type=headers.get("content-type", "").strip().lower(),
        digests=tuple(_digests(headers, whole=whole)),
    )


def content_length(headers: Mapping[str, str]) -> int | None:
    """The length that the server announces, or None."""
    text = headers.get("content-length", "").strip()
    return int(text) if _LENGTH.fullmatch(text) else None


def total_of_unsatisfied(headers: Mapping[str, str]) -> int | None:
    """The object's size in an answer that the range lies outside (416), or None."""
    found = _UNSATISFIED.fullmatch(headers.get("content-range", "").strip())
    return int(found[1]) if found else None


def _digests(headers: Mapping[str, str], *, whole: bool) -> Iterator[Digest]:
    """Every digest that can be checked with what Python has.

    ``Digest`` and ``Repr-Digest`` are the whole object's whatever part is sent (RFC 3230, RFC 9530), as is
    Google's ``x-goog-hash``. Amazon's checksums may be a part's, and Content-MD5 is the body's.
    """
    for name, value in _pairs(headers.get("digest", "") + "," + headers.get("repr-digest", "")):
        yield from _decoded(_DIGEST_NAMES.get(name.lower()), value.strip(":"), True)
    for name, value in _pairs(headers.get("x-goog-hash", "")):
        yield from _decoded("md5" if name == "md5" else None, value, True)
    for algorithm in ("sha256", "sha1", "crc32"):
        # A checksum of checksums ends in the number of parts: no base64, and nothing to check against.
        yield from _decoded(algorithm, headers.get(f"x-amz-checksum-{algorithm}", ""), whole)
    yield from _decoded("md5", headers.get("content-md5", ""), whole)
    tag = _MD5_TAG.fullmatch(headers.get("etag", "").strip())
    if tag and _tags_are_md5(headers):
        yield Digest("md5", tag[1], of_whole=True)


def _tags_are_md5(headers: Mapping[str, str]) -> bool:
    """Whether this store's entity tags of 32 digits are MD5 sums.

    S3's are, but for objects encrypted with keys of KMS or of the customer; other servers make theirs of
    whatever they like.
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


def _decoded(algorithm: str | None, text: str, of_whole: bool) -> Iterator[Digest]:
    """A digest in base64, if it is one of that kind."""
    if algorithm is None or not text:
        return
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return
    if len(raw) == _SIZES[algorithm]:
        yield Digest(algorithm, raw.hex(), of_whole)
