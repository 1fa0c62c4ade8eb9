"""The log of a recording, as of any time during the run.

A line is visible from its arrival on: from its own time, or from the newest time before it in the file, if
that is later. Unreadable parts of the file become gaps.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from threading import Lock
from typing import Any, NamedTuple

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from api_client.recordings.archive import DamagedMember, Members
from api_client.recordings.blocks import LOG, Blocks, stamp_of

MIN_CACHED_LINES = 8_000
"""Minimum number of sorted lines to cache: reading overlapping blocks yields the lines of several pages."""
UNREADABLE = "a line of the recording can't be read"


class RecordedLine(NamedTuple):
    """A line or a gap, and the time at which it arrived."""

    arrived_ns: int
    entry: LogEntry


class RecordedLog:
    """The lines and gaps of a recording; ``begin_ns`` is when the job was created."""

    def __init__(self, members: Members, begin_ns: int) -> None:
        self.blocks = Blocks(members, LOG, begin_ns)
        self._cached_block = lru_cache(4)(self._read_block)
        self._sorted_lines = _SortedLines((0, 0, None), 0, (), (), is_complete=True)
        self._lock = Lock()

    def arriving(
        self, position: tuple[int, int], until_ns: int, *, limit: int = sys.maxsize
    ) -> tuple[list[RecordedLine], tuple[int, int]]:
        """Return the entries after ``position`` that arrived by ``until_ns``, and the position after them.

        Positions are (block number, index in the block); the first is (0, 0). Entries are in file order, in
        which arrival times never decrease.
        """
        number, start = position
        arrived: list[RecordedLine] = []
        while number < len(self.blocks.items):
            lines = self._cached_block(number)
            end = bisect_right(lines, until_ns, start, key=attrgetter("arrived_ns"))
            stop = min(end, start + limit - len(arrived))
            arrived += lines[start:stop]
            if stop < len(lines):
                return arrived, (number, stop)
            number, start = number + 1, 0
        return arrived, (number, start)

    def entries(self) -> Iterator[LogEntry]:
        """Yield all lines and gaps in file order."""
        for number in range(len(self.blocks.items)):
            yield from (line.entry for line in self._read_block(number))

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
        """Return up to ``limit`` lines of a time range that had arrived by ``now_ns``, and its gaps.

        Lines with equal times are in file order, or reversed if ``newest_first``.
        """
        query = (-1 if newest_first else 1, now_ns, levels)
        first_time, last_time = (1 - end_ns, -start_ns) if newest_first else (start_ns, end_ns - 1)
        with self._lock:
            lines = self._sorted_lines.first_lines(query, first_time, last_time, limit)
            if lines is None:
                self._sorted_lines = self._sort_blocks(query, first_time, limit)
                lines = self._sorted_lines.first_lines(query, first_time, last_time, limit)
                assert lines is not None
            return lines, [gap for gap in self._sorted_lines.gaps if start_ns <= gap.start_ns < end_ns]

    def _sort_blocks(self, query: _Query, first_time: int, limit: int) -> _SortedLines:
        """Read and sort blocks until no unread block can have any of the first ``limit`` lines."""
        sign, now_ns, levels = query
        max_lines = max(limit, MIN_CACHED_LINES)
        candidates = [
            (min(sign * block.first_ns, sign * block.last_ns), number)
            for number, block in enumerate(self.blocks.items)
            if max(sign * block.first_ns, sign * block.last_ns) >= first_time
            and block.newest_before_ns <= now_ns
        ]
        lines: list[_SortedLine] = []
        gaps: list[LogGap] = []
        for block_begin, number in sorted(candidates):
            if len(lines) >= limit and block_begin > lines[limit - 1][0]:
                final_lines = lines[: bisect_left(lines, block_begin, key=itemgetter(0))]
                return _SortedLines(query, first_time, final_lines, gaps, is_complete=False)
            for arrived_ns, entry in self._cached_block(number)[::sign]:
                time = sign * stamp_ns(entry)
                if arrived_ns > now_ns or time < first_time:
                    continue
                if isinstance(entry, LogGap):
                    gaps.append(entry)
                elif levels is None or entry.level in levels:
                    lines.append((time, sign * number, entry))
            lines = sorted(lines, key=itemgetter(0, 1))[:max_lines]
        return _SortedLines(query, first_time, lines, gaps, is_complete=len(lines) < max_lines)

    def _read_block(self, number: int) -> list[RecordedLine]:
        block = self.blocks.items[number]
        arrived_ns, time_ns = block.newest_before_ns, max(block.first_ns, 0)
        block_range = (block.first_ns, block.last_ns + 1)
        try:
            values = self.blocks.values(block)
        except DamagedMember:
            return [
                RecordedLine(
                    max(arrived_ns, time_ns), LogGap(*block_range, "this part of the recording is damaged")
                )
            ]
        lines = []
        for value in values:
            entry = _to_entry(value, time_ns)
            if not block.first_ns <= stamp_ns(entry) <= block.last_ns:
                entry = LogGap(*block_range, "this part of the recording has lines of another time")
            time_ns = stamp_ns(entry)
            arrived_ns = max(arrived_ns, time_ns)
            lines.append(RecordedLine(arrived_ns, entry))
        return lines


_Query = tuple[int, int, frozenset[str] | None]
"""Direction (1 forward, -1 backward), time by which lines had arrived, and levels (None: all)."""
_SortedLine = tuple[int, int, LogLine]
"""(time, block number, line); time and number are negated when reading backward."""


class _SortedLines(NamedTuple):
    """Cached lines of a query from the time ``first_time`` on, in reading order."""

    query: _Query
    first_time: int
    lines: Sequence[_SortedLine]
    gaps: Sequence[LogGap]
    """The gaps of all blocks read so far."""

    is_complete: bool
    """True if there are no later lines."""

    def first_lines(self, query: _Query, first_time: int, last_time: int, limit: int) -> list[LogLine] | None:
        """Return the first lines of a range; None if unread blocks may have earlier lines."""
        if query != self.query or first_time < self.first_time:
            return None
        start = bisect_left(self.lines, first_time, key=itemgetter(0))
        stop = bisect_right(self.lines, last_time, start, key=itemgetter(0))
        lines = [line for *_, line in self.lines[start : min(stop, start + limit)]]
        is_known = len(lines) == limit or stop < len(self.lines) or self.is_complete
        return lines if is_known else None


def _to_entry(value: Any, fallback_ns: int) -> LogEntry:
    """Convert a JSON value to a line or a gap; an unreadable value becomes a gap.

    A line without a valid time gets ``near_ns``.
    """
    if not isinstance(value, dict):
        return LogGap(fallback_ns, fallback_ns + 1, UNREADABLE)
    stamp = value.get("timestamp")
    time_ns = stamp_of(stamp) if isinstance(stamp, str) and stamp.isdigit() else None
    if time_ns is None and "message" in value and "gap" not in value:
        time_ns = fallback_ns
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
    return LogGap(fallback_ns, fallback_ns + 1, UNREADABLE)
