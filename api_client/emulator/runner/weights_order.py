"""What the process that fetches weights is asked to do, and how it tells of its progress.

It is asked by one JSON object on its standard input, and answers with JSON lines on its standard output.
"""

from __future__ import annotations

import fnmatch
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

PROGRESS_INTERVAL_S = 1.0


class FetchFailed(Exception):
    """The weights cannot be had; the message says why, without any secret."""


@dataclass(frozen=True, slots=True)
class FetchOrder:
    """Fetch ``location`` of ``scheme`` into the new folder ``destination``.

    ``secret`` is the value of the secret that the configuration names. ``mirror`` is a folder in which
    what was fetched may be kept for the next job. The patterns are shell globs, allow before ignore.
    """

    scheme: str
    location: str
    revision: str | None
    allow: tuple[str, ...]
    ignore: tuple[str, ...]
    secret: str | None
    destination: str
    mirror: str

    @classmethod
    def from_json(cls, line: str | bytes) -> FetchOrder:
        """Read what ``to_json`` wrote."""
        fields: dict[str, Any] = json.loads(line)
        return cls(**fields | {"allow": tuple(fields["allow"]), "ignore": tuple(fields["ignore"])})

    def to_json(self) -> bytes:
        """One line."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(fields).encode() + b"\n"

    def wants(self, name: str) -> bool:
        """Whether the patterns let a file through; ``name`` is its path below the source."""
        if self.allow and not _matches(name, self.allow):
            return False
        return not _matches(name, self.ignore)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """A star also stands for slashes, and ``folder/`` for all that is in it, as on Hugging Face."""
    return any(
        fnmatch.fnmatchcase(name, f"{pattern}*" if pattern.endswith("/") else pattern) for pattern in patterns
    )


class Progress:
    """Tells how much is to be had and how much is here; call ``add`` from any thread."""

    def __init__(self) -> None:
        self._done_bytes = 0
        self._told_at_s = 0.0

    def expect(self, file_count: int, total_bytes: int) -> None:
        """So much will come."""
        tell({"files": file_count, "total_bytes": total_bytes})

    def add(self, size_bytes: int) -> None:
        """That much more is here."""
        self._done_bytes += size_bytes
        now_s = time.monotonic()
        if now_s - self._told_at_s >= PROGRESS_INTERVAL_S:
            self._told_at_s = now_s
            tell({"done_bytes": self._done_bytes})


def tell(fields: dict[str, Any]) -> None:
    """One JSON line for whoever asked."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()
