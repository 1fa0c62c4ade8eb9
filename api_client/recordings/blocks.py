"""The log lines or the samples of a recording, divided into blocks that are read as they are needed.

The name of a block has the first and the last time in it, so that opening a recording reads none.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from api_client.recordings.archive import DamagedMember, Members, max_lines, read_member
from api_client.recordings.stamps import stamp_of

BLOCK_LINES = 5_000
MAX_BLOCK_LINES = 20_000
NOT_JSON = b"!"
"""Stored in place of a line that cannot be read."""
_BLOCK_NAME = re.compile(r"(logs|metrics)/(\d{1,9})_(\d{1,19})_(\d{1,19})\.ndjson")


@dataclass(frozen=True)
class Kind:
    """The log or the metrics: the member that is not divided, or the folder of blocks; maximum sizes."""

    whole: str
    folder: str
    line_bytes: int
    block_bytes: int


LOG = Kind("logs.ndjson", "logs", 4 * 1024**2, 8 * 1024**2)
METRICS = Kind("metrics.ndjson", "metrics", 64 * 1024, 2 * 1024**2)


@dataclass(frozen=True, slots=True)
class RecordedBlock:
    """Some objects of a recording, between two times; stored as a member or, deflated, in memory.

    ``newest_before_ns`` is the newest time in the blocks before it.
    """

    first_ns: int
    last_ns: int
    newest_before_ns: int = 0
    member: str = ""
    deflated: bytes = b""

    @property
    def number(self) -> int:
        """Number in the block's name; 0 if it is not a member."""
        name = _BLOCK_NAME.fullmatch(self.member)
        return int(name[2]) if name else 0


class Blocks:
    """The blocks of the log or of the metrics, in the order of the recording.

    A member that is not divided into blocks is divided here, which reads all of it. If nothing before has a
    time that can be read, the time is ``begin_ns``.
    """

    def __init__(self, members: Members, kind: Kind, begin_ns: int = 0) -> None:
        self._members = members
        self._kind = kind
        self.items = _blocks_of(members, kind, begin_ns)
        self.first_ns = min((block.first_ns for block in self.items), default=None)
        self.last_ns = max((block.last_ns for block in self.items), default=None)

    def values(self, block: RecordedBlock) -> Iterator[Any]:
        """Return the JSON values of a block's lines; None for one that is not JSON. Raises DamagedMember."""
        if block.member:
            content = read_member(self._members, block.member, self._kind.block_bytes)
            most_lines = min(MAX_BLOCK_LINES, max_lines(self._members.stored_bytes(block.member)))
            if content.count(b"\n") > most_lines:
                raise DamagedMember(f"{block.member} has more than {most_lines:,} lines")
        else:
            content = zlib.decompress(block.deflated)
        lines = (line for line in io.BytesIO(content) if not line.isspace())
        return (_json(line) if len(line) <= self._kind.line_bytes else None for line in lines)


def _blocks_of(members: Members, kind: Kind, begin_ns: int) -> list[RecordedBlock]:
    divided = list(_divided(members, kind, begin_ns)) if kind.whole in members.names() else []
    named = [match for name in members.names() if (match := _BLOCK_NAME.fullmatch(name))]
    named = sorted((parts for parts in named if parts[1] == kind.folder), key=lambda parts: int(parts[2]))
    for parts in named:
        first_ns, last_ns = sorted((int(parts[3]), int(parts[4])))
        divided.append(RecordedBlock(first_ns, last_ns, member=parts[0]))
    newest_ns, blocks = 0, []
    for block in divided:
        blocks.append(RecordedBlock(block.first_ns, block.last_ns, newest_ns, block.member, block.deflated))
        newest_ns = max(newest_ns, block.last_ns)
    return blocks


def _divided(members: Members, kind: Kind, begin_ns: int) -> Iterator[RecordedBlock]:
    lines: list[bytes] = []
    stamps: list[int] = []
    size, newest_ns = 0, 0

    def block() -> RecordedBlock:
        near_ns = newest_ns or begin_ns
        first_ns, last_ns = min(stamps, default=near_ns), max(stamps, default=near_ns)
        content = zlib.compress(b"\n".join(lines), 1)
        lines.clear()
        stamps.clear()
        return RecordedBlock(first_ns, last_ns, deflated=content)

    most_lines = max_lines(members.stored_bytes(kind.whole))
    try:
        for number, line in enumerate(_lines(members, kind), start=1):
            if number > most_lines:
                raise DamagedMember(f"{kind.whole} has more than {most_lines:,} lines")
            if not line.strip():
                continue
            value = _json(line)
            own = times_of(value)
            lines.append(line if value is not None else NOT_JSON)
            stamps += own
            newest_ns = max([newest_ns, *own])
            size += len(line)
            if len(lines) >= BLOCK_LINES or size > kind.block_bytes // 2:
                size = 0
                yield block()
    except DamagedMember:
        lines.append(NOT_JSON)
    if lines:
        yield block()


def _lines(members: Members, kind: Kind) -> Iterator[bytes]:
    """Yield the lines of a member, of any size; in place of one that is too long, one that is not JSON."""

    def limited(line: bytes) -> bytes:
        return line if len(line) <= kind.line_bytes else NOT_JSON

    rest = b""
    for piece in members.pieces(kind.whole):
        *lines, rest = (rest + piece).split(b"\n")
        yield from map(limited, lines)
        rest = rest[: kind.line_bytes + 1]
    if rest.strip():
        yield limited(rest)


def _json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def times_of(value: Any) -> list[int]:
    """Return the times of a line, a sample or a gap; none if it has no valid ones."""
    if not isinstance(value, dict):
        return []
    gap = value.get("gap")
    times = [gap.get("start"), gap.get("end")] if isinstance(gap, dict) else [value.get("timestamp")]
    return [time_ns for item in times if (time_ns := stamp_of(item)) is not None]
