"""The log lines or the samples of a recording, divided into blocks that are read on demand.

A block's name contains its first and last time, so that opening a recording reads no block. Times are
digits (nanoseconds since the epoch) or ISO 8601 texts, from 1970 to 2199; zero means unset.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from typing import Any

from pydantic_core import from_json

from api_client.clock import EPOCH, epoch_ns, moment_at
from api_client.models.base import LAST_MOMENT, moment_of_text
from api_client.recordings.archive import DamagedMember, Members, max_lines, read_member
from api_client.words import counted

BLOCK_LINES = 2_000  # maximum number of lines that are written to a block
UNREADABLE_LINE = b"!"
"""Stored in place of a line that is not JSON or too long."""
MAX_RUN_DURATION = timedelta(days=3_660)
"""Maximum duration of a run; wrong times must not make a recording decades long."""
_LATEST_NS = epoch_ns(LAST_MOMENT)
_BLOCK_NAME = re.compile(r"(logs|metrics)/(\d{1,9})_(\d{1,19})_(\d{1,19})\.ndjson")


@dataclass(frozen=True)
class MemberKind:
    """The log or the metrics: the names of its members, and the maximum sizes of a line and of a block."""

    whole: str
    """Name of the member with all lines, if they are not divided into blocks."""

    folder: str
    """Folder of the blocks."""

    line_bytes: int
    block_bytes: int


LOG = MemberKind("logs.ndjson", "logs", 4 * 1024**2, 8 * 1024**2)
METRICS = MemberKind("metrics.ndjson", "metrics", 64 * 1024, 2 * 1024**2)


@dataclass(frozen=True, slots=True)
class RecordedBlock:
    """A block of lines with its first and last time; the lines are in a member, or compressed in memory."""

    first_ns: int
    last_ns: int
    number: int = 0
    """Number in the member's name; 0 in memory."""

    member: str = ""
    deflated: bytes = b""
    newest_before_ns: int = 0
    """Newest time in the blocks before this block."""


class Blocks:
    """The blocks of the log or of the metrics, in file order.

    A member that is not divided into blocks, or whose name has no times, is read and divided when it is
    opened. Lines before the first valid time get ``begin_ns``.
    """

    def __init__(self, members: Members, kind: MemberKind, begin_ns: int = 0) -> None:
        self._members = members
        self._kind = kind
        self.problems: list[str] = []
        """Problems with the names and times of members, whose content is read nevertheless."""
        self.items = self._blocks(begin_ns)
        self.first_ns = min((block.first_ns for block in self.items), default=None)
        self.last_ns = max((block.last_ns for block in self.items), default=None)

    def values(self, block: RecordedBlock) -> Iterator[Any]:
        """Return the JSON values of a block's lines; None for a line that is not JSON.

        Raises DamagedMember.
        """
        if block.member:
            content = read_member(self._members, block.member, self._kind.block_bytes)
            line_limit = min(10 * BLOCK_LINES, max_lines(self._members.stored_bytes(block.member)))
            if content.count(b"\n") > line_limit:
                raise DamagedMember(f"{block.member} has more than {line_limit:,} lines")
        else:
            content = zlib.decompress(block.deflated)
        lines = (line for line in io.BytesIO(content) if not line.isspace())
        return (_parse_line(line) if len(line) <= self._kind.line_bytes else None for line in lines)

    def _blocks(self, begin_ns: int) -> list[RecordedBlock]:
        names = [name for name in self._members.names() if name.startswith(f"{self._kind.folder}/")]
        earliest_ns = max(1, begin_ns - MAX_RUN_DURATION // timedelta(microseconds=1) * 1_000)
        matches = filter(None, map(_BLOCK_NAME.fullmatch, names))
        named_blocks = [match for match in matches if int(match[4]) >= earliest_ns]
        undivided = [name for name in self._members.names() if name == self._kind.whole]
        misnamed = sorted(set(names) - {match[0] for match in named_blocks})
        if misnamed:
            others_note = f" and {counted(len(misnamed) - 1, 'other')}" if len(misnamed) > 1 else ""
            self.problems.append(
                f"{misnamed[0]}{others_note}: a wrong name for a part of the {self._kind.folder}"
            )
        undivided += misnamed
        blocks = [block for name in undivided for block in self._divide(name, begin_ns)]
        for match in sorted(named_blocks, key=lambda match: int(match[2])):
            first_ns, last_ns = sorted((int(match[3]), int(match[4])))
            blocks.append(RecordedBlock(first_ns, last_ns, int(match[2]), match[0]))
        newest_times_ns = accumulate((block.last_ns for block in blocks), max, initial=0)
        return [
            replace(block, newest_before_ns=before_ns)
            for block, before_ns in zip(blocks, newest_times_ns, strict=False)
        ]

    def _divide(self, name: str, begin_ns: int) -> Iterator[RecordedBlock]:
        lines: list[bytes] = []
        stamps: list[int] = []
        block_bytes, newest_ns, undated_count = 0, 0, 0

        def block() -> RecordedBlock:
            fallback_ns = newest_ns or begin_ns
            first_ns, last_ns = min(stamps, default=fallback_ns), max(stamps, default=fallback_ns)
            content = zlib.compress(b"\n".join(lines), 1)
            lines.clear()
            stamps.clear()
            return RecordedBlock(first_ns, last_ns, deflated=content)

        line_limit = max_lines(self._members.stored_bytes(name))
        try:
            for number, line in enumerate(_lines(self._members, name, self._kind.line_bytes), start=1):
                if number > line_limit:
                    raise DamagedMember(f"{name} has more than {line_limit:,} lines")
                if not line.strip():
                    continue
                value = _parse_line(line)
                times_ns = times_of(value)
                undated_count += not times_ns
                lines.append(line if value is not None else UNREADABLE_LINE)
                stamps += times_ns
                newest_ns = max([newest_ns, *times_ns])
                block_bytes += len(line)
                if len(lines) >= BLOCK_LINES or block_bytes > self._kind.block_bytes // 2:
                    block_bytes = 0
                    yield block()
        except DamagedMember as error:
            self.problems.append(str(error))
            lines.append(UNREADABLE_LINE)
        if undated_count:
            self.problems.append(f"{name} has {counted(undated_count, 'line')} without a valid time")
        if lines:
            yield block()


def _lines(members: Members, name: str, max_line_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a member of any size; a line that is too long is replaced by ``UNREADABLE_LINE``."""

    def limited(line: bytes) -> bytes:
        return line if len(line) <= max_line_bytes else UNREADABLE_LINE

    unfinished = b""
    for chunk in members.chunks(name):
        *lines, unfinished = (unfinished + chunk).split(b"\n")
        yield from map(limited, lines)
        unfinished = unfinished[: max_line_bytes + 1]
    if unfinished.strip():
        yield limited(unfinished)


def _parse_line(line: bytes) -> Any:
    try:
        return from_json(line)  # twice as fast as json.loads, which is more tolerant
    except ValueError:
        with suppress(ValueError, RecursionError):
            return json.loads(line)
    return None


def times_of(value: Any) -> list[int]:
    """Return the times of a line, a sample or a gap; empty if no time is valid."""
    if not isinstance(value, dict):
        return []
    gap = value.get("gap")
    times = [gap.get("start"), gap.get("end")] if isinstance(gap, dict) else [value.get("timestamp")]
    return [time_ns for item in times if (time_ns := stamp_of(item)) is not None]


@lru_cache(4096)
def _moment_of(text: str) -> datetime | None:
    moment = moment_of_text(text)
    return moment if moment is not None and EPOCH < moment < LAST_MOMENT else None


def clamped_moment(time_ns: int) -> datetime:
    """Return the time as a datetime, limited to the valid range."""
    return moment_at(min(max(time_ns, 0), _LATEST_NS))


def stamp_of(value: Any) -> int | None:
    """Parse a time (digits, or ISO 8601, without a timezone as UTC) into ns; None if it is invalid."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    if value.isascii() and value.isdigit():
        return time_ns if 0 < (time_ns := int(value)) < _LATEST_NS else None
    moment = _moment_of(value)
    return None if moment is None else epoch_ns(moment)
