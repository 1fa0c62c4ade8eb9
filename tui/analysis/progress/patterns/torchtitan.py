"""torchtitan: ``step: 4120  loss:  0.9132  grad_norm:  0.7100  memory: …  tps: 1,234  mfu: 41.69%``."""

from __future__ import annotations

import re

from tui.analysis.progress.patterns.reading import NUMBER, Reading, from_values, to_step

_LINE = re.compile(rf"\bstep:\s*(\d[\d,]*)\s+loss:\s*({NUMBER})")
_START = re.compile(r"\bTraining starts at step (\d+)\b.{0,400}?\b(?:total steps (\d+)|(\d+) steps)\b")
_VALIDATION = re.compile(rf"\bvalidate step:\s*(\d+)\s+loss:\s*({NUMBER})")
_ITEM = re.compile(rf"\b(step|loss|grad_norm|tps|wps|lr):\s*({NUMBER})")


def read(text: str) -> Reading | None:
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
    return Reading(step=max(0, first - 1), total_steps=total) if first is not None and total else None
