"""Which of the digests that answers promise can be trusted, and what a file's digest is."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections import defaultdict
from collections.abc import Callable

from api_client.objects.answer import ObjectHead

CHUNK_BYTES = 1024 * 1024
_STRONGEST_FIRST = ("sha512", "sha256", "sha1", "md5", "crc32")


class Promises:
    """Collects what the answers about one object say its digest is.

    A digest beside a range may be the range's or the object's, as stores differ: it counts for the object
    once answers of different ranges have said the same.
    """

    def __init__(self) -> None:
        self._certain: dict[str, str] = {}
        self._starts: dict[tuple[str, str], set[int]] = defaultdict(set)

    def hear(self, head: ObjectHead) -> None:
        """Take note of an answer."""
        for digest in head.digests:
            self._starts[digest.algorithm, digest.hexadecimal].add(head.start)
            if digest.of_whole or len(self._starts[digest.algorithm, digest.hexadecimal]) > 1:
                self._certain[digest.algorithm] = digest.hexadecimal

    def strongest(self) -> tuple[str, str] | None:
        """Algorithm and value of the best that is certain."""
        for algorithm in _STRONGEST_FIRST:
            if algorithm in self._certain:
                return algorithm, self._certain[algorithm]
        return None


def read_promise(text: str) -> tuple[str, str] | None:
    """A digest as a journal keeps it, ``sha256:…``; None if it is none."""
    algorithm, _, value = text.partition(":") if isinstance(text, str) else ("", "", "")
    return (algorithm, value) if algorithm in _STRONGEST_FIRST and value else None


def digest_of(descriptor: int, algorithm: str, is_off: Callable[[], bool]) -> str:
    """The digest of an open file, in hexadecimal, read piece by piece; empty once ``is_off`` says so."""
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
    return f"{checksum:08x}" if hasher is None else hasher.hexdigest()
