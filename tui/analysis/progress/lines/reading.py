"""The values that a line of progress can have, and the numbers that they are read from."""

from __future__ import annotations

from typing import NamedTuple

WHOLE = frozenset({"step", "total_steps", "rank"})
"""Fields that hold integers."""

MAX_STEP = 10**12
"""No training run counts further; a larger number is something else (a timestamp, an id)."""


class ParsedMetrics(NamedTuple):
    """The progress reported by a log line; ``None`` for anything it does not report.

    ``step`` counts optimizer steps over the run, ``total_steps`` is where it ends. If a line counts
    within its epoch instead, these are ``epoch_step`` and ``epoch_steps`` (steps in an epoch), with
    ``whole_epochs`` completed before, if the run's first epoch is 1: ``is_epoch_0`` shows that it is not.
    ``from_bar`` marks a progress bar, which may count something else (an evaluation). ``checkpoint`` is the
    name of a saved checkpoint, empty if the line gives none. ``loss_name`` and ``step_name`` are names as
    printed; ``metrics`` are the line's other values, by theirs.
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
    is_epoch_0: bool = False
    from_bar: bool = False
    rank: int | None = None
    loss_name: str = "loss"
    step_name: str = "step"
    metrics: tuple[tuple[str, float], ...] = ()

    @property
    def counted(self) -> float | None:
        """The line's count: steps of the run, else steps within the epoch, else epochs."""
        if self.step is not None:
            return self.step
        return self.epoch_step if self.epoch_step is not None else self.epoch

    @property
    def is_save(self) -> bool:
        """True if the line reports nothing but a save, with or without its step."""
        return self.checkpoint is not None and self == ParsedMetrics(
            checkpoint=self.checkpoint,
            step=self.step,
            step_name=self.step_name,
            rank=self.rank,
            metrics=self.metrics,
        )

    @property
    def is_epoch(self) -> bool:
        """True if the line reports nothing but an epoch: a heading, or a line within an evaluation."""
        is_more = self.loss is not None or self.step is not None or self.epoch is None
        return not is_more and self == ParsedMetrics(epoch=self.epoch, rank=self.rank, metrics=self.metrics)


def counted_from_zero(reading: ParsedMetrics) -> ParsedMetrics:
    """Correct a reading whose epoch was taken as counted from 1 for a log that counts from 0."""
    if reading.whole_epochs is None or reading.epoch is None or reading.is_epoch_0:
        return reading
    step = None if reading.step is None else reading.step + (reading.epoch_steps or 0)
    return reading._replace(step=step, epoch=reading.epoch + 1, whole_epochs=reading.whole_epochs + 1)


class LineReading(NamedTuple):
    """The reading of a line with the line's time (epoch ns) and replica."""

    at_ns: int
    replica: str
    reading: ParsedMetrics


def merged(reading: ParsedMetrics, other: ParsedMetrics) -> ParsedMetrics:
    """Return the reading with all values of the other."""
    values = other._asdict().items()
    changes = {name: value for name, value in values if value is not None and value is not False}
    return reading._replace(**changes | {"metrics": reading.metrics + other.metrics})
