"""Shorten texts and names so that they stay distinguishable, and sort names naturally."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from tui.text.sanitize import ELLIPSIS, LONGEST_SHOWN, cell_width, clip


def shortened(text: str, characters: int) -> str:
    """Shorten the text to at most ``characters`` in whole words, with an ellipsis if any are left out."""
    if len(text) <= characters:
        return text
    head = text[: max(0, characters - len(ELLIPSIS))]
    if not text[len(head)].isspace():
        start, _, _ = head.rpartition(" ")
        # a single long word is cut anyway
        if len(start) >= 0.6 * len(head):
            head = start
    return head.rstrip(" ,;:.-–(") + ELLIPSIS


_DIGITS = re.compile(r"([0-9]{1,18})")

NaturalKey = tuple[tuple[int, int, str], ...]


def natural_key(name: str) -> NaturalKey:
    """Return a sort key that puts ``node-2`` before ``node-10``; numbers after the 16th sort as text."""
    parts = _DIGITS.split(name[:LONGEST_SHOWN], 16)
    # Splitting with a group yields text and digits in turn, text first; the name itself breaks ties.
    return (
        *((0, int(part), "") if number % 2 else (1, 0, part.lower()) for number, part in enumerate(parts)),
        (2, 0, name),
    )


def abbreviated_names(names: Sequence[str], cells: int) -> list[str]:
    """Shorten sanitized names to ``cells`` cells, so that different names still differ where possible.

    Names that all fit are unchanged. Otherwise the first of these forms is used that distinguishes all names,
    or the most: cut at the end; at the beginning; without the common prefix and suffix; in the middle.
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
        (clip_middle, core),
    )
    best: list[str] = []
    for shorter, long_names in forms:
        cut = [shorter(name, cells) for name in long_names]
        if len(set(cut)) == differing:
            return cut
        best = max(best, cut, key=lambda those: len(set(those)))
    return best


def clip_middle(name: str, cells: int) -> str:
    if cell_width(name) <= cells:
        return name
    room = cells - cell_width(ELLIPSIS)
    if room < 2:
        return clip(name, cells)
    # ends of names are more distinctive than beginnings
    head = clip(name, int(room * 0.4), ellipsis="")
    return head + _clip_left(name, cells - cell_width(head))


def _clip_left(text: str, cells: int) -> str:
    if cell_width(text) <= cells:
        return text
    start, room = len(text), cells - cell_width(ELLIPSIS)
    while start and (room := room - cell_width(text[start - 1])) >= 0:
        start -= 1
    return ELLIPSIS + text[start:]


def _without_common_ends(names: Sequence[str]) -> list[str]:
    begin = common_length(names)
    end = common_length([name[::-1] for name in names])
    cores = []
    for name in names:
        core = name[begin : len(name) - end] if begin + end < len(name) else name[begin:]
        before, after = ELLIPSIS if begin else "", ELLIPSIS if end and begin + end < len(name) else ""
        cores.append(f"{before}{core}{after}" if core else name)
    return cores


def common_length(names: Sequence[str]) -> int:
    """Return the length of the common prefix, up to a separator; 0 if the names are equal."""
    low, high = min(names), max(names)
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(low, high, strict=False))
    shared = "".join(letter for letter, _ in equal)
    if all(name == shared for name in names):
        return 0
    return max(map(shared.rfind, "-_./: ")) + 1
