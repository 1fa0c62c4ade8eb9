"""verl: ``step:412 - actor/pg_loss:0.0123 - actor/lr:1e-06 - … - training/global_step:412 - …``."""

from __future__ import annotations

import re
from dataclasses import replace

from tui.analysis.progress.patterns.reading import Reading, first_number, from_values, to_step

_LINE = re.compile(r"(?:^|[\s)])step:(\d+) - (?=[\w-]+/)")


def read(text: str) -> Reading | None:
    match = _LINE.search(text) if "step:" in text else None
    if match is None:
        return None
    measures: dict[str, object] = {}
    for part in text[match.end() :].split(" - "):
        name, colon, value = part.rpartition(":")
        if colon:
            measures[name.strip().lower()] = first_number(value)
    return replace(from_values(measures), step=to_step(match[1]))
