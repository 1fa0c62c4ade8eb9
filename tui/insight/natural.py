"""Names in the order people expect."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"([0-9]{1,18})")

NaturalKey = tuple[tuple[int, int, str], ...]


def natural_key(name: str) -> NaturalKey:
    """A sort key that puts ``node-2`` before ``node-10``."""
    parts = _DIGITS.split(name)
    # split with a group gives text and digits in turn, text first; the name itself settles equal keys.
    return (
        *((0, int(part), "") if place % 2 else (1, 0, part.lower()) for place, part in enumerate(parts)),
        (2, 0, name),
    )
