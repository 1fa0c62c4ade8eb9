"""The training loop of one rank.

Reads two environment variables besides the documented BT_ ones: ``STEPS`` (number of steps) and
``PACE_S`` (minimum seconds per step, because the job is a guest on somebody's laptop).
"""

from __future__ import annotations

import math
import os
import random
import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .checkpoint import write_checkpoint
from .collective import Group, LostPeer, join
from .digits import Digits, Image, epoch_order, load_digits, shifted
from .network import DigitNetwork

SEED = 20
BATCH = 64
"""Images per rank and step."""
PEAK_LEARNING_RATE = 0.12
WARMUP_STEPS = 60
LOG_EVERY = 10
EVALUATE_EVERY = 100
CHECKPOINT_EVERY = 100
SHORT_RUN_CHECKPOINTS = 4
NICENESS = 5
BAR_CELLS = 10


@dataclass(frozen=True)
class TrainingSettings:
    """Number of steps, minimum seconds per step, and the checkpoint folder."""

    steps: int
    pace_s: float
    checkpoints: Path | None

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> TrainingSettings:
        folder = environ.get("BT_CHECKPOINT_DIR")
        return cls(
            steps=int(environ.get("STEPS", "2800")),
            pace_s=float(environ.get("PACE_S", "0.5")),
            checkpoints=Path(folder) if folder else None,
        )

    @property
    def checkpoint_every(self) -> int:
        """Number of steps between checkpoints, small enough that a short run writes some too."""
        return min(CHECKPOINT_EVERY, max(1, self.steps // SHORT_RUN_CHECKPOINTS))


class Trainer:
    """The training loop of a rank: all ranks have the same network, each has its own share of the images."""

    def __init__(self, settings: TrainingSettings, group: Group, digits: Digits) -> None:
        self._settings = settings
        self._group = group
        self._digits = digits
        self._network = DigitNetwork(SEED)
        self._shifts = random.Random(SEED + 1 + group.rank)
        share = len(digits.training) // group.ranks
        self._batches = share // BATCH
        self._history: list[dict[str, float]] = []
        self._losses: list[float] = []
        self._compute_s = 0.0

    def run(self) -> None:
        """Run all steps; raise ``LostPeer`` if another rank disappears."""
        settings, rank = self._settings, self._group.rank
        started = time.monotonic()
        order: list[int] = []
        for step in range(1, settings.steps + 1):
            epoch, batch = divmod(step - 1, self._batches)
            if batch == 0:
                order = self._begin_epoch(epoch)
            norm = self._step(step, [order[batch * BATCH + index] for index in range(BATCH)])
            if rank == 0 and (step % LOG_EVERY == 0 or step == settings.steps):
                self._report(step, norm, time.monotonic() - started)
            if rank == 0 and (step % EVALUATE_EVERY == 0 or step == settings.steps):
                self._evaluate(step)
            if settings.checkpoints and (step % settings.checkpoint_every == 0 or step == settings.steps):
                self._save(settings.checkpoints, step)
            time.sleep(max(0.0, started + step * settings.pace_s - time.monotonic()))
        if rank == 0:
            elapsed_s = time.monotonic() - started
            say({"train_runtime": round(elapsed_s, 1), "train_loss": round(self._history[-1]["loss"], 4)})

    def _begin_epoch(self, epoch: int) -> list[int]:
        group = self._group
        order = epoch_order(len(self._digits.training), epoch, rank=group.rank, ranks=group.ranks, seed=SEED)
        if group.rank != 0 and epoch > 0:
            per_step_ms = 1000 * self._compute_s / self._batches
            say(f"INFO rank {group.rank}: epoch {epoch} done, {per_step_ms:.0f} ms of compute per step")
        if group.rank != 0:
            say(f"INFO rank {group.rank}: shard of {len(order)} images shuffled for epoch {epoch + 1}")
        self._compute_s = 0.0
        return order

    def _step(self, step: int, chosen: list[int]) -> float:
        began = time.monotonic()
        batch: list[tuple[Image, int]] = []
        for index in chosen:
            image, digit = self._digits.training[index]
            moved = shifted(image, self._shifts.randint(-1, 1), self._shifts.randint(-1, 1))
            batch.append((moved, digit))
        loss, gradient = self._network.loss_and_gradient(batch)
        gradient.append(loss)  # travels with the gradient, so that rank 0 reports the mean over all ranks
        self._compute_s += time.monotonic() - began
        mean = self._group.average(gradient)
        self._losses.append(mean.pop())
        rate = learning_rate(step, self._settings.steps)
        parameters = self._network.parameters
        for index, slope in enumerate(mean):
            parameters[index] -= rate * slope
        return norm_of(mean)

    def _report(self, step: int, norm: float, elapsed_s: float) -> None:
        settings = self._settings
        done = step / settings.steps
        bar = ("█" * round(done * BAR_CELLS)).ljust(BAR_CELLS)
        left_s = elapsed_s / step * (settings.steps - step)
        rate = step / max(elapsed_s, 1e-9)
        say(
            f"{done:4.0%}|{bar}| {step}/{settings.steps} [{clock(elapsed_s)}<{clock(left_s)}, {rate:.2f}it/s]"
        )
        entry = {
            "loss": round(sum(self._losses) / len(self._losses), 4),
            "grad_norm": round(norm, 4),
            "learning_rate": float(f"{learning_rate(step, settings.steps):.4g}"),
            "epoch": round(step / self._batches, 2),
        }
        self._losses.clear()
        self._history.append({**entry, "step": step})
        say(entry)

    def _evaluate(self, step: int) -> None:
        loss, accuracy = self._network.evaluate(self._digits.evaluation)
        epoch = round(step / self._batches, 2)
        say({"eval_loss": round(loss, 4), "eval_accuracy": round(accuracy, 4), "epoch": epoch})

    def _save(self, root: Path, step: int) -> None:
        state = {"global_step": step, "max_steps": self._settings.steps, "log_history": self._history}
        folder = write_checkpoint(
            root, step, rank=self._group.rank, parameters=self._network.parameters, trainer_state=state
        )
        if self._group.rank == 0:
            say(f"INFO Saving model checkpoint to {folder}")


def learning_rate(step: int, steps: int) -> float:
    """Return the learning rate: a short warm-up, then half a cosine down to a tenth of the peak."""
    warmup = min(WARMUP_STEPS, max(1, steps // 10))
    if step <= warmup:
        return PEAK_LEARNING_RATE * step / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return PEAK_LEARNING_RATE * (0.55 + 0.45 * math.cos(math.pi * progress))


def norm_of(values: array[float]) -> float:
    return math.sqrt(sum(value * value for value in values))


def clock(seconds: float) -> str:
    """Format as ``mm:ss``, or as ``h:mm:ss`` from one hour on."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def say(what: Any) -> None:
    print(what, flush=True)  # noqa: T201 (a job's standard output is its log)


def main() -> int:
    os.nice(NICENESS)
    settings = TrainingSettings.read(os.environ)
    rank = os.environ.get("BT_NODE_RANK", "0")
    try:
        group = join(os.environ)
        digits = load_digits(SEED)
        say(f"INFO rank {rank}: {group.ranks} ranks connected, training on {len(digits.training)} images")
        Trainer(settings, group, digits).run()
        group.close()
    except LostPeer as error:
        say(f"ERROR rank {rank}: lost the other ranks: {error}")
        return 1
    return 0
