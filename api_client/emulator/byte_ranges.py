"""The ``Range`` header, as far as a single range of bytes goes."""

from __future__ import annotations

import re

_SINGLE_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class UnsatisfiableRange(Exception):
    """The range lies outside the content."""


def parse_range(header: str | None, size_bytes: int) -> tuple[int, int] | None:
    """The span ``(start, end)``, end exclusive, or None for the whole: no header, or one that is not ours.

    Raises ``UnsatisfiableRange`` for a range with no byte of the content in it (RFC 9110, 14.1.2).
    """
    match = _SINGLE_RANGE.fullmatch((header or "").strip())
    if match is None or match.group(0) == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        start, end = max(0, size_bytes - int(last)), size_bytes
    else:
        start, end = int(first), min(size_bytes, int(last) + 1) if last else size_bytes
    if last and first and int(last) < int(first):
        return None
    if start >= size_bytes or start >= end:
        raise UnsatisfiableRange
    return start, end
