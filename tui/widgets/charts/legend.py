"""A chart's legend: in the line above it, shortened to the width, or as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len

from tui.text.names import abbreviated_names, common_start
from tui.text.sanitize import clip, sanitize
from tui.widgets.charts.parts import SELECTED, SWITCHED_OFF, Entry
from tui.widgets.charts.spec import ChartSpec, Line, Readout, Role, Run

_BETWEEN = "  "
_NAME_CELLS = 24
_NAMES_ONLY_ENTRIES = 2  # legend forms from this one on have no values
_MIN_LEGEND_NAME_CELLS = 4
_NAME_SEPARATORS = "-_./ "


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names without their common prefix, cut after a separator: "node-0" → "0"."""
    if len(names) < 2:
        return list(names)
    cut = max(map(common_start(names).rfind, _NAME_SEPARATORS)) + 1
    return [name[cut:] or name for name in names]


def header(
    title: str,
    entries: Sequence[Entry],
    width: int,
    unit: Callable[[float], str],
    spec: ChartSpec,
    *,
    note: str = "",
    has_table: bool = False,
) -> list[Run]:
    """Return the header line: title, the longest legend that fits, and a note on the right.

    A single series shows its latest value (or the one at the cursor), and the extremes of the time range
    if there is room. Several entries show mark, name and value each. To save room, names lose their common
    prefix, then values are dropped, then the last ones are counted instead of named; only beside a table,
    which names all, they are left out if they do not fit with their values.
    """
    note = clip(sanitize(note), max(0, width // 2)) if note else ""
    room = width - (cell_len(note) + len(_BETWEEN) if note else 0)
    title = clip(sanitize(title), max(0, room)) if title else ""
    runs: list[Run] = [(title, "title")] if title else []
    used = cell_len(title)
    room -= used + (len(_BETWEEN) if title else 0)
    for piece in _legend(entries, room, unit, spec, has_table=has_table):
        if piece and used and runs[-1][1] == "title":
            runs.append((_BETWEEN, "legend"))
            used += len(_BETWEEN)
        runs.append(piece)
        used += cell_len(piece[0])
    runs.append((" " * max(0, width - used - cell_len(note)), "legend"))
    if note:
        runs.append((note, "note"))
    return runs


def _legend(
    entries: Sequence[Entry],
    room: int,
    unit: Callable[[float], str],
    spec: ChartSpec,
    *,
    has_table: bool,
) -> list[Run]:
    if not entries or room <= 0:
        return []
    if len(entries) == 1 and isinstance(entries[0].role, int):
        return _single(entries[0].readout(), room, unit)
    whole = [one.name for one in entries]
    names = abbreviated_names(whole, _NAME_CELLS)
    short = abbreviated_names(short_names(whole), _NAME_CELLS)
    if spec.band:
        return _fitting(entries, names, room, unit)
    colored = [at for at, one in enumerate(entries) if isinstance(one.role, int) and one.role >= 0]
    if not colored or all(isinstance(one.role, int) for one in entries):
        readings = [one.readout().value for one in entries]
        shown = ["–" if value is None else unit(value) for value in readings]
        forms = (
            [(name, f" {value}") for name, value in zip(names, shown, strict=True)],
            [(name, f" {value}") for name, value in zip(short, shown, strict=True)],
            [(name, "") for name in names],
            [(name, "") for name in short],
        )
        for place, form in enumerate(forms[:_NAMES_ONLY_ENTRIES] if has_table else forms):
            if place == _NAMES_ONLY_ENTRIES and spec.cursor is not None:
                # A reader of values needs at least the minimum and maximum and their series.
                marked = [(one.sign, name, one.role) for one, name in zip(entries, short, strict=True)]
                if between := _between(readings, marked, room, unit):
                    return between
            cells = sum(2 + cell_len(name) + cell_len(value) for name, value in form)
            if cells + len(_BETWEEN) * (len(form) - 1) <= room:
                return _entries(entries, form)
        if not has_table and (clipped := _clipped(short, room)):
            return _entries(entries, [(name, "") for name in clipped])
    if has_table:
        return []
    first = colored or range(len(entries))
    return _counted([entries[at] for at in first], [short[at] for at in first], len(entries), room)


def _fitting(
    entries: Sequence[Entry], names: Sequence[str], room: int, unit: Callable[[float], str]
) -> list[Run]:
    """Return the first entries with their values, as far as they fit."""
    runs: list[Run] = []
    used = 0
    for one, name in zip(entries, names, strict=True):
        readout = one.readout()
        value = "" if readout.value is None else f" {unit(readout.value)}"
        if readout.value is None and readout.low is not None and readout.high is not None:
            value = f" {unit(readout.low)} … {unit(readout.high)}"
        piece: list[Run] = [(f"{one.sign} {name}", one.role), (value, "legend")]
        cells = sum(cell_len(text) for text, _ in piece) + (len(_BETWEEN) if runs else 0)
        if used + cells <= room:
            runs += ([(_BETWEEN, "legend")] if runs else []) + piece
            used += cells
    return runs


def _between(
    readings: Sequence[float | None],
    marked: Sequence[tuple[str, str, Role]],
    room: int,
    unit: Callable[[float], str],
) -> list[Run]:
    """Return the least and greatest value, with the sign and name of their series if there is room."""
    known = [(value, at) for at, value in enumerate(readings) if value is not None]
    if not known:
        return []
    ends = (min(known), max(known))
    end_texts = list(dict.fromkeys(unit(value) for value, _ in ends))
    if len(end_texts) == 1:
        text = f"all {end_texts[0]}" if len(known) == len(readings) else end_texts[0]
        return [(text, "legend")] if cell_len(text) <= room else []
    runs: list[Run] = []
    for value, at in ends:
        sign, name, role = marked[at]
        runs += [(" … ", "legend")] if runs else []
        runs += [(f"{sign} {name}", role), (f" {unit(value)}", "legend")]
    if sum(cell_len(text) for text, _ in runs) <= room:
        return runs
    text = " … ".join(end_texts)
    return [(text, "legend")] if cell_len(text) <= room else []


def _clipped(names: Sequence[str], room: int) -> list[str]:
    """Cut all names to one length at which they fit and remain distinct; empty if there is none."""
    for cells in range(max(map(cell_len, names)), _MIN_LEGEND_NAME_CELLS - 1, -1):
        clipped = abbreviated_names(names, cells)
        needed = sum(2 + cell_len(name) for name in clipped) + len(_BETWEEN) * (len(names) - 1)
        if needed <= room:
            return clipped if len(set(clipped)) == len(set(names)) else []
    return []


def _single(readout: Readout, room: int, unit: Callable[[float], str]) -> list[Run]:
    if readout.value is None:
        return [("–", "legend")] if readout.low is not None and room > 0 else []
    text = unit(readout.value)
    if cell_len(text) > room:
        return []
    if readout.low is not None and readout.high is not None:
        extremes = f"  {unit(readout.low)} … {unit(readout.high)}"
        if cell_len(text) + cell_len(extremes) <= room:
            return [(text, 0), (extremes, "legend")]
    return [(text, 0)]


def _entries(entries: Sequence[Entry], texts: Sequence[tuple[str, str]]) -> list[Run]:
    runs: list[Run] = []
    for one, (name, value) in zip(entries, texts, strict=True):
        if runs:
            runs.append((_BETWEEN, "legend"))
        runs.append((f"{one.sign} {name}", one.role))
        if value:
            runs.append((value, "legend"))
    return runs


def _counted(entries: Sequence[Entry], names: Sequence[str], total: int, room: int) -> list[Run]:
    used = 0
    fitting = 0
    for name in names:
        needed = 2 + cell_len(name) + (len(_BETWEEN) if fitting else 0)
        rest = f"{_BETWEEN}+{total - fitting - 1}"
        if used + needed + len(rest) > room:
            break
        used += needed
        fitting += 1
    if not fitting:
        rest = f"+{total}"
        return [(rest, "legend")] if len(rest) <= room else []
    runs = _entries(entries[:fitting], [(name, "") for name in names[:fitting]])
    return runs if fitting == total else [*runs, (f"{_BETWEEN}+{total - fitting}", "legend")]


MIN_TABLE_ROWS = 5
MIN_RASTER_CELLS = 36
"""Charts with fewer rows or raster cells show the legend in the header."""

_TABLE_NAME_CELLS = 14
_GAP = 2


def legend_table(
    entries: Sequence[Entry], spec: ChartSpec, unit: Callable[[float], str], width: int, rows: int
) -> list[Line] | None:
    """Return ``rows`` lines of equal width, some around the selected series; None without room."""
    if len(entries) < 2 or rows < MIN_TABLE_ROWS:
        return None
    names = [one.name for one in entries]
    names = abbreviated_names(short_names(names) if len(entries) > rows else names, _TABLE_NAME_CELLS)
    shown, rest = _shown(entries, rows - 1)
    readings = [entries[at].readout() for at in shown]
    cells = [
        [names[at], *("–" if value is None else unit(value) for value in (one.value, one.low, one.high))]
        for at, one in zip(shown, readings, strict=True)
    ]
    titles = ["", "at │" if spec.cursor is not None else "last", "min", "max"]
    widths = [max(cell_len(row[column]) for row in [titles, *cells]) for column in range(4)]
    total = _GAP + 2 + sum(widths) + 3
    if width - total < MIN_RASTER_CELLS:
        return None
    lines: list[Line] = [[(" " * (_GAP + 2) + _row(titles, widths), "axis")]]
    for at, texts in zip(shown, cells, strict=True):
        one = entries[at]
        label = f"{one.sign} {texts[0]}"
        rest_of_row = _row(["", *texts[1:]], [widths[0] - cell_len(texts[0]), *widths[1:]])
        lines.append(
            [(" " * _GAP, "blank"), (label, one.role), (rest_of_row, "off" if is_off(one) else "legend")]
        )
    if rest:
        more = clip(f"+{rest} more", total - _GAP)
        lines[-1 if len(lines) >= rows else len(lines) :] = [
            [(" " * _GAP + more + " " * (total - _GAP - cell_len(more)), "axis")]
        ]
    while len(lines) < rows:
        lines.append([(" " * total, "blank")])
    return lines[:rows]


def is_off(entry: Entry) -> bool:
    return entry.sign == SWITCHED_OFF


def _row(texts: Sequence[str], widths: Sequence[int]) -> str:
    first = texts[0] + " " * (widths[0] - cell_len(texts[0]))
    return first + "".join(
        " " + " " * (width - cell_len(text)) + text for text, width in zip(texts[1:], widths[1:], strict=True)
    )


def _shown(entries: Sequence[Entry], rows: int) -> tuple[Sequence[int], int]:
    if len(entries) <= rows:
        return range(len(entries)), 0
    room = rows - 1
    place = next((place for place, one in enumerate(entries) if one.sign == SELECTED), 0)
    begin = max(0, min(place - room // 2, len(entries) - room))
    return range(begin, begin + room), len(entries) - room
