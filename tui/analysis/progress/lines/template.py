"""Read the numbers of a line by the template of the texts around them, in which each number has a meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tui.analysis.progress.lines.line import number_and_total, to_float
from tui.analysis.progress.lines.reading import MAX_STEP, WHOLE, ParsedMetrics

MEASURES = frozenset(
    {"loss", "eval_loss", "learning_rate", "grad_norm", "tokens_per_s", "samples_per_s", "step_time_s"}
)
LOSSES = frozenset({"loss", "eval_loss"})
COUNTS = frozenset({"step", "epoch"})
_COUNTED = WHOLE | COUNTS


Metrics = tuple[tuple[int, str], ...]
"""The index and the name of each named number without a field in ``ParsedMetrics``."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A number of a template: its index, field, name as printed, and factor to the field's unit."""

    index: int
    field: str
    name: str
    scale: float


@dataclass(frozen=True, slots=True)
class Counter:
    """The number that counts steps: one with a total (``12/100``), or that of a progress bar."""

    index: int
    is_bar: bool = False
    is_within: bool = False
    """True if it counts within an epoch, which this line or an earlier one names."""
    is_lightning: bool = False
    """True for Lightning, which counts epochs from zero; its total is the index of the last epoch."""


@dataclass(frozen=True, slots=True)
class Form:
    """The features of a line that show whether a training printed it."""

    has_count: bool = False
    has_values: bool = False
    """True if it has another count, a measure, or a named number (``reward: 0.4``) besides the count."""
    min_rises: int = 2
    """Even rises of the count required as evidence: one suffices if the count has a total or a name such as
    ``global_step``, which prose does not contain."""
    is_bare: bool = False
    """True if no number besides the count has a meaning, or if the line is a sentence or code."""
    has_results: bool = False
    """True if it has results of an evaluation: ``step 500 | val bpb 0.91``."""
    is_clear: bool = False
    """True if this single line is enough evidence that a training printed it."""
    is_heading: bool = False
    """True if it has only a count, like the heading of a block of values."""
    is_lone_bar: bool = False
    """True for a progress bar without a title or a loss, which may count any work."""
    key: tuple[str, ...] = ()
    """The name of the first meaningful number and the texts after it, which lines of one kind share."""


@dataclass(frozen=True, slots=True)
class Template:
    """The meaning of the numbers between fixed texts."""

    slots: tuple[Slot, ...] = ()
    counter: Counter | None = None
    form: Form = Form()
    metrics: Metrics = ()

    def read(self, values: Sequence[str]) -> ParsedMetrics | None:
        """Return the values of a line with these numbers; None if it reports nothing."""
        fields: dict[str, Any] = {}
        for slot in self.slots:
            _store_field(fields, slot, values[slot.index])
            if slot.field in ("loss", "step"):
                fields[f"{slot.field}_name"] = slot.name
        counter = self.counter
        if counter is not None:
            _store_count(fields, values[counter.index], counter)
        others = ((name, to_float(values[index])) for index, name in self.metrics)
        metrics = tuple((name, number) for name, number in others if number is not None)
        if not metrics and not fields.keys() - {"rank", "step_name"}:
            return None
        return ParsedMetrics(**fields, from_bar=counter is not None and counter.is_bar, metrics=metrics)


def _store_field(fields: dict[str, Any], slot: Slot, text: str) -> None:
    number, total = number_and_total(text)
    field = slot.field
    if number is None or (field in _COUNTED and not 0 <= number <= MAX_STEP):
        return
    if field in WHOLE:
        if number == int(number):
            fields.setdefault(field, int(number))
    elif field in LOSSES or field == "grad_norm" or math.isfinite(number):
        if slot.scale > 0:
            fields[field] = number * slot.scale
        elif number > 0:  # steps per second
            fields[field] = 1 / number
    if field in COUNTS and total and total <= MAX_STEP:
        fields[f"total_{field}s"] = int(total) if field == "step" else total


def _store_count(fields: dict[str, Any], text: str, counter: Counter) -> None:
    done, total = number_and_total(text)
    if done is None or not 0 <= done <= MAX_STEP or done != int(done) or total == 0:
        return
    if total is None or not done <= total <= MAX_STEP:
        fields.setdefault("step", int(done))
        return
    if "step" in fields and not counter.is_bar:
        if abs(fields["step"] - done) <= 1:
            fields["total_steps"] = int(total)
        return
    epoch, epochs = fields.get("epoch"), fields.get("total_epochs")
    if counter.is_bar and total == epochs:
        return  # it counts epochs
    if not counter.is_within or (epoch is not None and epoch != int(epoch)):
        fields |= {"step": int(done), "total_steps": int(total)}
        return
    fields |= {"epoch_step": int(done), "epoch_steps": int(total)}
    if epoch is not None:
        fields |= over_epochs(int(done), int(total), epoch, epochs, from_zero=counter.is_lightning)


def over_epochs(
    done: int, total: int, epoch: float, epochs: float | None, *, from_zero: bool = False
) -> dict[str, Any]:
    """Convert ``done`` of ``total`` steps within an epoch to the fields of a reading over the run."""
    finished_epochs = int(epoch) if from_zero else max(0, int(epoch) - 1)
    all_epochs = epochs + from_zero if epochs else None
    return {
        "step": finished_epochs * total + done,
        "total_steps": int(all_epochs * total) if all_epochs else None,
        "epoch": finished_epochs + done / total,
        "total_epochs": all_epochs,
        "whole_epochs": finished_epochs,
        "is_epoch_0": not from_zero and int(epoch) == 0,
    }
