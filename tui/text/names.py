"""Text cut where a word ends, and shown to be cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tui.text.sanitize import ELLIPSIS, cell_width, clip

_LEAST_KEPT = 0.6  # of the room: a single long word is cut anyway


def shortened(text: str, characters: int) -> str:
    """The text in at most so many characters: whole words, and an ellipsis where some are left out."""
    if len(text) <= characters:
        return text
    head = text[: max(0, characters - len(ELLIPSIS))]
    if not text[len(head)].isspace():
        start, _, _ = head.rpartition(" ")
        if len(start) >= _LEAST_KEPT * len(head):
            head = start
    return head.rstrip(" ,;:.-–(") + ELLIPSIS


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


_SEPARATORS = "-_./: "
_HEAD_SHARE = 0.4
"""Of what is kept of a name that is cut in its middle: ends tell more than beginnings."""


def apart(names: Sequence[str], cells: int) -> list[str]:
    """Each of these inert names in at most so many cells; two that differ read differently where that can be.

    As they are where all fit. Else the first of these forms that tells all of them apart, or most: cut at the
    end; at the beginning; without what all begin and end with; in the middle.
    """
    if cells <= 0:
        return [""] * len(names)
    if all(cell_width(name) <= cells for name in names):
        return list(names)
    differing = len(set(names))
    core = _without_common_ends(names)
    forms: tuple[tuple[Callable[[str, int], str], Sequence[str]], ...] = (
        (clip, names),
        (_clip_left, names),
        (clip, core),
        (_clip_left, core),
        (middle, core),
    )
    best: list[str] = []
    for shorter, whole in forms:
        cut = [shorter(name, cells) for name in whole]
        if len(set(cut)) == differing:
            return cut
        best = max(best, cut, key=lambda those: len(set(those)))
    return best


def middle(name: str, cells: int) -> str:
    """The inert name in at most so many cells, its middle left out."""
    if cell_width(name) <= cells:
        return name
    room = cells - cell_width(ELLIPSIS)
    if room < 2:
        return clip(name, cells)
    head = clip(name, int(room * _HEAD_SHARE), ellipsis="")
    return head + _clip_left(name, cells - cell_width(head))


def _clip_left(text: str, cells: int) -> str:
    """The text's end, after an ellipsis where its beginning was cut off."""
    if cell_width(text) <= cells:
        return text
    kept, room = len(text), cells - cell_width(ELLIPSIS)
    while kept and (room := room - cell_width(text[kept - 1])) >= 0:
        kept -= 1
    return ELLIPSIS + text[kept:]


def _without_common_ends(names: Sequence[str]) -> list[str]:
    """The names without what all begin and end with, as far as separators show that to be parts of names."""
    begin = _common(names)
    end = _common([name[::-1] for name in names])
    cores = []
    for name in names:
        core = name[begin : len(name) - end] if begin + end < len(name) else name[begin:]
        before, after = ELLIPSIS if begin else "", ELLIPSIS if end and begin + end < len(name) else ""
        cores.append(f"{before}{core}{after}" if core else name)
    return cores


def _common(names: Sequence[str]) -> int:
    """How many characters all begin with, up to a separator."""
    low, high = min(names), max(names)
    shared = 0
    while shared < min(len(low), len(high)) and low[shared] == high[shared]:
        shared += 1
    if shared == len(low) == len(high):
        return 0
    return max(low.rfind(separator, 0, shared) for separator in _SEPARATORS) + 1
