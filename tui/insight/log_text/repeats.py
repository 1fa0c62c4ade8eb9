"""One banner printed by many ranks: the same text but for the number of who says it."""

from __future__ import annotations

import re

_FEWEST_CHARACTERS = 8
"""Shorter lines (blank ones, rulers of a few dashes) say too little to be worth folding."""
_LONGEST = 512

_SPEAKER = re.compile(
    r"\b((?:local|global|world|node|group)?_?rank|cuda|gpu|node|replica|pid|worker|device|process|host)"
    r"(\]?[ :=#_\-]{0,3})\d+",
    re.IGNORECASE,
)
SIGNS = ("ank", "uda", "pid", "ode", "PU", "gpu", "orker", "evice", "ocess", "host", "RANK")
"""A line that names who says it holds one of these."""

_BRACKETED_RANK = re.compile(r"\[(default|rank)?\d{1,5}\](?=:)")
_CLOCK = re.compile(
    r"(?:[IWEFD](?=\d{4} ))?\[?(?:\d{4}-\d\d-\d\d[T ]|\d{4} )?"
    r"\d\d:\d\d:\d\d[.,:\d]*+(?:Z|[+-]\d\d:?\d\d)?\]?\s*+"
)


def banner_key(text: str) -> str:
    """What identical banners of many ranks share; empty for a line that is not worth folding.

    The time at its beginning and the numbers of rank, GPU, node, process and worker do not count; all
    other numbers do: two losses are two lines.
    """
    if len(text) > _LONGEST:
        return text  # compared as it is: no banner is that long
    first = text[:1]
    if first.isdigit() or first == "[" or (first in "IWEFD" and text[1:5].isdigit()):
        clock = _CLOCK.match(text)
        if clock is not None:
            text = text[clock.end() :]
        if text[:1] == "[":
            text = _BRACKETED_RANK.sub(r"[\1#]", text, count=1)
    if _may_name_speaker(text):
        text = _SPEAKER.sub(r"\1\2#", text)
    text = text.rstrip()
    return text if len(text) >= _FEWEST_CHARACTERS else ""


def _may_name_speaker(text: str) -> bool:
    # As ``any(sign in text for sign in SIGNS)``, in a third of the time: every line comes by here.
    return (
        ("ank" in text or "uda" in text or "pid" in text or "ode" in text)
        or ("PU" in text or "gpu" in text or "orker" in text or "evice" in text)
        or ("ocess" in text or "host" in text or "RANK" in text)
    )
