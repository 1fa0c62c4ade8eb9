"""The line above a chart: what it shows, and which series is which, as much as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan

from rich.cells import cell_len

from tui.insight.series import Series, latest
from tui.insight.text import clip, inert

Role = str | int
"""What a piece of a chart is: a name such as "title" or "axis", or the number of a series."""

Run = tuple[str, Role]
"""A piece of a line and what it is."""

SWATCH = "━"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""Marks of the series where colours are missing."""

_BETWEEN = "  "
_NAME_CELLS = 24
_NAME_SEPARATORS = "-_./ "


def letter(index: int) -> str:
    """The mark of a series where there are no colours."""
    return LETTERS[index % len(LETTERS)]


def short_names(names: Sequence[str]) -> list[str]:
    """Names without the beginning that all of them share, cut after a separator: "node-0" → "0"."""
    if len(names) < 2:
        return list(names)
    low, high = min(names), max(names)
    shared = 0
    while shared < min(len(low), len(high)) and low[shared] == high[shared]:
        shared += 1
    cut = max(low.rfind(separator, 0, shared) for separator in _NAME_SEPARATORS) + 1
    return [name[cut:] or name for name in names]


def header(
    title: str,
    series: Sequence[Series],
    width: int,
    unit: Callable[[float], str],
    *,
    letters: bool = False,
    note: str = "",
) -> list[Run]:
    """The header line: title, then the legend in the longest form that fits, then a note at the right.

    One series shows its latest value, and its least and greatest where there is room. Several show a
    mark each with name and latest value; names lose their common beginning, then the values go, then
    the last series are counted instead of named.
    """
    note = clip(inert(note), max(0, width // 2)) if note else ""
    room = width - (cell_len(note) + len(_BETWEEN) if note else 0)
    title = clip(inert(title), max(0, room)) if title else ""
    runs: list[Run] = [(title, "title")] if title else []
    used = cell_len(title)
    for piece in _legend(series, room - used - (len(_BETWEEN) if title else 0), unit, letters):
        if piece and used and runs[-1][1] == "title":
            runs.append((_BETWEEN, "legend"))
            used += len(_BETWEEN)
        runs.append(piece)
        used += cell_len(piece[0])
    runs.append((" " * max(0, width - used - cell_len(note)), "legend"))
    if note:
        runs.append((note, "note"))
    return runs


def _legend(series: Sequence[Series], room: int, unit: Callable[[float], str], letters: bool) -> list[Run]:
    if not series or room <= 0:
        return []
    if len(series) == 1:
        return _single(series[0], room, unit)
    names = [clip(inert(one.name), _NAME_CELLS) for one in series]
    values = [(value, unit(value)) if (value := latest(one)) is not None else (None, "–") for one in series]
    shown = [text for _, text in values]
    short = short_names(names)
    forms = (
        [(name, f" {value}") for name, value in zip(names, shown, strict=True)],
        [(name, f" {value}") for name, value in zip(short, shown, strict=True)],
        [(name, "") for name in names],
        [(name, "") for name in short],
    )
    for form in forms:
        cells = sum(2 + cell_len(name) + cell_len(value) for name, value in form)
        if cells + len(_BETWEEN) * (len(form) - 1) <= room:
            return _entries(form, letters)
    return _counted(short, room, letters)


def _single(series: Series, room: int, unit: Callable[[float], str]) -> list[Run]:
    now = latest(series)
    if now is None:
        return []
    known = [value for value in series.values if not isnan(value)]
    text = unit(now)
    extremes = f"  {unit(min(known))} … {unit(max(known))}"
    if cell_len(text) > room:
        return []
    if cell_len(text) + cell_len(extremes) <= room:
        return [(text, 0), (extremes, "legend")]
    return [(text, 0)]


def _entries(texts: Sequence[tuple[str, str]], letters: bool) -> list[Run]:
    runs: list[Run] = []
    for index, (name, value) in enumerate(texts):
        if index:
            runs.append((_BETWEEN, "legend"))
        runs.append((f"{letter(index) if letters else SWATCH} {name}", index))
        if value:
            runs.append((value, "legend"))
    return runs


def _counted(names: Sequence[str], room: int, letters: bool) -> list[Run]:
    used = 0
    fitting = 0
    for name in names:
        needed = 2 + cell_len(name) + (len(_BETWEEN) if fitting else 0)
        rest = f"{_BETWEEN}+{len(names) - fitting - 1}"
        if used + needed + len(rest) > room:
            break
        used += needed
        fitting += 1
    rest = f"+{len(names) - fitting}"
    if not fitting:
        return [(rest, "legend")] if len(rest) <= room else []
    return [*_entries([(name, "") for name in names[:fitting]], letters), (f"{_BETWEEN}{rest}", "legend")]
