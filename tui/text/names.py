"""Shorten texts and names so that they stay distinguishable, and sort names naturally."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from tui.text.sanitize import ELLIPSIS, MAX_SHOWN_LENGTH, cell_width, clip


def shortened(text: str, characters: int) -> str:
    """Cut a text to at most ``characters``, after a whole word if possible, and end it in an ellipsis."""
    if len(text) <= characters:
        return text
    head = text[: max(0, characters - len(ELLIPSIS))]
    if not text[len(head)].isspace():
        whole_words, _, _ = head.rpartition(" ")
        # Cut inside a long last word: dropping it would lose too much of the text.
        if len(whole_words) >= 0.6 * len(head):
            head = whole_words
    return head.rstrip(" ,;:.-–(") + ELLIPSIS


_DIGITS = re.compile(r"([0-9]{1,18})")

NaturalKey = tuple[tuple[int, int, str], ...]


def natural_key(name: str) -> NaturalKey:
    """Return a sort key that puts ``node-2`` before ``node-10``.

    Only the first 16 numbers of a name are compared as numbers; the rest of the name is compared as text.
    """
    pieces = _DIGITS.split(name[:MAX_SHOWN_LENGTH], 16)
    # Splitting with a group yields text and digits in turn, text first; the name itself breaks ties.
    return (
        *((0, int(piece), "") if index % 2 else (1, 0, piece.lower()) for index, piece in enumerate(pieces)),
        (2, 0, name),
    )


def abbreviated_names(names: Sequence[str], cells: int) -> list[str]:
    """Shorten sanitized names to ``cells`` cells, so that different names still differ where possible.

    If all names fit, they are unchanged. Otherwise they are cut in the first of these ways that keeps all
    names distinct, else in the way that keeps the most distinct: at the end; at the beginning; the same two
    without the common prefix and suffix; in the middle without the common prefix and suffix.
    """
    if cells <= 0:
        return [""] * len(names)
    if all(cell_width(name) <= cells for name in names):
        return list(names)
    distinct_count = len(set(names))
    middles = _without_common_ends(names)
    ways: tuple[tuple[Callable[[str, int], str], Sequence[str]], ...] = (
        (clip, names),
        (_clip_start, names),
        (clip, middles),
        (_clip_start, middles),
        (clip_middle, middles),
    )
    most_distinct: list[str] = []
    for cut, long_names in ways:
        short_names = [cut(name, cells) for name in long_names]
        if len(set(short_names)) == distinct_count:
            return short_names
        most_distinct = max(most_distinct, short_names, key=lambda cut_names: len(set(cut_names)))
    return most_distinct


def clip_middle(name: str, cells: int) -> str:
    """Cut a sanitized name to ``cells`` cells, replacing its middle by an ellipsis if it was cut."""
    if cell_width(name) <= cells:
        return name
    room_cells = cells - cell_width(ELLIPSIS)
    if room_cells < 2:
        return clip(name, cells)
    # Names differ more often at their ends, so the end gets more cells than the beginning.
    head = clip(name, int(room_cells * 0.4), ellipsis="")
    return head + _clip_start(name, cells - cell_width(head))


def _clip_start(text: str, cells: int) -> str:
    """Shorten a text to ``cells`` cells, replacing its beginning by an ellipsis."""
    if cell_width(text) <= cells:
        return text
    start, room_cells = len(text), cells - cell_width(ELLIPSIS)
    while start and (room_cells := room_cells - cell_width(text[start - 1])) >= 0:
        start -= 1
    return ELLIPSIS + text[start:]


def _without_common_ends(names: Sequence[str]) -> list[str]:
    """Replace the common prefix and the common suffix of the names by an ellipsis each."""
    prefix_length = common_prefix_length(names)
    suffix_length = common_prefix_length([name[::-1] for name in names])
    middles = []
    for name in names:
        has_both = prefix_length + suffix_length < len(name)  # else the prefix and the suffix overlap
        middle = name[prefix_length : len(name) - suffix_length] if has_both else name[prefix_length:]
        before, after = ELLIPSIS if prefix_length else "", ELLIPSIS if suffix_length and has_both else ""
        middles.append(f"{before}{middle}{after}" if middle else name)
    return middles


def common_prefix_length(names: Sequence[str]) -> int:
    """Return the length of the common prefix, which ends with a separator; 0 if all names are equal."""
    low, high = min(names), max(names)
    equal_pairs = takewhile(lambda pair: pair[0] == pair[1], zip(low, high, strict=False))
    prefix = "".join(letter for letter, _ in equal_pairs)
    if all(name == prefix for name in names):
        return 0
    return max(map(prefix.rfind, "-_./: ")) + 1
