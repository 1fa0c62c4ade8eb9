"""Log records as the API sends them.

A hot path: pages of up to 1,000 records are validated straight from bytes into plain dicts.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, NotRequired

from pydantic import BeforeValidator, ConfigDict, GetCoreSchemaHandler, with_config
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from api_client.models import TrainingJob


def _text(value: object) -> object:
    """A text whatever the server put there: a strange field must not cost a page of lines."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else json.dumps(value)


def _no_null_text(value: object) -> object:
    return "" if value is None else _text(value)


def _is_true(value: object) -> bool:
    return value is True


class _AnyText:
    """A text is taken as it is, without Python having a say; whatever else there is goes through ``read``."""

    def __init__(self, read: Callable[[object], object], *, or_null: bool) -> None:
        self._read = read
        self._or_null = or_null

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text: CoreSchema = core_schema.str_schema(strict=True)
        if self._or_null:
            text = core_schema.nullable_schema(text)
        other = core_schema.no_info_before_validator_function(self._read, handler(source))
        return core_schema.union_schema([text, other], mode="left_to_right")


_Text = Annotated[str | None, _AnyText(_text, or_null=True)]
_TextOrEmpty = Annotated[str, _AnyText(_no_null_text, or_null=False)]


@with_config(ConfigDict(extra="allow", defer_build=True))
class LogRecord(TypedDict):
    """One log line: ``timestamp`` is a string of epoch nanoseconds, ``replica`` an opaque node name.

    ``level`` is DEBUG, INFO, WARNING or ERROR, or null where the server detected none. Nothing is required:
    a server may leave out what it does not know.
    """

    timestamp: NotRequired[_TextOrEmpty]
    message: NotRequired[_TextOrEmpty]
    replica: NotRequired[_Text]
    request_id: NotRequired[_Text]
    level: NotRequired[_Text]


@with_config(ConfigDict(extra="ignore", defer_build=True))
class LogsPage(TypedDict):
    """The answer of the logs route.

    ``complete`` is not published: our emulator says with it that the job has ended, that this page was read
    after its last line was written, and that no line will ever be added.
    """

    logs: list[LogRecord] | None
    complete: NotRequired[Annotated[bool, BeforeValidator(_is_true)]]


NS_PER_MS = 1_000_000
"""Stamps of lines are in nanoseconds, bounds of windows in milliseconds (API facts, 2.2)."""

MS_PER_S = 1_000
NS_PER_S = NS_PER_MS * MS_PER_S

FetchPage = Callable[..., Awaitable[list[LogRecord]]]
"""``fetch(start_ms=…, end_ms=…, direction="asc"|"desc", limit=…)``: one page of a job's log.

``end_ms`` None leaves the end to the server, which then takes its own present."""

IsComplete = Callable[[], bool]
"""Whether the last page answered said that no line will be added to the log any more."""

FetchJob = Callable[[], Awaitable[TrainingJob]]
"""Fetches the job whose log is read."""


class LogLine(NamedTuple):
    """One line of a job's log.

    A named tuple, as nothing else is made and hashed as fast: thousands of lines a second are read again.

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
    """A stretch ``start_ns <= t < end_ns`` in which lines are, or may be, missing, and why.

    ``held`` are the lines of the stretch that were delivered all the same (at its edges, or one half of a
    crowded nanosecond): what a second reading of the stretch brings again.
    """

    start_ns: int
    end_ns: int
    reason: str
    held: tuple[LogLine, ...] = field(default=(), repr=False, compare=False)


LogEntry = LogLine | LogGap


@dataclass(frozen=True, slots=True)
class LogBatch:
    """Some entries in time order; empty when it only says that the stream has caught up.

    ``caught_up`` is false while the stream still reads what was there before; of that, ``read_part`` (0 to
    1) has been read, by time, where it is known. ``finished_job`` comes once, with an empty batch: the job
    has ended, and the stream waits for stragglers before it ends too.
    """

    entries: tuple[LogEntry, ...]
    caught_up: bool
    read_part: float | None = None
    finished_job: TrainingJob | None = None


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a followed log: the finished job."""

    job: TrainingJob


def gap_holding(start_ns: int, end_ns: int, reason: str, lines: Iterable[LogLine]) -> LogGap:
    """A gap beside delivered lines, some of which may stand in it."""
    held = tuple([line for line in lines if start_ns <= line.timestamp_ns < end_ns])
    return LogGap(start_ns, end_ns, reason, held)


def stamp_ns(entry: LogEntry) -> int:
    """Where an entry stands in time, in epoch nanoseconds."""
    return entry.timestamp_ns if isinstance(entry, LogLine) else entry.start_ns
