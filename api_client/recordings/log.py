"""The log of a recording at any moment of it.

A line is visible from the moment at which it arrived: that is its own time, or the time of the newest line
before it in the file if that is later. What cannot be read is a gap.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from api_client.recordings.archive import DamagedMember, Members
from api_client.recordings.blocks import LOG, Blocks
from api_client.recordings.stamps import stamp_of

DAMAGED = "this part of the recording is damaged"
MISPLACED = "this part of the recording has lines of another time"
UNREADABLE = "a line of the recording can't be read"


class RecordedLine(NamedTuple):
    """A line or a gap, in the order in which they are shown: by time, then as in the file."""

    time_ns: int
    number: tuple[int, int]
    """Number of the block, and of the line in it."""

    arrived_ns: int
    entry: LogEntry


class RecordedLog:
    """The lines and gaps of a recording whose job was created at ``begin_ns``."""

    def __init__(self, members: Members, begin_ns: int) -> None:
        self.blocks = Blocks(members, LOG, begin_ns)
        self._parsed = lru_cache(4)(self._parse)

    def arriving(
        self, position: tuple[int, int], until_ns: int, *, limit: int = sys.maxsize
    ) -> tuple[list[RecordedLine], tuple[int, int]]:
        """Return what arrived from ``position`` (at first (0, 0)) to a time, and the next position.

        In the order of the file, in which arrivals only increase.
        """
        number, start = position
        arrived: list[RecordedLine] = []
        while number < len(self.blocks.items):
            entries = sorted(self._parsed(number), key=_by_number)
            while start < len(entries) and entries[start].arrived_ns <= until_ns and len(arrived) < limit:
                arrived.append(entries[start])
                start += 1
            if start < len(entries):
                break
            number, start = number + 1, 0
        return arrived, (number, start)

    def entries(self) -> Iterator[RecordedLine]:
        """Yield everything in the order of the file."""
        for number in range(len(self.blocks.items)):
            yield from sorted(self._parse(number), key=_by_number)

    def select(
        self,
        start_ns: int,
        end_ns: int,
        *,
        now_ns: int,
        limit: int,
        newest_first: bool,
        levels: frozenset[str] | None,
    ) -> tuple[list[LogLine], list[LogGap]]:
        """Return up to ``limit`` lines of a time range that had arrived by ``now_ns``, and its gaps."""
        near = [
            (block, number)
            for number, block in enumerate(self.blocks.items)
            if block.first_ns < end_ns and block.last_ns >= start_ns and block.newest_before_ns <= now_ns
        ]
        near.sort(key=lambda line: -line[0].last_ns if newest_first else line[0].first_ns)
        lines: list[RecordedLine] = []
        gaps: list[LogGap] = []
        for block, number in near:
            if len(lines) >= limit:
                lines = _ordered(lines, newest_first)[:limit]
                bound_ns = lines[-1].time_ns
                if block.last_ns < bound_ns if newest_first else block.first_ns > bound_ns:
                    break
            for line in self._inside(number, start_ns, end_ns):
                if line.arrived_ns > now_ns:
                    continue
                if isinstance(line.entry, LogGap):
                    gaps.append(line.entry)
                elif levels is None or line.entry.level in levels:
                    lines.append(line)
        selected = (line.entry for line in _ordered(lines, newest_first)[:limit])
        return [entry for entry in selected if isinstance(entry, LogLine)], gaps

    def _inside(self, number: int, start_ns: int, end_ns: int) -> list[RecordedLine]:
        entries = self._parsed(number)
        low = bisect_left(entries, start_ns, key=_by_time)
        return entries[low : bisect_left(entries, end_ns, key=_by_time)]

    def _parse(self, number: int) -> list[RecordedLine]:
        """Return the entries of a block by time."""
        block = self.blocks.items[number]
        try:
            values = self.blocks.values(block)
        except DamagedMember:
            gap = LogGap(block.first_ns, block.last_ns + 1, DAMAGED)
            arrived_ns = max(block.newest_before_ns, gap.start_ns)
            return [RecordedLine(gap.start_ns, (number, 0), arrived_ns, gap)]
        arrived_ns = block.newest_before_ns
        time_ns = max(block.first_ns, 0)
        entries = []
        for number_in_block, value in enumerate(values):
            entry = _entry(value, time_ns)
            time_ns = stamp_ns(entry)
            if not block.first_ns <= time_ns <= block.last_ns:
                time_ns, entry = block.first_ns, LogGap(block.first_ns, block.last_ns + 1, MISPLACED)
            arrived_ns = max(arrived_ns, time_ns)
            entries.append(RecordedLine(time_ns, (number, number_in_block), arrived_ns, entry))
        entries.sort(key=_by_time)
        return entries


def _by_time(line: RecordedLine) -> int:
    return line.time_ns


def _by_number(line: RecordedLine) -> tuple[int, int]:
    return line.number


def _ordered(lines: list[RecordedLine], newest_first: bool) -> list[RecordedLine]:
    return sorted(lines, key=lambda one: one[:2], reverse=newest_first)


def _entry(value: Any, near_ns: int) -> LogEntry:
    """Return a line, a gap, or a gap in place of a line that cannot be read.

    A line without a valid time gets ``near_ns``.
    """
    if not isinstance(value, dict):
        return LogGap(near_ns, near_ns + 1, UNREADABLE)
    stamp = value.get("timestamp")
    time_ns = stamp_of(stamp) if isinstance(stamp, str) and stamp.isdigit() else None
    if time_ns is None and "message" in value and "gap" not in value:
        time_ns = near_ns
    if time_ns is not None:
        message, replica, level = value.get("message", ""), value.get("replica"), value.get("level")
        return LogLine(
            time_ns,
            message if isinstance(message, str) else json.dumps(message),
            replica if isinstance(replica, str) else None,
            level if isinstance(level, str) else None,
        )
    gap = value.get("gap")
    if isinstance(gap, dict):
        start_ns, end_ns = stamp_of(gap.get("start")), stamp_of(gap.get("end"))
        if start_ns is not None and end_ns is not None and start_ns < end_ns:
            return LogGap(start_ns, end_ns, str(gap.get("reason", ""))[:200])
    return LogGap(near_ns, near_ns + 1, UNREADABLE)
