"""Lines that are, or end in, a JSON object: home-made loggers, fairseq, structured logging."""

from __future__ import annotations

import json

from tui.insight.progress_patterns.reading import Reading, from_values, says_something


def read(text: str) -> Reading | None:
    """The reading of a JSON object with a loss, or with a step and a measure of it; one level of nesting."""
    start = text.find('{"')
    if start < 0 or not text.rstrip().endswith("}"):
        return None
    try:
        decoded = json.loads(text[start:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(decoded, dict):
        return None
    values: dict[str, object] = {}
    for value in decoded.values():
        if isinstance(value, dict):
            values.update({str(inner).lower(): inside for inner, inside in value.items()})
    values.update({str(key).lower(): value for key, value in decoded.items()})
    reading = from_values(values)
    return reading if says_something(reading) else None
