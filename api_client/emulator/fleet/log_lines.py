"""Log lines as sources that can be read at any time range, and their merge.

A source is a numbered sequence of lines in ascending time order that can count the lines before a moment
without iterating over them. The cost of a page of logs therefore does not depend on the length of the
run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Literal, Protocol

from api_client.emulator.fleet.training import StepSchedule, mix


class LineSource(Protocol):
    """Lines of one replica and one level. Moments are script nanoseconds since the Unix epoch."""

    @property
    def replica(self) -> str | None: ...

    @property
    def level(self) -> str | None:
        """DEBUG, INFO, WARNING or ERROR; None if unknown."""
        ...

    def count_before(self, at_ns: int) -> int:
        """Return the number of lines with a timestamp before that moment."""
        ...

    def stamp(self, index: int) -> int: ...

    def text(self, index: int) -> str: ...


@dataclass(frozen=True, slots=True)
class FixedLines:
    """A few lines at given moments, in ascending order."""

    replica: str | None
    level: str | None
    stamps: tuple[int, ...]
    texts: tuple[str, ...]

    def count_before(self, at_ns: int) -> int:
        return bisect_left(self.stamps, at_ns)

    def stamp(self, index: int) -> int:
        return self.stamps[index]

    def text(self, index: int) -> str:
        return self.texts[index]


@dataclass(frozen=True, slots=True)
class StepLines:
    """A line ``delay_ns`` after every ``every``-th step of a run; ``say`` gets the step."""

    replica: str | None
    level: str | None
    run_ns: int
    pace: StepSchedule
    say: Callable[[int], str]
    every: int = 1
    delay_ns: int = 0

    def count_before(self, at_ns: int) -> int:
        return self.pace.steps_done(at_ns - 1 - self.delay_ns - self.run_ns) // self.every

    def stamp(self, index: int) -> int:
        return self.run_ns + self.pace.finished_ns((index + 1) * self.every) + self.delay_ns

    def text(self, index: int) -> str:
        return self.say((index + 1) * self.every)


@dataclass(frozen=True, slots=True)
class PeriodicLines:
    """A line about every ``period_ns`` from ``start_ns`` to ``until_ns``; ``say`` gets the line number."""

    replica: str | None
    level: str | None
    start_ns: int
    until_ns: int | None
    period_ns: int
    seed: int
    say: Callable[[int], str]

    def count_before(self, at_ns: int) -> int:
        if self.until_ns is not None:
            at_ns = min(at_ns, self.until_ns)
        index = (at_ns - self.start_ns) // self.period_ns
        if index < 0:
            return 0
        return index + (self.stamp(index) < at_ns)

    def stamp(self, index: int) -> int:
        return self.start_ns + index * self.period_ns + mix(self.seed, index) % self.period_ns

    def text(self, index: int) -> str:
        return self.say(index)


@dataclass(frozen=True, slots=True)
class TruncatedLines:
    """The lines of another source with timestamps before ``until_ns``."""

    source: LineSource
    until_ns: int

    @property
    def replica(self) -> str | None:
        return self.source.replica

    @property
    def level(self) -> str | None:
        return self.source.level

    def count_before(self, at_ns: int) -> int:
        return self.source.count_before(min(at_ns, self.until_ns))

    def stamp(self, index: int) -> int:
        return self.source.stamp(index)

    def text(self, index: int) -> str:
        return self.source.text(index)


@dataclass(frozen=True, slots=True)
class Line:
    """A log line; ``stamp_ns`` is script time."""

    stamp_ns: int
    replica: str | None
    level: str | None
    text: str


def window(
    sources: Sequence[LineSource],
    *,
    start_ns: int,
    end_ns: int,
    direction: Literal["asc", "desc"],
    limit: int,
    levels: frozenset[str] | None = None,
) -> list[Line]:
    """Return up to ``limit`` lines with ``start_ns <= stamp < end_ns``.

    ``desc`` gives exactly the reverse of ``asc``.
    """
    runs: list[Iterator[tuple[int, int, int]]] = []
    newest_first = direction == "desc"
    for number, source in enumerate(sources):
        if levels is not None and source.level not in levels:
            continue
        first, after = source.count_before(start_ns), source.count_before(end_ns)
        if first < after:
            indexes = range(after - 1, first - 1, -1) if newest_first else range(first, after)
            runs.append(_keys(source, number, indexes))
    keys = islice(merge(*runs, reverse=newest_first), limit)
    return [
        Line(stamp_ns, sources[number].replica, sources[number].level, sources[number].text(index))
        for stamp_ns, number, index in keys
    ]


def _keys(source: LineSource, number: int, indexes: range) -> Iterator[tuple[int, int, int]]:
    for index in indexes:
        yield source.stamp(index), number, index
