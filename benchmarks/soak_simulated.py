"""Three days of a log in a model's time: ``python benchmarks/soak_simulated.py [--hours 72]``.

Bursts, late lines and hours of silence are followed with a fault in three of ten requests. Wanted: every line
once, and no more memory, lines remembered or tasks in the second half than in the first.

Prints a row for each wish; the exit code is 1 if one is not met.
"""

# ruff: noqa: E402 (the tests' model is no package)

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests"), str(ROOT / "tests/unit/streams")]

import model_api
import psutil
from model_api import ModelApi, at, multiset, world
from soak_rows import FAULT_RATE, MEMORY_RATIO, SKEW_S, Row, told

from api_client import LogBatch
from api_client.streams.follow import Follower
from support.log_server import FastClock

FEWEST_HOURS = 2
"""There are to be two halves."""


@dataclass
class Sum:
    """Which lines there were and how often, in whatever order, in as much memory for a million as for one."""

    count: int = 0
    digests: int = field(default=0, repr=False)

    def add(self, lines: Iterable[tuple[Any, ...]]) -> None:
        """Some more of them."""
        for line in lines:
            self.count += 1
            self.digests += int.from_bytes(blake2b(repr(line).encode(), digest_size=16).digest())


@dataclass
class Sample:
    """One look at the process."""

    held_bytes: int
    tasks: int
    lines: int


async def simulated(hours: int) -> list[Row]:
    """A log of bursts, late lines and hours of silence, followed in a model's time."""
    model_api.MOST_PAGES = sys.maxsize
    lasting_s = hours * 3600
    lines = []
    for number in range(hours):
        begin_s = number * 3600.0
        lines += [at(begin_s + count / 25_000, f"burst {number} {count}") for count in range(3_000)]
        lines += [at(begin_s + 60 + count, f"late {count}", delay_s=count % 60) for count in range(120)]
    api = ModelApi(lines, FastClock(SKEW_S), finishes_s=lasting_s, fault_rate=FAULT_RATE, latency_s=0.05)
    follower = Follower(
        api.fetch,
        api.fetch_job,
        clock=api.clock,
        start_ms=(model_api.BEGIN_S - 600) * 1000,
    )
    found, wanted = Sum(), Sum()
    wanted.add(world(lines).elements())
    own = psutil.Process()
    samples: dict[int, Sample] = {}
    async for item in follower.stream():
        if isinstance(item, LogBatch):
            found.add(multiset(item.entries).elements())
        hour = int(api.clock.passed_s // 3600)
        samples[hour] = Sample(own.memory_info().rss, len(asyncio.all_tasks()), follower.tracked_line_count)
    half = list(samples.values())[: len(samples) // 2]
    rest = list(samples.values())[len(samples) // 2 :]
    ratio = max(one.held_bytes for one in rest) / max(one.held_bytes for one in half)
    remembered = max(one.lines for one in rest) / max(1, *(one.lines for one in half))
    tasks = max(one.tasks for one in rest) - max(one.tasks for one in half)
    what = f"{hours:g} simulated hours"
    return [
        Row(f"{what}: exact", f"{found.count:,} lines, {FAULT_RATE:.0%} faults", found == wanted),
        Row(f"{what}: memory, second half", f"{ratio:.2f} of the first", ratio <= MEMORY_RATIO),
        Row(f"{what}: lines remembered", f"{remembered:.2f} of the first", remembered <= MEMORY_RATIO),
        Row(f"{what}: tasks", f"{tasks:+d}", tasks <= 0),
    ]


def main() -> int:
    """Follow, print what was measured, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--hours", type=int, default=72, help=f"of the model's time, {FEWEST_HOURS} or more")
    options = parser.parse_args()
    if options.hours < FEWEST_HOURS:
        parser.error(f"--hours is to be {FEWEST_HOURS} or more")
    return told(asyncio.run(simulated(options.hours)))


if __name__ == "__main__":
    sys.exit(main())
