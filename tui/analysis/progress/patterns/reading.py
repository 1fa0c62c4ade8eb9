"""The values that a line of progress can have, and the names that trainers print for them.

If a line has several names for one value, the first one listed here wins.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


def _names(listed: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(","))


STEP = _names(
    "step, global_step, steps, iteration, iter, iters, trainer/global_step, training/global_step,"
    "train/global_step, _step, num_updates, update_step, global step,"
    "current_steps, training_step, train_step, batch, batch_idx"
)
TOTAL_STEPS = _names("total_steps, max_steps, num_steps, total_iterations, train_iters, max_iters")
EPOCH = _names("epoch, epochs, train/epoch, trainer/epoch, training/epoch")
LOSS = _names(
    "loss, train_loss, train/loss, training_loss, lm loss, lm_loss, reduced_train_loss, train loss,"
    "training loss, train_loss_step, loss/train, policy_loss, actor/pg_loss, actor/loss, total_loss,"
    "total loss, ce_loss, ce loss, nll_loss, nll loss, trainer/loss, global_avg_loss, avg_loss, avg loss,"
    "avr_loss, batch_loss, loss_metrics/global_avg_loss, step_loss, gpt_loss, sft_loss, loss_mean,"
    "loss train, loss/policy_avg,"
    "actor loss, mean_loss, mean loss, loss_train, running_loss, running loss, train_loss_epoch, "
    "loss/train/total,"
    "train/total_loss, reward_loss, distill_loss"
)
EVAL_LOSS = _names(
    "eval_loss, val_loss, valid_loss, validation_loss, eval/loss, val/loss, validation/loss, valid/loss,"
    "loss/val, val loss, eval loss, valid loss, validation loss, evaluation loss, test_loss, test loss,"
    "dev_loss, validation_metrics/loss, loss val, val_loss_epoch, eval/val_loss, loss_val, lm loss value"
)
LEARNING_RATE = _names(
    "learning_rate, lr, learning rate, current_lr, last_lr, lr-adam, lr-adamw, lr/group0, "
    "train/learning_rate, train/lr, actor/lr, optimizer/lr, optim/lr"
)
LEARNING_RATE_IN_THOUSANDTHS = _names("train/lr(1e-3)")
GRAD_NORM = _names(
    "grad_norm, grad norm, gradient_norm, gradient norm, gnorm, norm, train/grad_norm, actor/grad_norm,"
    "total_grad_norm, grad-norm, gradnorm, optim/grad_norm, optim/total_grad_norm"
)
TOKENS_PER_S = _names(
    "tokens_per_s, tokens_per_sec, tokens_per_second, tok/s, tok/sec, tokens/s, tokens/sec, tps, wps,"
    "tokens_per_second_per_gpu, tokens/train_per_sec_per_gpu, tokens/sec/gpu, tokens/s/device, tok/s/gpu,"
    "tokens per second, tokens per gpu per second (tgs), throughput/device/tokens_per_sec, tgs,"
    "throughput/tokens_per_sec, throughput/device/tokens_per_second, perf/throughput, throughput(tps)"
)
SAMPLES_PER_S = _names(
    "samples_per_s, samples_per_sec, samples_per_second, samples/s, samples/sec, examples/s,"
    "examples_per_sec, samples per second, interval_samples_per_second, throughput/samples_per_sec,"
    "examples/sec, seq/s, sequences/s, images/s, train_samples_per_second, currsamplespersec, img/s, "
    "images/sec"
)
STEP_TIME_S = _names(
    "step_time_s, step_time, sec/step, s/step, time_per_step, seconds_per_step, step_avg, time,"
    "train_step_timing in s, elapsed time per iteration (s), interval_runtime_per_step, time/step, sec/it,"
    "perf/time_per_step, timing_s/step, iter time (s), iteration_time, time_metrics/end_to_end(s)"
)
STEP_TIME_MS = _names(
    "dt, iter_time_ms, time_per_step_ms, step_time_ms, ms/step, elapsed time per iteration (ms)"
)

_FIELDS = {
    "step": STEP,
    "total_steps": TOTAL_STEPS,
    "epoch": EPOCH,
    "loss": LOSS,
    "eval_loss": EVAL_LOSS,
    "learning_rate": LEARNING_RATE + LEARNING_RATE_IN_THOUSANDTHS,
    "grad_norm": GRAD_NORM,
    "tokens_per_s": TOKENS_PER_S,
    "samples_per_s": SAMPLES_PER_S,
    "step_time_s": STEP_TIME_S + STEP_TIME_MS,
}

MEANINGS: dict[str, tuple[str, int]] = {
    name: (field, place) for field, names in _FIELDS.items() for place, name in enumerate(names)
}
"""Maps a name to its field of ``ParsedMetrics`` and its priority among the names of that field."""

IN_THOUSANDTHS = frozenset(LEARNING_RATE_IN_THOUSANDTHS + STEP_TIME_MS)
"""Names of values in thousandths of the field's unit."""

WHOLE = frozenset({"step", "total_steps"})
"""Fields that hold integers."""

_ABOUT_TRAINING = re.compile(r"^(?:train(?:ing)?|trainer|metrics|perf|optim|throughput)/")
_OF_A_STEP = re.compile(r"(?:_step|/mean|/avg|_mean|_avg)$")
_GROUP = re.compile(
    r"^(?:lr|learning_rate)-\w{1,40}(?:/(?:group|pg)0)?$"
)  # Composer, Lightning's LearningRateMonitor
_UNIT = re.compile(r"\s?\([^()]{1,16}\)$")
_EVALUATION = re.compile(
    r"^(?:eval(?:uation)?|val(?:id(?:ation)?)?|test|dev)[_/ ](?:[\w.-]{1,40}[_/ ])?loss"
    r"(?:[_/](?:mean|avg|epoch|step))?$"
)
_LAST_PLACE = len(MEANINGS)


@lru_cache(maxsize=4096)
def meaning(name: str) -> tuple[str, int] | None:
    """Return the field of ``ParsedMetrics`` for a lowercase name and its priority; None for unrelated names.

    Prefixes and suffixes are ignored, as in ``train/loss_step`` and ``perf/tokens_per_sec``;
    ``eval_math_loss`` is the loss of one of several evaluations.
    """
    known = MEANINGS.get(name)
    if known is not None:
        return known
    if _GROUP.match(name):
        return "learning_rate", _LAST_PLACE
    if _EVALUATION.match(name):
        return "eval_loss", _LAST_PLACE
    bare = _OF_A_STEP.sub("", _ABOUT_TRAINING.sub("", _UNIT.sub("", name)))
    found = MEANINGS.get(bare) if bare != name and bare not in IN_THOUSANDTHS else None
    return None if found is None or found[0] in WHOLE else (found[0], _LAST_PLACE)


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


def to_float(value: object) -> float | None:
    """Convert a text or a decoded JSON value to a float; ``None`` for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        value = value.replace(",", "").replace("_", "")
    elif not isinstance(value, int | float):
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


def from_values(values: Mapping[str, object], **known: Any) -> ParsedMetrics:
    """Build a reading from named values and known fields.

    Names are lower case; if several set the same field, the first in ``names`` wins.
    """
    return ParsedMetrics(**{**found_in(values), **known})


def found_in(values: Mapping[str, object]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    places: dict[str, int] = {}
    for name, value in values.items():
        known = meaning(name)
        if known is None:
            continue
        field, place = known
        if place >= places.get(field, len(MEANINGS) + 1):
            continue
        number = to_step(value) if field in WHOLE else to_float(value)
        if number is not None:
            found[field] = number / 1000 if name in IN_THOUSANDTHS else number
            places[field] = place
    return found


def is_training_metrics(reading: ParsedMetrics) -> bool:
    """Return True if the reading is about training: a loss, or a step with a measure.

    A step and a learning rate are not enough, because a scheduler's configuration has both. A step's
    duration is enough if the line has the total number of steps.
    """
    if reading.loss is not None or reading.eval_loss is not None:
        return True
    timed = reading.step_time_s if reading.total_steps else None
    measured = (reading.grad_norm, reading.tokens_per_s, reading.samples_per_s, timed)
    return reading.step is not None and any(value is not None for value in measured)


_PAIR_OF_NUMBERS = re.compile(rf"({NUMBER})")


def first_number(text: str) -> float | None:
    """Return the first number of a text such as ``1.9e-05``, ``[1.9e-05, 1.9e-05]``, ``np.float64(0.1)``."""
    match = _PAIR_OF_NUMBERS.search(text.replace("float64(", "(").replace("float32(", "("))
    return to_float(match.group(1)) if match else None
