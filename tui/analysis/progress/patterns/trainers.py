"""Lines of trainers with a format of their own: one ``read_…`` function each, cheap for other lines."""

from __future__ import annotations

import re
from dataclasses import replace

from tui.analysis.progress.patterns.reading import (
    NUMBER,
    ParsedMetrics,
    first_number,
    from_values,
    to_float,
    to_step,
)

_OPTIMISER = re.compile(rf"\bstep=(\d+), skipped=\d+, lr=\[({NUMBER})")
_TIMER = re.compile(
    rf"\bglobal_step=(\d+), RunningAvgSamplesPerSec=(?:{NUMBER}), CurrSamplesPerSec=({NUMBER})"
)
_PIPELINE = re.compile(
    rf"\bsteps: (\d+) loss: ({NUMBER}) iter time \(s\): ({NUMBER}) samples/sec: ({NUMBER})"
)


def read_deepspeed(text: str) -> ParsedMetrics | None:
    """DeepSpeed: its optimizer line, its throughput timer, and its pipeline engine.

    ``steps: 4120 loss: 0.9132 iter time (s): 5.312 samples/sec: 24.1``
    """
    if "step=" not in text and "steps: " not in text:
        return None
    match = _OPTIMISER.search(text)
    if match is not None:
        return ParsedMetrics(step=to_step(match[1]), learning_rate=to_float(match[2]))
    match = _TIMER.search(text)
    if match is not None:
        return ParsedMetrics(step=to_step(match[1]), samples_per_s=to_float(match[2]))
    match = _PIPELINE.search(text)
    if match is None:
        return None
    return ParsedMetrics(
        step=to_step(match[1]),
        loss=to_float(match[2]),
        step_time_s=to_float(match[3]),
        samples_per_s=to_float(match[4]),
    )


_EPOCH = re.compile(r"^\s*Epoch (\d+)/(\d+)\s*$")
_BAR = re.compile(
    r"^\s*(?P<done>\d+)/(?P<total>\d+|Unknown) "
    r"(?:[━\u2500-\u257f ]{2,}|\[[=>.]+\]|- \d+s |\d+s (?=\d+[mu]?s/step))(?P<rest>.*)$"
)
_KERAS_ITEM = re.compile(rf"- ([a-z_]{{1,40}}): ({NUMBER})")
_STEP_TIME = re.compile(r"(?P<value>\d+(?:\.\d+)?)(?P<unit>us|ms|s)/(?:step|epoch)\b")
_UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def read_keras(text: str) -> ParsedMetrics | None:
    """Keras: ``Epoch 3/10`` on a line of its own, then bars that count within the epoch."""
    heading = _EPOCH.match(text)
    if heading is not None:
        number, epochs = int(heading[1]), int(heading[2])
        if not 1 <= number <= epochs:
            return None
        return ParsedMetrics(epoch=float(number - 1), total_epochs=float(epochs), whole_epochs=number - 1)
    bar = _BAR.match(text)
    if bar is None:
        return None
    told = from_values(dict(_KERAS_ITEM.findall(bar["rest"])))
    done, total = to_step(bar["done"]), to_step(bar["total"])
    if told.loss is None or done is None:
        return None
    speed = _STEP_TIME.search(bar["rest"])
    return ParsedMetrics(
        epoch_step=done,
        epoch_steps=total,
        loss=told.loss,
        eval_loss=told.eval_loss,
        learning_rate=told.learning_rate,
        step_time_s=float(speed["value"]) * _UNIT_S[speed["unit"]] if speed else None,
    )


_ITERATION = re.compile(r"\biteration +(\d+)/ *(\d+) *\|")
_MEGATRON_VALIDATION = re.compile(r"validation loss at iteration +(\d+)\b")
_GLOBAL_BATCH = "global batch size"


def _columns(text: str) -> dict[str, object]:
    pairs = (part.rpartition(":") for part in text.split("|"))
    return {name.strip().lower(): first_number(value) for name, colon, value in pairs if colon}


def read_megatron(text: str) -> ParsedMetrics | None:
    """Megatron-LM: ``iteration     4120/    9000 | consumed samples: … | lm loss: 9.132000E-01 | …``."""
    if "iteration" not in text or "|" not in text:
        return None
    match = _ITERATION.search(text)
    if match is not None:
        columns = _columns(text[match.end() :])
        told = from_values(columns)
        batch = columns.get(_GLOBAL_BATCH)
        rate = batch / told.step_time_s if isinstance(batch, float) and told.step_time_s else None
        return replace(told, step=to_step(match[1]), total_steps=to_step(match[2]), samples_per_s=rate)
    match = _MEGATRON_VALIDATION.search(text)
    if match is None:
        return None
    value = _columns(text[match.end() :]).get("lm loss value")
    return ParsedMetrics(step=to_step(match[1]), eval_loss=value) if isinstance(value, float) else None


_HEAD = re.compile(r"\bTraining epoch (\d+), iteration (\d+)/(\d+)\b")


def read_nemo(text: str) -> ParsedMetrics | None:
    """Parse a training line. NeMo counts from zero and prints the index of the last iteration."""
    match = _HEAD.search(text) if "Training epoch" in text else None
    if match is None:
        return None
    columns: dict[str, object] = {}
    for part in text[match.end() :].split("|"):
        name, colon, value = part.rpartition(":")
        if colon:
            columns[name.strip().lower()] = first_number(value)
    told = from_values(columns)
    return replace(told, step=int(match[2]) + 1, total_steps=int(match[3]) + 1, epoch=float(match[1]))


_LINE = re.compile(rf"\bstep:\s*(\d[\d,]*)\s+loss:\s*({NUMBER})")
_START = re.compile(r"\bTraining starts at step (\d+)\b.{0,400}?\b(?:total steps (\d+)|(\d+) steps)\b")
_VALIDATION = re.compile(rf"\bvalidate step:\s*(\d+)\s+loss:\s*({NUMBER})")
_ITEM = re.compile(rf"\b(step|loss|grad_norm|tps|wps|lr):\s*({NUMBER})")


def read_torchtitan(text: str) -> ParsedMetrics | None:
    """torchtitan: ``step: 4120  loss:  0.9132  grad_norm:  0.7100  memory: …  tps: 1,234  mfu: 41.69%``."""
    if "step:" not in text and "Training starts" not in text:
        return None
    validation = _VALIDATION.search(text)
    if validation is not None:
        told = from_values({"step": validation[1], "val_loss": validation[2]})
        return told if told.step is not None else None
    if _LINE.search(text) is not None:
        return from_values(dict(_ITEM.findall(text)))
    start = _START.search(text)
    if start is None:
        return None
    first, total = to_step(start[1]), to_step(start[2] or start[3])
    return ParsedMetrics(step=max(0, first - 1), total_steps=total) if first is not None and total else None


_VERL_LINE = re.compile(r"(?:^|[\s)])step:(\d+) - (?=[\w-]+/)")


def read_verl(text: str) -> ParsedMetrics | None:
    """verl: ``step:412 - actor/pg_loss:0.0123 - actor/lr:1e-06 - … - training/global_step:412 - …``."""
    match = _VERL_LINE.search(text) if "step:" in text else None
    if match is None:
        return None
    measures: dict[str, object] = {}
    for part in text[match.end() :].split(" - "):
        name, colon, value = part.rpartition(":")
        if colon:
            measures[name.strip().lower()] = first_number(value)
    return replace(from_values(measures), step=to_step(match[1]))
