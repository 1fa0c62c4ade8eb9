"""The values that a line of progress can have, and the numbers that they are read from."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tui.analysis.progress.lines.vocabulary import ALONE, meaning

WHOLE = frozenset({"step", "total_steps", "rank"})
"""Fields that hold integers."""

_TIMESTAMP = 1e9
_TOTAL_OF = {"step": "total_steps", "epoch": "total_epochs"}
_OF = re.compile(r"(\d{1,12}) ?/ ?(\d{1,12})")  # of a count: "120/4800"

_FINITE = frozenset({"epoch", "learning_rate", "tokens_per_s", "samples_per_s", "step_time_s"})

NUMBER = (
    r"[-+]?(?:\d++(?:[,_]\d{3}(?!\d))*+(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+"
    r"|[-+]?(?:nan|NaN|NAN|inf|Inf|INF|Infinity)\b"
)
"""A number as trainers print it: with or without thousands separators, exponents, NaN and infinity.

Put it in a group of its own. Possessive, so that long runs of digits cost linear time.
"""

MAX_STEP = 10**12
"""No training run counts further; a larger number is something else (a timestamp, an id)."""


@dataclass(frozen=True, slots=True)
class ParsedMetrics:
    """The progress reported by a log line; ``None`` for anything it does not report.

    ``step`` counts optimizer steps over the run, ``total_steps`` is where it ends. If a line counts
    within its epoch instead, these are ``epoch_step`` and ``epoch_steps`` (steps in an epoch), with
    ``whole_epochs`` completed before. ``from_bar`` marks a progress bar, which may count something else
    (an evaluation). ``checkpoint`` is the name of a saved checkpoint, empty if the line gives none.
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

    @property
    def is_save(self) -> bool:
        """True if the line reports nothing but a save, with or without its step."""
        return self.checkpoint is not None and self == ParsedMetrics(
            checkpoint=self.checkpoint, step=self.step, rank=self.rank
        )

    @property
    def is_epoch(self) -> bool:
        """True if the line reports nothing but an epoch: a heading, or a line within an evaluation."""
        return self.epoch is not None and self == ParsedMetrics(epoch=self.epoch, rank=self.rank)


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
"""The named groups of an expression that reads a line, and the fields that they fill."""


def from_groups(groups: Mapping[str, str | None]) -> ParsedMetrics | None:
    """Build a reading from the named groups of a match; None if no group contains a number."""
    found: dict[str, Any] = {}
    for group, text in groups.items():
        field = FIELD_OF_GROUP[group]
        value = None if text is None else (to_step if field in WHOLE else to_float)(text.strip())
        if value is not None:
            found[field] = value / 1000 if group == "step_time_ms" else value
    return ParsedMetrics(**found) if found.keys() - {"rank"} else None


def from_values(values: Mapping[str, object], **known: Any) -> ParsedMetrics:
    """Build a reading from named values and known fields; ``vocabulary.meaning`` says what a name means."""
    return ParsedMetrics(**{**found_in(values), **known})


def found_in(values: Mapping[str, object]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    ranks: dict[str, int] = {}
    for name, value in values.items():
        known = meaning(name)
        if known is None or known.rank >= ranks.get(known.field, 1000):
            continue
        is_of = known.field in _TOTAL_OF and isinstance(value, str) and "/" in value
        both = _OF.fullmatch(str(value)) if is_of else None
        if both is not None:
            found[_TOTAL_OF[known.field]] = int(both[2])
        count = value if both is None else both[1]
        number = to_step(count) if known.field in WHOLE else to_float(count)
        if number is None or (known.field in _FINITE and not math.isfinite(number)):
            continue
        if known.field == "step_time_s" and number > _TIMESTAMP:
            continue
        found[known.field] = number * known.scale if known.scale != 1 else number
        ranks[known.field] = known.rank
    if ranks.get("loss", 0) >= ALONE and sum("loss" in name.lower() for name in values) > 1:
        del found["loss"]
    return found


def is_of_layer(values: Mapping[str, object]) -> bool:
    """Return True if the values are those of a layer, as quantization prints them."""
    return "layer" in values or "module" in values


def is_partial(values: Mapping[str, object]) -> bool:
    """Return True if each loss is one of several that nobody added up: ``loss_itc`` beside ``loss_mlm``."""
    names = [name.lower() for name in values if "loss" in name.lower()]
    return any(name.endswith(("_mlm", "_ctc")) for name in names) and any(
        meaning(name) is None for name in names
    )
