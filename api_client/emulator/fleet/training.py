"""When a simulated run takes its steps, and the loss and other values of each step.

All noise is deterministic: the same seed and index always give the same value, so that any part of a run can
be computed without the rest.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import cos, inf, nan, pi

from api_client.models.logs import NS_PER_S

_UINT64_MASK = (1 << 64) - 1

TABLE_SIZE = 4096
# A power of two, so that an index can be masked; the odd factor in ``drifting_noise`` spreads neighboring
# seeds.


def mix(seed: int, index: int = 0) -> int:
    """Hash ``(seed, index)`` to a 64-bit number with SplitMix64, a pseudorandom generator."""
    value = (seed + (index + 1) * 0x9E3779B97F4A7C15) & _UINT64_MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _UINT64_MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _UINT64_MASK
    return value ^ (value >> 31)


def uniform(seed: int, index: int = 0) -> float:
    return (mix(seed, index) >> 11) / 2**53


def centered_noise(seed: int, index: int = 0) -> float:
    """Return a number in (-1, 1) for ``(seed, index)``; values near 0 are more likely."""
    return uniform(seed, 2 * index) - uniform(seed, 2 * index + 1)


@cache
def _table() -> tuple[float, ...]:
    return tuple(centered_noise(0xB7, index) for index in range(TABLE_SIZE))


def drifting_noise(seed: int, times_s: Sequence[float], cell_s: float) -> list[float]:
    """Return slowly changing noise in (-1, 1) at these times: linear between random values ``cell_s`` apart.

    Metrics need tens of thousands of values at once, so this reads a table instead of hashing. The noise
    repeats after ``TABLE_SIZE`` cells.
    """
    table, index_mask = _table(), TABLE_SIZE - 1
    offset = seed * 1_297
    values = []
    for time_s in times_s:
        cell, fraction = divmod(time_s / cell_s, 1)
        value = table[(offset + int(cell)) & index_mask]
        values.append(value + (table[(offset + int(cell) + 1) & index_mask] - value) * fraction)
    return values


def smooth_noise(seed: int, position: float) -> float:
    """Return slowly changing noise in (-1, 1), linear between random values at integer positions."""
    return drifting_noise(seed, [position], 1.0)[0]


@dataclass(frozen=True, slots=True)
class TrainingCurves:
    """The speed and the curves of a training run.

    Times are nanoseconds since the run started. A step may finish up to a fifth of ``step_s`` late, which
    does not delay the next steps.
    """

    steps: int
    step_s: float
    warmup_s: float = 90.0
    pause: tuple[int, float] = (sys.maxsize, 0.0)
    """Number of steps between pauses (to save or evaluate), and the duration of a pause in seconds."""

    losses: tuple[float, float] = (2.1, 0.82)
    """The loss at the start, and the loss that it approaches."""

    halfway_step: float = 300.0
    """The step at which the loss has fallen halfway."""

    noise: float = 0.04
    """Amplitude of the noise of the loss, as a fraction of the loss."""

    peak_learning_rate: float = 2e-5
    """The highest learning rate."""

    steps_per_epoch: int = 3000
    explodes_from: int = sys.maxsize
    """The step at which the loss starts to diverge."""

    nan_from: int = sys.maxsize
    """The first step with a NaN loss."""

    halts_after_s: float = inf
    """The run hangs after this many seconds: it takes no further step."""

    first_step: int = 0
    """Steps done before the run started, if it was resumed."""

    @property
    def seed(self) -> int:
        """Seed of all noise: equal curves have equal noise."""
        return self.steps + int(self.halfway_step)

    def finished_ns(self, step: int) -> int:
        """Return the time at which a step of the run (from 1 on) is done; later steps have later times."""
        steps_since_start, (pause_every, pause_s) = step - self.first_step, self.pause
        step_ns = int(self.step_s * NS_PER_S)
        pauses_ns = max(0, steps_since_start - 1) // pause_every * int(pause_s * NS_PER_S)
        jitter_ns = mix(self.seed, steps_since_start) % max(1, int(step_ns * 0.2))
        return int(self.warmup_s * NS_PER_S) + steps_since_start * step_ns + pauses_ns + jitter_ns

    def steps_done(self, since_start_ns: int) -> int:
        """Return the number of the last step that is done ``since_start_ns`` after the start of the run."""
        steps = range(self.first_step + 1, self.steps + 1)
        until_ns = min(since_start_ns, self.halts_after_s * NS_PER_S)
        return self.first_step + bisect_right(steps, until_ns, key=self.finished_ns)

    def is_pausing(self, since_start_s: float) -> bool:
        pause_every, pause_s = self.pause
        steps_s = pause_every * self.step_s
        past_warmup_s = max(0.0, since_start_s - self.warmup_s)
        return not self.has_halted(since_start_s) and past_warmup_s % (steps_s + pause_s) > steps_s

    def has_halted(self, since_start_s: float) -> bool:
        return since_start_s >= self.halts_after_s

    @property
    def duration_s(self) -> float:
        """Duration of the whole run if it never hangs."""
        pause_every, pause_s = self.pause
        return self.warmup_s + self.steps * self.step_s + self.steps // pause_every * pause_s

    def loss(self, step: int) -> float:
        """Return the training loss at a step; NaN from ``nan_from`` on."""
        noise = centered_noise(self.seed, step) + smooth_noise(self.seed + 1, step / 40.0)
        return self._noiseless_loss(step) * (1 + self.noise * noise) * self._divergence_factor(step)

    def _noiseless_loss(self, step: int) -> float:
        start, floor = self.losses
        return floor + (start - floor) / (1 + step / self.halfway_step)

    def _divergence_factor(self, step: int) -> float:
        if step >= self.nan_from:
            return nan
        # In the last 6 steps before it becomes NaN, the loss grows fast.
        final_steps, diverging_steps = step - self.nan_from + 6, min(step - self.explodes_from, 1000)
        return float(
            1.9 ** (final_steps + 1) if final_steps >= 0 else min(60.0, 1.05 ** max(0, diverging_steps))
        )

    def eval_loss(self, step: int) -> float:
        """Return the held-out loss at a step: slightly above the training loss, with less noise."""
        return self._noiseless_loss(step) * 1.04 + 0.004 * smooth_noise(self.seed + 2, step / 40.0)

    def learning_rate(self, step: int) -> float:
        """Return the learning rate at a step: linear warm-up, then a cosine to a tenth of the peak."""
        total = self.steps
        warmup_steps = max(1, int(total * 0.03))
        if step < warmup_steps:
            return self.peak_learning_rate * step / warmup_steps
        decay_progress = min(1.0, (step - warmup_steps) / max(1, total - warmup_steps))
        return self.peak_learning_rate * (0.1 + 0.9 * (1 + cos(pi * decay_progress)) / 2)

    def grad_norm(self, step: int) -> float:
        stable_norm = 0.45 + 1.6 / (1 + step / self.halfway_step) + 0.25 * uniform(self.seed + 3, step)
        return self._divergence_factor(step) ** 2 * stable_norm

    def epoch(self, step: int) -> float:
        return step / self.steps_per_epoch
