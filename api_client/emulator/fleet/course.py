"""How training goes: loss, learning rate and gradient norm by step."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, nan, pi

from api_client.emulator.fleet.noise import centred, smooth, uniform
from api_client.emulator.fleet.pace import Pace

WARMUP_SHARE = 0.03
"""The learning rate rises over this share of the steps, then falls along a cosine."""
_DRIFT_STEPS = 40.0
_EXPLOSION_A_STEP = 1.05
_MOST_EXPLODED = 60.0


@dataclass(frozen=True, slots=True)
class Course:
    """A training's pace and its curves.

    ``nan_from`` is the first step whose loss is not a number, ``explodes_from`` the first of a loss that
    grows without end.
    """

    pace: Pace
    loss_start: float = 2.1
    loss_floor: float = 0.82
    half_steps: float = 300.0
    noise: float = 0.04
    peak_learning_rate: float = 2e-5
    steps_per_epoch: int = 3000
    nan_from: int | None = None
    explodes_from: int | None = None
    seed: int = 1

    def loss(self, step: int) -> float:
        """Training loss at a step; not a number from ``nan_from`` on."""
        if self.nan_from is not None:
            if step >= self.nan_from:
                return nan
            if step >= self.nan_from - 6:  # it blows up before it is lost
                return self._clean_loss(step) * 1.9 ** (step - self.nan_from + 7)
        return self._clean_loss(step) * self._explosion(step)

    def _explosion(self, step: int) -> float:
        if self.explodes_from is None or step < self.explodes_from:
            return 1.0
        return min(_MOST_EXPLODED, _EXPLOSION_A_STEP ** (step - self.explodes_from))

    def _clean_loss(self, step: int) -> float:
        level = self.loss_floor + (self.loss_start - self.loss_floor) / (1 + step / self.half_steps)
        return level * (
            1 + self.noise * (centred(self.seed, step) + smooth(self.seed + 1, step / _DRIFT_STEPS))
        )

    def eval_loss(self, step: int) -> float:
        """Held-out loss at a step: a little above the training loss, without its noise."""
        level = self.loss_floor + (self.loss_start - self.loss_floor) / (1 + step / self.half_steps)
        return level * 1.04 + 0.004 * smooth(self.seed + 2, step / _DRIFT_STEPS)

    def learning_rate(self, step: int) -> float:
        """Learning rate at a step: linear warm-up, then a cosine to a tenth of the peak."""
        total = self.pace.total_steps
        rise = max(1, int(total * WARMUP_SHARE))
        if step < rise:
            return self.peak_learning_rate * step / rise
        done = min(1.0, (step - rise) / max(1, total - rise))
        return self.peak_learning_rate * (0.1 + 0.9 * (1 + cos(pi * done)) / 2)

    def grad_norm(self, step: int) -> float:
        """Gradient norm at a step."""
        if self.nan_from is not None and step >= self.nan_from:
            return nan
        blow_up = 40.0 if self.nan_from is not None and step >= self.nan_from - 6 else 1.0
        return (
            self._explosion(step) ** 2
            * blow_up
            * (0.45 + 1.6 / (1 + step / self.half_steps) + 0.25 * uniform(self.seed + 3, step))
        )

    def epoch(self, step: int) -> float:
        """How many times the data was seen by a step."""
        return step / self.steps_per_epoch
