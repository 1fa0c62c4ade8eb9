"""The values that a line of progress can have, and the numbers that they are read from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

WHOLE = frozenset({"step", "total_steps", "rank"})
"""Fields that hold integers."""

MAX_STEP = 10**12
"""No training run counts further; a larger number is something else (a timestamp, an id)."""


class ParsedMetrics(NamedTuple):
    """The progress reported by a log line; ``None`` for anything it does not report.

    ``step`` counts optimizer steps over the run, ``total_steps`` is where it ends. If a line counts
    within its epoch instead, these are ``epoch_step`` and ``epoch_steps`` (steps in an epoch), with
    ``whole_epochs`` completed before. ``from_bar`` marks a progress bar, which may count something else
    (an evaluation). ``checkpoint`` is the name of a saved checkpoint, empty if the line gives none.
    ``loss_name`` is the loss's name as printed; ``metrics`` are the line's other values, by their names.
    """

    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    total_epochs: float | None = None
    loss: float | None = None
    eval_loss: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    tokens_per_s: float | None = None
    samples_per_s: float | None = None
    checkpoint: str | None = None
    step_time_s: float | None = None
    epoch_step: int | None = None
    epoch_steps: int | None = None
    whole_epochs: int | None = None
    from_bar: bool = False
    rank: int | None = None
    loss_name: str = "loss"
    metrics: tuple[tuple[str, float], ...] = ()

    @property
    def is_save(self) -> bool:
        """True if the line reports nothing but a save, with or without its step."""
        return self.checkpoint is not None and self == ParsedMetrics(
            checkpoint=self.checkpoint, step=self.step, rank=self.rank, metrics=self.metrics
        )

    @property
    def is_epoch(self) -> bool:
        """True if the line reports nothing but an epoch: a heading, or a line within an evaluation."""
        is_more = self.loss is not None or self.step is not None or self.epoch is None
        return not is_more and self == ParsedMetrics(epoch=self.epoch, rank=self.rank, metrics=self.metrics)


def to_float(value: object) -> float | None:
    """Convert a text or a decoded JSON value to a float; ``None`` for anything else."""
    if isinstance(value, str):
        value = value.replace(",", "") if "," in value else value
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def to_step(value: object) -> int | None:
    """Convert a text or a decoded JSON value to a non-negative integer; ``None`` for anything else."""
    number = to_float(value)
    if number is None or not math.isfinite(number) or not 0 <= number <= MAX_STEP or number != int(number):
        return None
    return int(number)


FIELD_OF_GROUP = {
    "step": "step",
    "total": "total_steps",
    "epoch": "epoch",
    "epochs": "total_epochs",
    "loss": "loss",
    "eval_loss": "eval_loss",
    "lr": "learning_rate",
    "grad_norm": "grad_norm",
    "tokens_per_s": "tokens_per_s",
    "samples_per_s": "samples_per_s",
    "step_time_s": "step_time_s",
    "step_time_ms": "step_time_s",
    "rank": "rank",
}
"""The named groups of an expression that reads a line, and the fields that they fill.

Any other group is a metric."""


def from_groups(groups: Mapping[str, str | None]) -> ParsedMetrics | None:
    """Build a reading from the named groups of a match; None if no group contains a number.

    Groups that are no field's are metrics.
    """
    found: dict[str, Any] = {}
    metrics: list[tuple[str, float]] = []
    for group, text in groups.items():
        name = FIELD_OF_GROUP.get(group)
        if name is None:
            metrics += [(group, number)] if (number := to_float((text or "").strip())) is not None else []
            continue
        value = None if text is None else (to_step if name in WHOLE else to_float)(text.strip())
        if value is not None:
            found[name] = value / 1000 if group == "step_time_ms" else value
    return ParsedMetrics(**found, metrics=tuple(metrics)) if metrics or found.keys() - {"rank"} else None


def merged(reading: ParsedMetrics, other: ParsedMetrics) -> ParsedMetrics:
    """Return the reading with all values of the other."""
    values = other._asdict().items()
    changes = {name: value for name, value in values if value is not None and value is not False}
    return reading._replace(**changes | {"metrics": reading.metrics + other.metrics})
