"""Home-made lines of names and numbers, in the many ways people print them.

``step=40 loss=1.2``, ``step 40/900 | loss 1.234 | lr 1.9e-5 | 98765 tok/s``,
``Epoch [1/3], Step [40/900], Loss: 1.2``, ``iter 40: loss 4.5, time 23ms``.
"""

from __future__ import annotations

import re
from typing import Any

from tui.insight.progress_patterns.reading import (
    NUMBER,
    Reading,
    found_in,
    says_something,
    to_float,
    to_step,
)

_STEP = re.compile(
    r"(?<![\w./-])(?:global[ _]step|train(?:ing)?[ _]step|steps?|iteration|iter|it|batch|update)"
    r"\s{0,8}[=:#]?\s{0,8}[\[(]?\s{0,8}(?P<step>\d[\d,]{0,14})(?:\s{0,8}(?:/|of)\s{0,8}(?P<total>\d[\d,]{0,14}))?(?![\w.]*\w)",
    re.IGNORECASE,
)
_EPOCH = re.compile(
    r"(?<![\w./-])(?:train )?epoch\s{0,8}[=:#]?\s{0,8}[\[(]?\s{0,8}(?P<epoch>\d{1,9}(?:\.\d{1,12})?)"
    r"(?:\s{0,8}(?:/|of)\s{0,8}(?P<epochs>\d{1,9}))?(?![\w]*\w)",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"(?<![\w./-])(?P<name>"
    r"(?:train(?:ing)?|eval(?:uation)?|val(?:idation)?|valid|test|lm|total|avg|policy|ce|nll)[ _/]loss|loss"
    r"|learning[ _]rate|lr|grad(?:ient)?[ _-]?norm|gnorm|norm"
    r"|tok(?:ens)?/s(?:ec)?|tokens_per_s(?:ec(?:ond)?)?(?:_per_gpu)?|tps|samples/s(?:ec)?|samples_per_s(?:ec(?:ond)?)?"
    r"|step_time(?:_s|_ms)?|dt)"
    r"\s{0,8}[=:]?\s{0,8}(?:np\.float\d+\()?(?P<value>" + NUMBER + r")(?P<unit>ms|s)?(?![\w.]*[A-Za-z_])",
    re.IGNORECASE,
)
_RATE_AFTER = re.compile(
    rf"(?<![\w.])(?P<value>{NUMBER}) ?(?P<name>tok(?:ens)?/s(?:ec)?|samples/s(?:ec)?)\b", re.IGNORECASE
)
_MNIST = re.compile(r"\bTrain Epoch: (?P<epoch>\d+) \[(?P<done>\d+)/(?P<total>\d+) \(\d+%\)\]")
_TORCHVISION = re.compile(r"\bEpoch: \[(?P<epoch>\d{1,9})\] +\[ *(?P<done>\d{1,12})/(?P<total>\d{1,12})\]")


def read(text: str) -> Reading | None:
    """The reading of a line with a loss and a step or an epoch, or a step and a measure of it.

    A loss alone is not enough: prose and settings speak of losses too.
    """
    step, epoch = _STEP.search(text), _EPOCH.search(text)
    if step is None and epoch is None:
        return None
    values = {match["name"].lower(): _value(match) for match in reversed(list(_VALUE.finditer(text)))}
    for match in _RATE_AFTER.finditer(text):
        values.setdefault(match["name"].lower(), to_float(match["value"]))
    if not values:
        return None
    known = found_in(values)
    if step is not None:
        known |= {"step": to_step(step["step"]), "total_steps": to_step(step["total"])}
    if epoch is not None:
        known |= {"epoch": to_float(epoch["epoch"]), "total_epochs": to_float(epoch["epochs"])}
        known |= _within_epoch(text, known)
    told = Reading(**known)
    return told if says_something(told) and (told.step is not None or told.epoch is not None) else None


def _within_epoch(text: str, known: dict[str, Any]) -> dict[str, Any]:
    """The fields of a line that counts within its epoch; empty for one that counts over the run."""
    mnist = _MNIST.search(text)
    if mnist is not None:
        # It counts samples within the epoch, which are no steps but move like them.
        epochs_done = max(0, int(mnist["epoch"]) - 1)
        return {"epoch": epochs_done + int(mnist["done"]) / max(1, int(mnist["total"]))}
    vision = _TORCHVISION.search(text)
    if vision is not None:
        whole, step, steps = int(vision["epoch"]), int(vision["done"]), int(vision["total"])
        total: int | None = None
    else:
        epochs = known.get("total_epochs")
        if known.get("step") is None or not known.get("total_steps") or not epochs:
            return {}
        step, steps = known["step"], known["total_steps"]
        # "Epoch [2/3], Step [40/900]": epochs counted from one.
        whole, total = max(0, int(known["epoch"]) - 1), int(epochs) * steps
    return {
        "step": whole * steps + step,
        "total_steps": total,
        "epoch": whole + step / max(1, steps),
        "epoch_step": step,
        "epoch_steps": steps,
        "whole_epochs": whole,
    }


def _value(match: re.Match[str]) -> float | None:
    number = to_float(match["value"])
    if number is None:
        return None
    name, unit = match["name"].lower(), match["unit"]
    if name == "dt" and unit == "s":
        return number * 1000  # without a unit, dt is in milliseconds by custom
    return number / 1000 if name in ("step_time", "step_time_s") and unit == "ms" else number
