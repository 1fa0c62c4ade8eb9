"""Which weights a job needs, and the protocol between the runner and the process that fetches them.

The request is one JSON object on standard input; the answers are JSON lines on standard output.
"""

from __future__ import annotations

import fnmatch
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from api_client.emulator.runner.folders import CannotStart

PROGRESS_INTERVAL_S = 1.0


class FetchFailed(Exception):
    """The weights cannot be fetched; the message explains why, without any secret."""


@dataclass(frozen=True, slots=True)
class FetchOrder:
    """An order to fetch ``location`` of ``scheme`` into the new folder ``destination``.

    ``secret`` is the value of the secret named in the configuration. ``mirror`` is a folder that keeps
    fetched files for later jobs. The patterns are shell globs; ``allow`` is applied before ``ignore``.
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
        fields: dict[str, Any] = json.loads(line)
        return cls(**fields | {"allow": tuple(fields["allow"]), "ignore": tuple(fields["ignore"])})

    def to_json(self) -> bytes:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(fields).encode() + b"\n"

    def wants(self, name: str) -> bool:
        """Return True if the patterns let a file through; ``name`` is its path below the source."""
        if self.allow and not _matches(name, self.allow):
            return False
        return not _matches(name, self.ignore)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """Match like Hugging Face: a star also matches slashes, and ``folder/`` everything inside it."""
    return any(
        fnmatch.fnmatchcase(name, f"{pattern}*" if pattern.endswith("/") else pattern) for pattern in patterns
    )


class Progress:
    """Reports the total and the fetched size; ``add`` may be called from any thread."""

    def __init__(self) -> None:
        self._done_bytes = 0
        self._reported_at_s = 0.0

    def expect(self, file_count: int, total_bytes: int) -> None:
        report_event({"files": file_count, "total_bytes": total_bytes})

    def add(self, size_bytes: int) -> None:
        self._done_bytes += size_bytes
        now_s = time.monotonic()
        if now_s - self._reported_at_s >= PROGRESS_INTERVAL_S:
            self._reported_at_s = now_s
            report_event({"done_bytes": self._done_bytes})


def report_event(fields: dict[str, Any]) -> None:
    """Print a JSON line for the parent process."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


HUGGING_FACE, LOCAL_FILES = "hf", "file"
OBJECT_STORES = ("s3", "gs", "r2")
SCHEMES = (HUGGING_FACE, *OBJECT_STORES, LOCAL_FILES)

SECRET_METHOD = "CUSTOM_SECRET"
"""The only authentication method that works off the platform: the others use the platform's identity."""


@dataclass(frozen=True, slots=True)
class WeightsEntry:
    """An entry of ``weights``.

    ``location`` is the part after ``scheme://``, without the revision. The patterns are shell globs;
    ``allow`` is applied before ``ignore``, and an empty ``allow`` matches everything.
    """

    source: str
    scheme: str
    location: str
    revision: str | None
    mount_location: str
    secret_name: str | None
    allow: tuple[str, ...]
    ignore: tuple[str, ...]


def parse_weights(items: Sequence[Any]) -> tuple[WeightsEntry, ...]:
    """Parse all entries; raise ``CannotStart`` naming the first one that cannot be delivered."""
    return tuple(_parse(item, f"weights[{index}]") for index, item in enumerate(items))


def _parse(item: Any, where: str) -> WeightsEntry:
    if not isinstance(item, Mapping):
        raise CannotStart(f"{where} is not an object")
    source = item.get("source")
    if not isinstance(source, str) or not source.strip():
        raise CannotStart(f"{where}.source is missing")
    scheme, separator, location = source.strip().partition("://")
    if not separator or scheme not in SCHEMES:
        raise CannotStart(
            f"{where}.source {source!r}: the local runner supports {', '.join(f'{s}://' for s in SCHEMES)}"
        )
    location, revision = _without_revision(scheme, location, where)
    if not location.strip("/"):
        raise CannotStart(f"{where}.source {source!r} has nothing after {scheme}://")
    mount = item.get("mount_location")
    if not isinstance(mount, str) or not mount.startswith("/") or not mount.strip("/"):
        raise CannotStart(f"{where}.mount_location must be an absolute path, not {mount!r}")
    if ".." in PurePosixPath(mount).parts or "\0" in mount:
        raise CannotStart(f"{where}.mount_location must not contain '..' or NUL: {mount!r}")
    return WeightsEntry(
        source=source.strip(),
        scheme=scheme,
        location=location,
        revision=revision,
        mount_location=mount,
        secret_name=_secret_name(item, where),
        allow=_patterns(item, "allow_patterns", where),
        ignore=_patterns(item, "ignore_patterns", where),
    )


def _without_revision(scheme: str, location: str, where: str) -> tuple[str, str | None]:
    """Split off the revision, which only Hugging Face has; elsewhere ``@`` is an ordinary character."""
    if scheme != HUGGING_FACE:
        return location, None
    location, separator, revision = location.partition("@")
    if separator and not revision:
        raise CannotStart(f"{where}.source ends with '@' but has no revision")
    return location, revision or None


def _secret_name(item: Mapping[str, Any], where: str) -> str | None:
    top_level = item.get("auth_secret_name")
    auth = item.get("auth")
    if auth is None:
        return str(top_level) if top_level else None
    if not isinstance(auth, Mapping):
        raise CannotStart(f"{where}.auth is not an object")
    method, name = auth.get("auth_method"), auth.get("auth_secret_name")
    if method != SECRET_METHOD:
        raise CannotStart(
            f"{where}.auth.auth_method {method!r} works only on the platform; use {SECRET_METHOD} here"
        )
    if not name:
        raise CannotStart(f"{where}.auth.auth_secret_name is missing")
    if top_level:
        raise CannotStart(f"{where} has a secret in both auth and auth_secret_name")
    return str(name)


def _patterns(item: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    patterns = item.get(key)
    if patterns is None:
        return ()
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise CannotStart(f"{where}.{key} must be a list of strings")
    return tuple(patterns)
