"""NeMo 2: ``Training epoch 0, iteration 4119/8999 | lr: 1.9e-05 | … | reduced_train_loss: 0.913``.

Older NeMo versions print Lightning's bar, which ``bars`` parses.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tui.analysis.progress.patterns.reading import Reading, first_number, from_values

_HEAD = re.compile(r"\bTraining epoch (\d+), iteration (\d+)/(\d+)\b")


def read(text: str) -> Reading | None:
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
