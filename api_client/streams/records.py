"""What the log streams give."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from api_client.models import TrainingJob
from api_client.models.logs import LogRecord

NS_PER_MS = 1_000_000
"""Stamps of lines are in nanoseconds, bounds of windows in milliseconds (API facts, 2.2)."""

MS_PER_S = 1_000
NS_PER_S = NS_PER_MS * MS_PER_S

FetchPage = Callable[..., Awaitable[list[LogRecord]]]
"""``fetch(start_ms=…, end_ms=…, direction="asc"|"desc", limit=…)``: one page of a job's log."""

FetchJob = Callable[[], Awaitable[TrainingJob]]
"""Fetches the job whose log is read."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a job's log.

    ``timestamp_ns`` is in epoch nanoseconds, ``replica`` an opaque node name. ``late`` means that the line
    came after lines that are younger than it.
    """

    timestamp_ns: int
    message: str
    replica: str | None
    level: str | None
    request_id: str | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class LogGap:
    """A stretch ``start_ns <= t < end_ns`` in which lines are, or may be, missing, and why."""

    start_ns: int
    end_ns: int
    reason: str


LogEntry = LogLine | LogGap


@dataclass(frozen=True, slots=True)
class LogBatch:
    """Some entries in time order; empty when it only says that the stream has caught up.

    ``caught_up`` is false while the stream still reads what was there before.
    """

    entries: tuple[LogEntry, ...]
    caught_up: bool


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a followed log: the finished job."""

    job: TrainingJob


def stamp_ns(entry: LogEntry) -> int:
    """Where an entry stands in time, in epoch nanoseconds."""
    return entry.timestamp_ns if isinstance(entry, LogLine) else entry.start_ns
