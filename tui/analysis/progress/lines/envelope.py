"""Take the line that a program printed out of the JSON record that a log agent made of it.

A record whose own numbers measure a training is the line itself: of a structured log, its message is a label.
"""

from __future__ import annotations

import json

from tui.analysis.progress.lines.vocabulary import meaning

_TEXT_KEYS = ("message", "msg", "log")


def enveloped(line: str) -> str | None:
    """Return the text in a JSON record; None if it has none, or has values of a training beside it."""
    if not any(f'"{key}"' in line for key in _TEXT_KEYS):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    text = next((record[key] for key in _TEXT_KEYS if isinstance(record.get(key), str)), None)
    has_values = any(isinstance(value, int | float) and meaning(key) for key, value in record.items())
    return None if has_values else text
