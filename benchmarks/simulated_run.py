"""A simulated training run for ``health.py``: the lines of its log, and its metrics as functions of time.

All times are seconds since the job was created. Metrics are ``Level``s, functions of the time, so that a few
lines of code describe hours. Noise comes from ``random.Random(seed)``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

HOUR = 3600.0
LOADED_S = 600.0
"""The default time at which the model is loaded and the first step begins."""
FORM = "step {step}/{total} | loss {loss:.4f} | lr 1e-5 | grad norm {norm:.3f} | {speed:.0f} tok/s"

Level = Callable[[float], float | None]
"""A function that returns a metric's value at a time; None if there is no sample."""


def steady(value: float) -> Level:
    return lambda at: value


def busy(seed: int, *, begin: float = LOADED_S, end: float = math.inf, level: float = 0.95) -> Level:
    """Return a noisy level that is 0 before and after the training."""
    noise = random.Random(seed + 1)
    return lambda at: max(0.0, noise.gauss(level, 0.015)) if begin <= at < end else 0.0


@dataclass
class Line:
    """A log line of the node with this number; the server delivers it ``late_s`` seconds after ``at``."""

    at: float
    text: str
    node: int = 0
    late_s: float = 0.0
    level: str | None = None


@dataclass
class Node:
    """The metrics of a node: fractions (GPU utilization, disk), GiB (memory), and cores (CPU, of 64).

    They are sampled once a minute. All GPUs of the node have the utilization ``gpu``. The levels of a node
    that has no metrics for a time return None for that time.
    """

    gpu: Level
    gpu_memory: Level = lambda at: 60.0
    memory: Level = lambda at: 120.0
    cpu: Level = lambda at: 12.0
    disk: Level = lambda at: 0.2


@dataclass
class Run:
    """A run and the findings that the health checks must report for it.

    ``expected`` maps each expected kind of finding to the time at which its cause begins; it is empty for a
    healthy run. Kinds in ``allowed`` may be found, too. ``checkpoints`` are the checkpoints that the platform
    lists (time, name), None if it lists none. ``restarts`` are the times at which the platform restarted the
    job. Each node has 400 GiB of memory and two GPUs with 80 GiB.
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
    line_format: str = FORM,
    *,
    step_s: float = 10.0,
    begin: float = LOADED_S,
    total: int = 5000,
    loss: Callable[[int], float] = lambda step: 2 + 4 / (1 + step / 100),
    noise: float = 0.02,
    pauses: Mapping[int, float] | None = None,
    pace: Callable[[float], float] = lambda at: 1.0,
) -> list[Line]:
    """Return the lines of a run that takes about ``step_s`` seconds per step.

    ``pauses`` are the seconds to pause after certain steps, ``pace`` is a factor of the step time.
    """
    noise_source = random.Random(seed)
    lines, at = [], begin
    for step in range(1, total + 1):
        duration_s = step_s * pace(at) * (1 + noise_source.gauss(0, 0.02))
        at += duration_s
        if at > hours * HOUR:
            break
        values = {
            "loss": loss(step) * (1 + noise_source.gauss(0, noise)),
            "norm": 0.8 + noise_source.random() * 0.3,
            "speed": 40000 * step_s / duration_s,
            "ms": duration_s * 1000,
            "rate": 1 / duration_s,
        }
        lines.append(Line(at, line_format.format(step=step, total=total, took=duration_s, **values)))
        at += (pauses or {}).get(step, 0.0)
    return lines


def ticks(
    begin: float, interval_s: float, count: int, text: Callable[[int], str], node: int = 0
) -> list[Line]:
    """Return ``count`` lines at even intervals; ``text`` returns the text for a line's index."""
    return [Line(begin + interval_s * n, text(n), node) for n in range(count)]


def runs_of(module: ModuleType) -> list[Callable[[int], Run]]:
    """Return the functions of a module that return a ``Run`` for a seed."""
    return [make for make in vars(module).values() if getattr(make, "__annotations__", None) == SIGNATURE]


SIGNATURE = {"seed": "int", "return": "Run"}
