"""A simulated training run for ``health.py``: what its log and its metrics show, second by second.

All times are seconds since the job was created. Levels are functions of the time, so that a run of hours is
a few lines of code; noise comes from ``random.Random(seed)``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

HOUR = 3600.0
LOADED_S = 600.0
"""By then a model has loaded, and the first step begins."""
FORM = "step {step}/{total} | loss {loss:.4f} | lr 1e-5 | grad norm {norm:.3f} | {speed:.0f} tok/s"

Level = Callable[[float], float | None]
"""A value at a time; None if there is no sample then."""


def steady(value: float) -> Level:
    return lambda at: value


def busy(seed: int, *, begin: float = LOADED_S, end: float = math.inf, level: float = 0.95) -> Level:
    """Return a noisy level that is 0 before and after the training."""
    draw = random.Random(seed + 1)
    return lambda at: max(0.0, draw.gauss(level, 0.015)) if begin <= at < end else 0.0


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

    There is a sample a minute. ``gpu`` applies to all GPUs. A node whose samples begin or end during the run
    returns None outside of that time.
    """

    gpu: Level
    gpu_memory: Level = lambda at: 60.0
    memory: Level = lambda at: 120.0
    cpu: Level = lambda at: 12.0
    disk: Level = lambda at: 0.2


@dataclass
class Run:
    """A run and what is to be found in it.

    ``expected`` maps each kind of finding to when its cause begins; a healthy run has none. ``allowed``
    kinds may be found as well. ``checkpoints`` are those that the platform lists (time, name), None if it
    does not list any. ``restarts`` are the times at which the platform restarted the job. GPUs have 80 GiB,
    nodes 400 GiB of memory and two GPUs.
    """

    hours: float
    lines: Sequence[Line]
    nodes: Sequence[Node]
    expected: Mapping[str, float] = field(default_factory=dict)
    allowed: Sequence[str] = ()
    checkpoints: Sequence[tuple[float, str]] | None = None
    restarts: Sequence[float] = ()
    cache: Level | None = None


def training(
    seed: int,
    hours: float,
    form: str = FORM,
    *,
    every: float = 10.0,
    begin: float = LOADED_S,
    total: int = 5000,
    loss: Callable[[int], float] = lambda step: 2 + 4 / (1 + step / 100),
    noise: float = 0.02,
    pauses: Mapping[int, float] | None = None,
    pace: Callable[[float], float] = lambda at: 1.0,
) -> list[Line]:
    """Lines of a run that takes ``every`` seconds a step; after some steps it pauses for seconds."""
    draw = random.Random(seed)
    lines, at = [], begin
    for step in range(1, total + 1):
        took = every * pace(at) * (1 + draw.gauss(0, 0.02))
        at += took
        if at > hours * HOUR:
            break
        values = {
            "loss": loss(step) * (1 + draw.gauss(0, noise)),
            "norm": 0.8 + draw.random() * 0.3,
            "speed": 40000 * every / took,
            "ms": took * 1000,
            "rate": 1 / took,
        }
        lines.append(Line(at, form.format(step=step, total=total, took=took, **values)))
        at += (pauses or {}).get(step, 0.0)
    return lines


def ticks(begin: float, every: float, count: int, text: Callable[[int], str], node: int = 0) -> list[Line]:
    """Lines at even intervals; ``text`` returns that of each number."""
    return [Line(begin + every * n, text(n), node) for n in range(count)]


def runs_of(module: ModuleType) -> list[Callable[[int], Run]]:
    """Return the functions of a module that make a run of a seed."""
    return [make for make in vars(module).values() if getattr(make, "__annotations__", None) == SIGNATURE]


SIGNATURE = {"seed": "int", "return": "Run"}
