"""What has been delivered already, per millisecond, for as long as late lines may still come."""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import groupby
from typing import TypeAlias

from api_client.streams.records import MS_PER_S, NS_PER_MS, LogLine

_Prints: TypeAlias = "array[int]"

LONG_LINE_CHARACTERS = 4096
"""From this length on, what a line costs to be read again is its text."""


class Ledger:
    """Tells the lines not delivered before from those that a repeated read brings again.

    Two lines may be identical, so each millisecond is accounted as a multiset: of the lines' 64-bit hashes,
    8 bytes a line, compared within one millisecond only. It takes whole milliseconds, as RangeReader
    gives them. ``long_characters`` is how much text of long lines its milliseconds hold.
    """

    def __init__(self) -> None:
        self.line_count = 0
        self.long_characters = 0
        self._long: dict[int, int] = {}
        self._seconds: dict[int, dict[int, _Prints]] = {}

    def admit(self, lines: list[LogLine], remember_from_ms: int) -> list[LogLine]:
        """The lines (ascending, whole milliseconds) that are new; remembers those of young enough ones."""
        fresh: list[LogLine] = []
        for ms, group in groupby(lines, key=_millisecond):
            known = self._seconds.get(ms // MS_PER_S, {}).get(ms)
            if known is None and ms < remember_from_ms:
                fresh += group
                continue
            same = list(group)
            prints = array("q", map(_fingerprint, same))
            if known is None:
                fresh += same
                self._keep(ms, prints)
                self._weigh(ms, same)
            elif prints != known:
                missing = Counter(prints)
                missing.subtract(known)
                new = _take(same, prints, missing)
                fresh += new
                if new:
                    self._keep(ms, known + array("q", map(_fingerprint, new)))
                    self._weigh(ms, new)
        return fresh

    def forget_before(self, ms: int) -> None:
        """Drop the account of everything before ``ms``."""
        second = ms // MS_PER_S
        for old in [each for each in self._seconds if each < second]:
            self.line_count -= sum(map(len, self._seconds.pop(old).values()))
        bucket = self._seconds.get(second, {})
        for old in [each for each in bucket if each < ms]:
            self.line_count -= len(bucket.pop(old))
        for old in [each for each in self._long if each < ms]:
            self.long_characters -= self._long.pop(old)

    def _keep(self, ms: int, prints: _Prints) -> None:
        bucket = self._seconds.setdefault(ms // MS_PER_S, {})
        self.line_count += len(prints) - len(bucket.get(ms, ()))
        bucket[ms] = prints

    def _weigh(self, ms: int, lines: list[LogLine]) -> None:
        characters = sum([len(line.message) for line in lines if len(line.message) >= LONG_LINE_CHARACTERS])
        if characters:
            self._long[ms] = self._long.get(ms, 0) + characters
            self.long_characters += characters


def _millisecond(line: LogLine) -> int:
    return line.timestamp_ns // NS_PER_MS


def _fingerprint(line: LogLine) -> int:
    return hash((line.timestamp_ns, line.message, line.replica, line.level, line.request_id))


def _take(lines: list[LogLine], prints: _Prints, missing: Counter[int]) -> list[LogLine]:
    taken = []
    for line, fingerprint in zip(lines, prints, strict=True):
        if missing[fingerprint] > 0:
            missing[fingerprint] -= 1
            taken.append(line)
    return taken
