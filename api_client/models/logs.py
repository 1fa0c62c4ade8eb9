"""Log records as the API sends them, and the entries that log streams yield: lines, gaps and batches.

This is a hot path: pages of up to 1,000 records are validated directly from bytes into plain dicts, and lines
are named tuples.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, NotRequired

from pydantic import BeforeValidator, ConfigDict, with_config
from pydantic_core import core_schema
from typing_extensions import TypedDict

from api_client.models import TrainingJob
from api_client.models.base import MAX_PAGE_ITEMS, STRICT_TEXT, FastPath, Integer


def _to_text(value: object) -> object:
    """Convert any value to text, so that an unexpected type does not make the whole page invalid."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else json.dumps(value)


def _to_text_or_empty(value: object) -> object:
    return "" if value is None else _to_text(value)


def _is_true(value: object) -> bool:
    return value is True


_Text = Annotated[str | None, FastPath(core_schema.nullable_schema(STRICT_TEXT), _to_text)]
_TextOrEmpty = Annotated[str, FastPath(STRICT_TEXT, _to_text_or_empty)]


@with_config(ConfigDict(extra="allow", defer_build=True))
class LogRecord(TypedDict):
    """Log line: ``timestamp`` is a string of epoch nanoseconds, ``replica`` an opaque node name.

    ``level`` is DEBUG, INFO, WARNING or ERROR, or null if the server detected none. No field is required:
    a server may leave out unknown values.
    """

    timestamp: NotRequired[_TextOrEmpty]
    message: NotRequired[_TextOrEmpty]
    replica: NotRequired[_Text]
    request_id: NotRequired[_Text]
    level: NotRequired[_Text]


class GapRecord(TypedDict):
    """Time range ``start_ns <= t < end_ns`` that could not be read when the log was recorded."""

    start_ns: Integer
    end_ns: Integer
    reason: str


@with_config(ConfigDict(extra="ignore", defer_build=True))
class LogsPage(TypedDict):
    """Response of the logs route.

    ``complete`` and ``gaps`` are not published fields. Our emulator sets ``complete`` when the job has ended,
    this page was read after its last line was written, and no line will be added. ``gaps`` are the gaps of a
    recording in the requested time range.
    """

    logs: Annotated[list[LogRecord], MAX_PAGE_ITEMS] | None
    gaps: NotRequired[Annotated[list[GapRecord], MAX_PAGE_ITEMS]]
    complete: NotRequired[Annotated[bool, BeforeValidator(_is_true)]]


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")  # in order of severity
NS_PER_MS = 1_000_000  # timestamps of lines are in nanoseconds, bounds of ranges in milliseconds
MS_PER_S = 1_000
NS_PER_S = NS_PER_MS * MS_PER_S

FetchPage = Callable[..., Awaitable[LogsPage]]
"""Requests one page of a log: ``fetch(query=…)`` with the query of its route."""

FetchJob = Callable[[], Awaitable[TrainingJob]]  # fetches the job whose log is read


class LogLine(NamedTuple):
    """A line of a job's log.

    A named tuple, because no other record is created and hashed as fast: thousands of lines a second are
    reread.

    ``timestamp_ns`` is in epoch nanoseconds, ``replica`` an opaque node name. ``late`` means that the line
    arrived after lines with later timestamps.
    """

    timestamp_ns: int
    message: str
    replica: str | None
    level: str | None
    request_id: str | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class LogGap:
    """Time range ``start_ns <= t < end_ns`` in which lines are, or may be, missing, and the reason.

    ``held`` are the lines in the range that the stream has delivered (at its edges, or some of a nanosecond
    with too many lines). ``fill_gap`` does not return them again.
    """

    start_ns: int
    end_ns: int
    reason: str
    held: tuple[LogLine, ...] = field(default=(), repr=False, compare=False)


LogEntry = LogLine | LogGap


@dataclass(frozen=True, slots=True)
class LogBatch:
    """Entries in time order; empty if the batch only reports that the stream has caught up.

    ``caught_up`` is false while the stream still reads the history; ``read_part`` (0 to 1) is the
    fraction of its time range that has been read, if known. ``finished_job`` is sent once, with an empty
    batch: the job has ended, and the stream waits for late lines before it ends too.
    """

    entries: tuple[LogEntry, ...]
    caught_up: bool
    read_part: float | None = None
    finished_job: TrainingJob | None = None


@dataclass(frozen=True, slots=True)
class LogEnd:
    """End of a followed log, with the finished job."""

    job: TrainingJob


def gap_with_lines(start_ns: int, end_ns: int, reason: str, lines: Iterable[LogLine]) -> LogGap:
    """Create a gap whose ``held`` lines are the ``lines`` inside its range."""
    lines_in_range = tuple([line for line in lines if start_ns <= line.timestamp_ns < end_ns])
    return LogGap(start_ns, end_ns, reason, lines_in_range)


def stamp_ns(entry: LogEntry) -> int:
    """Return the timestamp of an entry, or the start of a gap, in epoch nanoseconds."""
    return entry.timestamp_ns if isinstance(entry, LogLine) else entry.start_ns
