"""Log lines as sources that can be read at any time range, and their merge.

A source can count its lines before a moment without iterating over them. The cost of a page of logs
therefore does not depend on the length of the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.training import StepSchedule, mix


@dataclass(frozen=True, slots=True)
class LineSource:
    """Numbered lines of one node and one level, in ascending order of time (script nanoseconds)."""

    replica: str | None
    level: str | None
    count_before: Callable[[int], int]
    stamp: Callable[[int], int]
    text: Callable[[int], str]

    def until(self, end_ns: int) -> LineSource:
        return replace(self, count_before=lambda at_ns: self.count_before(min(at_ns, end_ns)))


def fixed_lines(
    node: int, level: str | None, start_ns: int, lines: Iterable[tuple[float, str]]
) -> LineSource:
    """Build a source from lines given in ascending order, as seconds after ``start_ns``."""
    placed = [(start_ns + int(after_s * NS_PER_S), text) for after_s, text in lines]
    stamps = [at_ns for at_ns, _ in placed]
    return LineSource(
        f"node-{node}",
        level,
        lambda at_ns: bisect_left(stamps, at_ns),
        stamps.__getitem__,
        lambda index: placed[index][1],
    )


def step_lines(
    level: str | None,
    run_ns: int,
    pace: StepSchedule,
    message_of: Callable[[int], str],
    every: int = 1,
    delay_ns: int = 0,
) -> LineSource:
    """Build a line of node-0 ``delay_ns`` after every ``every``-th step of a run; ``message_of`` gets it."""
    return LineSource(
        "node-0",
        level,
        lambda at_ns: pace.steps_done(at_ns - 1 - delay_ns - run_ns) // every,
        lambda index: run_ns + pace.finished_ns((index + 1) * every) + delay_ns,
        lambda index: message_of((index + 1) * every),
    )


def periodic_lines(
    node: int,
    level: str | None,
    start_ns: int,
    until_ns: int | None,
    period_ns: int,
    seed: int,
    message_of: Callable[[int], str],
) -> LineSource:
    """Build a line about every ``period_ns`` from ``start_ns`` on; ``message_of`` gets the line's number."""

    def stamp(index: int) -> int:
        return start_ns + index * period_ns + mix(seed, index) % period_ns

    def count_before(at_ns: int) -> int:
        at_ns = at_ns if until_ns is None else min(at_ns, until_ns)
        index = (at_ns - start_ns) // period_ns
        return 0 if index < 0 else index + (stamp(index) < at_ns)

    return LineSource(f"node-{node}", level, count_before, stamp, message_of)


def window(
    sources: Sequence[LineSource],
    *,
    start_ns: int,
    end_ns: int,
    newest_first: bool,
    limit: int,
    levels: frozenset[str] | None = None,
) -> list[tuple[int, LineSource, int]]:
    """Return up to ``limit`` lines with ``start_ns <= stamp < end_ns``: stamp, source and index of each."""
    runs: list[Iterator[tuple[int, int, int]]] = []
    for number, source in enumerate(sources):
        if levels is None or source.level in levels:
            indexes = range(source.count_before(start_ns), source.count_before(end_ns))
            runs.append(_keys(source, number, indexes[::-1] if newest_first else indexes))
    keys = islice(merge(*runs, reverse=newest_first), limit)
    return [(stamp_ns, sources[number], index) for stamp_ns, number, index in keys]


def _keys(source: LineSource, number: int, indexes: range) -> Iterator[tuple[int, int, int]]:
    for index in indexes:
        yield source.stamp(index), number, index
