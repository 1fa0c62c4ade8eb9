"""Track delivered lines per millisecond, as long as late lines may still arrive."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from itertools import groupby
from operator import attrgetter
from typing import TypeAlias

from api_client.models.logs import MS_PER_S, NS_PER_MS, NS_PER_S, LogLine

_Hashes: TypeAlias = "array[int]"

_by_stamp = attrgetter("timestamp_ns")

LONG_LINE_CHARACTERS = 4096  # from this length on, the cost of reading a line again is its text


class LineDeduplicator:
    """Finds the lines of repeated reads that were not delivered before.

    Lines may be identical, so each millisecond is a multiset of the lines' 64-bit hashes: 8 bytes per
    line, compared only within a millisecond. Input must be whole milliseconds, as RangeReader returns
    them. ``long_characters`` is the amount of text in long lines.

    Nearly all repeated lines are known and arrive in the same order as before, so a second with the same
    sequence of hashes is skipped as a whole.
    """

    def __init__(self) -> None:
        self.line_count = 0
        self.long_characters = 0
        self._long: dict[int, int] = {}
        self._seconds: dict[int, dict[int, _Hashes]] = {}
        self._passed: dict[int, int] = {}

    def new_lines(self, lines: list[LogLine], remember_from_ms: int) -> list[LogLine]:
        """Return the new lines among ``lines`` (ascending, whole milliseconds) and track the recent ones.

        Lines before ``remember_from_ms`` are not tracked.
        """
        fresh: list[LogLine] = []
        line_hashes = array("q", map(hash, lines))
        start = 0
        while start < len(lines):
            second = lines[start].timestamp_ns // NS_PER_S
            stop = bisect_left(lines, (second + 1) * NS_PER_S, start, key=_by_stamp)
            sequence = hash(line_hashes[start:stop].tobytes())
            if self._passed.get(second) != sequence:
                new = self._select_new(lines[start:stop], remember_from_ms)
                if not new or second * MS_PER_S >= remember_from_ms:
                    self._passed[second] = sequence  # all of its lines are tracked now
                fresh += new
            start = stop
        return fresh

    def _select_new(self, lines: list[LogLine], remember_from_ms: int) -> list[LogLine]:
        fresh: list[LogLine] = []
        for ms, group in groupby(lines, key=_millisecond):
            seen = self._seconds.get(ms // MS_PER_S, {}).get(ms)
            if seen is None and ms < remember_from_ms:
                fresh += group
                continue
            same = list(group)
            line_hashes = array("q", map(hash, same))
            if seen is None:
                fresh += same
                self._keep(ms, line_hashes)
                self._weigh(ms, same)
            elif line_hashes != seen:
                missing = Counter(line_hashes)
                missing.subtract(seen)
                new = _take(same, line_hashes, missing)
                fresh += new
                if new:
                    self._keep(ms, seen + array("q", map(hash, new)))
                    self._weigh(ms, new)
        return fresh

    def forget_before(self, ms: int) -> None:
        second = ms // MS_PER_S
        for old in [key for key in self._passed if key <= second]:
            del self._passed[old]
        for old in [key for key in self._seconds if key < second]:
            self.line_count -= sum(map(len, self._seconds.pop(old).values()))
        bucket = self._seconds.get(second, {})
        for old in [key for key in bucket if key < ms]:
            self.line_count -= len(bucket.pop(old))
        for old in [key for key in self._long if key < ms]:
            self.long_characters -= self._long.pop(old)

    def _keep(self, ms: int, line_hashes: _Hashes) -> None:
        bucket = self._seconds.setdefault(ms // MS_PER_S, {})
        self.line_count += len(line_hashes) - len(bucket.get(ms, ()))
        bucket[ms] = line_hashes

    def _weigh(self, ms: int, lines: list[LogLine]) -> None:
        characters = sum([len(line.message) for line in lines if len(line.message) >= LONG_LINE_CHARACTERS])
        if characters:
            self._long[ms] = self._long.get(ms, 0) + characters
            self.long_characters += characters


def _millisecond(line: LogLine) -> int:
    return line.timestamp_ns // NS_PER_MS


def _take(lines: list[LogLine], line_hashes: _Hashes, missing: Counter[int]) -> list[LogLine]:
    taken = []
    for line, fingerprint in zip(lines, line_hashes, strict=True):
        if missing[fingerprint] > 0:
            missing[fingerprint] -= 1
            taken.append(line)
    return taken
