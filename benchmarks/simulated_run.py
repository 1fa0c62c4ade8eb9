"""A simulated training run for ``health.py``: what its log and its metrics show, second by second.

All times are seconds since the job was created. Levels are functions of the time, so that a run of hours is
a few lines of code; noise comes from the author's own ``random.Random(seed)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Level = Callable[[float], float | None]
"""A value at a time; None if there is no sample then."""


def steady(value: float) -> Level:
    """Return a level that does not change."""
    return lambda at: value


@dataclass
class Line:
    """A log line. ``node`` is the number of the node that logs it; it arrives ``late_s`` after its time."""

    at: float
    text: str
    node: int = 0
    late_s: float = 0.0
    level: str | None = None


@dataclass
class Node:
    """What the metrics of a node show: shares of 0 to 1 (GPUs, disk), GiB (memory) and cores (CPU, of 64).

    There is a sample a minute. ``gpu`` applies to all GPUs, unless ``gpus`` has one level for each. A node
    whose samples begin or end during the run returns None outside of that time.
    """

    gpu: Level = field(default_factory=lambda: steady(0.95))
    gpus: Sequence[Level] = ()
    gpu_memory: Level = field(default_factory=lambda: steady(60.0))
    memory: Level = field(default_factory=lambda: steady(120.0))
    cpu: Level = field(default_factory=lambda: steady(12.0))
    disk: Level = field(default_factory=lambda: steady(0.2))


@dataclass
class Run:
    """A run and what is to be found in it.

    ``expected`` maps each kind of finding to when its cause begins; a healthy run has none. ``allowed``
    kinds may be found as well. ``checkpoints`` are those that the platform lists (time, name), None if it
    does not list any. ``restarts`` are the times at which the platform restarted the job. GPUs have 80 GiB,
    nodes 400 GiB of memory.
    """

    hours: float
    lines: Sequence[Line]
    nodes: Sequence[Node] = field(default_factory=lambda: [Node()])
    expected: Mapping[str, float] = field(default_factory=dict)
    allowed: frozenset[str] = frozenset()
    gpu_count: int = 2
    checkpoints: Sequence[tuple[float, str]] | None = None
    restarts: Sequence[float] = ()
    cache: Level | None = None
