"""A chart's legend: in the line above it, shortened to the width, or as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from rich.cells import cell_len

from tui.analysis.series import Series
from tui.text.names import abbreviated_names, common_start
from tui.text.sanitize import clip, sanitize
from tui.widgets.charts.spec import ChartSpec, Line, Readout, Role, Run, read

SWATCH = "━"
SWITCHED_OFF = "·"
SELECTED = "▶"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_BETWEEN = "  "
_NAME_CELLS = 24
_NAMES_ONLY_ENTRIES = 2  # legend forms from this one on have no values
_MIN_LEGEND_NAME_CELLS = 4
_NAME_SEPARATORS = "-_./ "


def letter(index: int) -> str:
    return LETTERS[index % len(LETTERS)]


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names without their common prefix, cut after a separator: "node-0" → "0"."""
    if len(names) < 2:
        return list(names)
    cut = max(map(common_start(names).rfind, _NAME_SEPARATORS)) + 1
    return [name[cut:] or name for name in names]


def sign_of(index: int, name: str, spec: ChartSpec) -> str:
    if name in spec.hidden:
        return SWITCHED_OFF
    if name == spec.selected:
        return SELECTED
    return letter(index) if spec.letters else SWATCH


def role_of(index: int, name: str, spec: ChartSpec) -> Role:
    """Return the role of a series' legend entry: its index, or ``-1 - index`` if it is hidden."""
    return -1 - index if name in spec.hidden else index


def header(
    title: str,
    series: Sequence[Series],
    width: int,
    unit: Callable[[float], str],
    spec: ChartSpec,
    *,
    note: str = "",
    order: Sequence[int] | None = None,
) -> list[Run]:
    """Return the header line: title, the longest legend that fits, and a note on the right.

    A single series shows its latest value (or the one at the cursor), and the extremes of the time range
    if there is room. Several series show mark, name and value each. To save room, names lose their common
    prefix, then values are dropped, then the last series are counted instead of named. ``order`` gives
    the series in order of priority.
    """
    note = clip(sanitize(note), max(0, width // 2)) if note else ""
    room = width - (cell_len(note) + len(_BETWEEN) if note else 0)
    title = clip(sanitize(title), max(0, room)) if title else ""
    runs: list[Run] = [(title, "title")] if title else []
    used = cell_len(title)
    room -= used + (len(_BETWEEN) if title else 0)
    for piece in _legend(series, room, unit, spec, order if order is not None else range(len(series))):
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
    series: Sequence[Series], room: int, unit: Callable[[float], str], spec: ChartSpec, order: Sequence[int]
) -> list[Run]:
    if not series or room <= 0:
        return []
    if len(series) == 1:
        return _single(read(series[0], spec.start, spec.end, spec.cursor), room, unit)
    whole = [sanitize(one.name) for one in series]
    names = abbreviated_names(whole, _NAME_CELLS)
    short = abbreviated_names(short_names(whole), _NAME_CELLS)
    signs = [sign_of(index, one.name, spec) for index, one in enumerate(series)]
    roles = [role_of(index, one.name, spec) for index, one in enumerate(series)]
    if spec.band:
        outliers = [(signs[at], names[at], series[at], roles[at]) for at in order]
        return _of_band(outliers, series, room, unit, spec)
    if len(order) == len(series):
        readings = [read(one, spec.start, spec.end, spec.cursor).value for one in series]
        shown = ["–" if value is None else unit(value) for value in readings]
        forms = (
            [(name, f" {value}") for name, value in zip(names, shown, strict=True)],
            [(name, f" {value}") for name, value in zip(short, shown, strict=True)],
            [(name, "") for name in names],
            [(name, "") for name in short],
        )
        for place, form in enumerate(forms):
            if place == _NAMES_ONLY_ENTRIES and spec.cursor is not None:
                # A reader of values needs at least the minimum and maximum and their series.
                marked = list(zip(signs, short, roles, strict=True))
                if between := _between(readings, marked, room, unit):
                    return between
            cells = sum(2 + cell_len(name) + cell_len(value) for name, value in form)
            if cells + len(_BETWEEN) * (len(form) - 1) <= room:
                return _entries([(signs[at], *form[at], roles[at]) for at in order])
        if clipped := _clipped(short, room):
            return _entries([(signs[at], clipped[at], "", roles[at]) for at in order])
    return _counted([(signs[at], short[at], "", roles[at]) for at in order], len(series), room)


def _of_band(
    outliers: Sequence[tuple[str, str, Series, Role]],
    series: Sequence[Series],
    room: int,
    unit: Callable[[float], str],
    spec: ChartSpec,
) -> list[Run]:
    """Return the outliers and the median of the others, with their values as far as they fit."""

    def value_of(one: Series) -> float | None:
        return read(one, spec.start, spec.end, spec.cursor).value

    drawn = {one.name for _, _, one, _ in outliers}
    others = [one for one in series if one.name not in drawn and one.name not in spec.hidden]
    known = [value for one in others if (value := value_of(one)) is not None and value == value]
    runs: list[Run] = []
    used = 0
    pieces: list[list[Run]] = []
    for sign, name, one, role in outliers:
        value = value_of(one)
        pieces.append([(f"{sign} {name}", role), ("" if value is None else f" {unit(value)}", "legend")])
    if known:
        pieces.append([(f"{SWATCH} median", "median"), (f" {unit(median(known))}", "legend")])
        if not outliers and len(known) > 1:
            pieces.append([(f"{unit(min(known))} … {unit(max(known))}", "legend")])
    for piece in pieces:
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


_Entry = tuple[str, str, str, Role]


def _entries(entries: Sequence[_Entry]) -> list[Run]:
    runs: list[Run] = []
    for sign, name, value, role in entries:
        if runs:
            runs.append((_BETWEEN, "legend"))
        runs.append((f"{sign} {name}", role))
        if value:
            runs.append((value, "legend"))
    return runs


def _counted(entries: Sequence[_Entry], total: int, room: int) -> list[Run]:
    used = 0
    fitting = 0
    for _, name, _, _ in entries:
        needed = 2 + cell_len(name) + (len(_BETWEEN) if fitting else 0)
        rest = f"{_BETWEEN}+{total - fitting - 1}"
        if used + needed + len(rest) > room:
            break
        used += needed
        fitting += 1
    if not fitting:
        rest = f"+{total}"
        return [(rest, "legend")] if len(rest) <= room else []
    runs = _entries(entries[:fitting])
    return runs if fitting == total else [*runs, (f"{_BETWEEN}+{total - fitting}", "legend")]


MIN_TABLE_ROWS = 5
MIN_RASTER_CELLS = 36
"""Charts with fewer rows or raster cells show the legend in the header."""

_TABLE_NAME_CELLS = 14
_GAP = 2


def legend_table(
    series: Sequence[Series],
    spec: ChartSpec,
    unit: Callable[[float], str],
    width: int,
    rows: int,
    order: Sequence[int],
) -> list[Line] | None:
    """Return ``rows`` lines of equal width, some around the selected series; None without room."""
    if len(series) < 2 or rows < MIN_TABLE_ROWS:
        return None
    names = [sanitize(one.name) for one in series]
    names = abbreviated_names(short_names(names) if len(series) > rows else names, _TABLE_NAME_CELLS)
    shown, rest = _shown(series, spec, rows - 1, order)
    readings = [read(series[at], spec.start, spec.end, spec.cursor) for at in shown]
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
        name = series[at].name
        role = role_of(at, name, spec)
        label = f"{sign_of(at, name, spec)} {texts[0]}"
        rest_of_row = _row(["", *texts[1:]], [widths[0] - cell_len(texts[0]), *widths[1:]])
        lines.append(
            [(" " * _GAP, "blank"), (label, role), (rest_of_row, "off" if name in spec.hidden else "legend")]
        )
    if rest:
        more = clip(f"+{rest} more", total - _GAP)
        lines[-1 if len(lines) >= rows else len(lines) :] = [
            [(" " * _GAP + more + " " * (total - _GAP - cell_len(more)), "axis")]
        ]
    while len(lines) < rows:
        lines.append([(" " * total, "blank")])
    return lines[:rows]


def _row(texts: Sequence[str], widths: Sequence[int]) -> str:
    first = texts[0] + " " * (widths[0] - cell_len(texts[0]))
    return first + "".join(
        " " + " " * (width - cell_len(text)) + text for text, width in zip(texts[1:], widths[1:], strict=True)
    )


def _shown(
    series: Sequence[Series], spec: ChartSpec, rows: int, order: Sequence[int]
) -> tuple[list[int], int]:
    ordered = [*order, *(at for at in range(len(series)) if at not in set(order))]
    if len(ordered) <= rows:
        return ordered, 0
    room = rows - 1
    place = next((place for place, at in enumerate(ordered) if series[at].name == spec.selected), 0)
    begin = max(0, min(place - room // 2, len(ordered) - room))
    return ordered[begin : begin + room], len(ordered) - room
