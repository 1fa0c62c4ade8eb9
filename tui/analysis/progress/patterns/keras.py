"""Keras: ``Epoch 3/10`` on a line of its own, then bars that count within the epoch."""

from __future__ import annotations

import re

from tui.analysis.progress.patterns.reading import NUMBER, Reading, from_values, to_step

_EPOCH = re.compile(r"^\s*Epoch (\d+)/(\d+)\s*$")
_BAR = re.compile(
    r"^\s*(?P<done>\d+)/(?P<total>\d+|Unknown) "
    r"(?:[━\u2500-\u257f ]{2,}|\[[=>.]+\]|- \d+s |\d+s (?=\d+[mu]?s/step))(?P<rest>.*)$"
)
_ITEM = re.compile(rf"- ([a-z_]{{1,40}}): ({NUMBER})")
_STEP_TIME = re.compile(r"(?P<value>\d+(?:\.\d+)?)(?P<unit>us|ms|s)/(?:step|epoch)\b")
_UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def read(text: str) -> Reading | None:
    heading = _EPOCH.match(text)
    if heading is not None:
        number, epochs = int(heading[1]), int(heading[2])
        if not 1 <= number <= epochs:
            return None
        return Reading(epoch=float(number - 1), total_epochs=float(epochs), whole_epochs=number - 1)
    bar = _BAR.match(text)
    if bar is None:
        return None
    told = from_values(dict(_ITEM.findall(bar["rest"])))
    done, total = to_step(bar["done"]), to_step(bar["total"])
    if told.loss is None or done is None:
        return None
    speed = _STEP_TIME.search(bar["rest"])
    return Reading(
        epoch_step=done,
        epoch_steps=total,
        loss=told.loss,
        eval_loss=told.eval_loss,
        learning_rate=told.learning_rate,
        step_time_s=float(speed["value"]) * _UNIT_S[speed["unit"]] if speed else None,
    )
