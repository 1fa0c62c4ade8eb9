"""Megatron-LM: ``iteration     4120/    9000 | consumed samples: … | lm loss: 9.132000E-01 | …``."""

from __future__ import annotations

import re
from dataclasses import replace

from tui.analysis.progress.patterns.reading import Reading, first_number, from_values, to_step

_ITERATION = re.compile(r"\biteration +(\d+)/ *(\d+) *\|")
_VALIDATION = re.compile(r"validation loss at iteration +(\d+)\b")
_GLOBAL_BATCH = "global batch size"


def _columns(text: str) -> dict[str, object]:
    pairs = (part.rpartition(":") for part in text.split("|"))
    return {name.strip().lower(): first_number(value) for name, colon, value in pairs if colon}


def read(text: str) -> Reading | None:
    if "iteration" not in text or "|" not in text:
        return None
    match = _ITERATION.search(text)
    if match is not None:
        columns = _columns(text[match.end() :])
        told = from_values(columns)
        batch = columns.get(_GLOBAL_BATCH)
        rate = batch / told.step_time_s if isinstance(batch, float) and told.step_time_s else None
        return replace(told, step=to_step(match[1]), total_steps=to_step(match[2]), samples_per_s=rate)
    match = _VALIDATION.search(text)
    if match is None:
        return None
    value = _columns(text[match.end() :]).get("lm loss value")
    return Reading(step=to_step(match[1]), eval_loss=value) if isinstance(value, float) else None
