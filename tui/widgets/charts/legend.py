"""A chart's legend: in the line above it, shortened to the width, or as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len

from tui.text.names import abbreviated_names, common_start
from tui.text.sanitize import clip, sanitize
from tui.widgets.charts.parts import SELECTED, SWITCHED_OFF, Entry
from tui.widgets.charts.spec import ChartSpec, Line, Readout, Run, signed

_BETWEEN = "  "
_NAME_CELLS = 24
_MIN_LEGEND_NAME_CELLS = 4
_LEAST_CELLS = len("━ 0") + len(_BETWEEN)
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
) -> list[Run]:
    """Return the header line: title, the longest legend that fits, and a note on the right.

    A single series shows its latest value (or the one at the cursor), and the extremes of the time range
    if there is room. Several entries show mark, name and value each. To save room, names lose their common
    prefix, then values are dropped, except at a cursor, then names are cut while they differ, then the last
    entries are counted.
    """
    note = clip(sanitize(note), max(0, width // 2)) if note else ""
    room = width - (cell_len(note) + len(_BETWEEN) if note else 0)
    title = clip(sanitize(title), max(0, room)) if title else ""
    runs: list[Run] = [(title, "title")] if title else []
    used = cell_len(title)
    room -= used + (len(_BETWEEN) if title else 0)
    for piece in _legend(entries, room, unit, spec):
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
) -> list[Run]:
    if not entries or room <= 0:
        return []
    if len(entries) == 1 and isinstance(entries[0].role, int):
        return _single(entries[0].readout(), room, unit)
    full_names = [entry.name for entry in entries]
    short = short_names(full_names)
    values = [_value(entry.readout(), unit) for entry in entries]
    forms = [(full_names, _NAME_CELLS, values), (short, _NAME_CELLS, values)]
    values = values if spec.cursor is not None else [""] * len(entries)
    forms += [(short, cells, values) for cells in range(_NAME_CELLS, _MIN_LEGEND_NAME_CELLS - 1, -1)]
    most = (room + len(_BETWEEN)) // _LEAST_CELLS
    for names, cells, shown in forms if len(entries) <= most else ():
        cut = abbreviated_names(names, cells)
        pieces = _pieces(entries, cut, shown)
        if _cells(_joined(pieces)) <= room and len(set(cut)) == len(set(names)):
            return _joined(pieces)
    pieces = _pieces(entries, abbreviated_names(short, _NAME_CELLS), values)
    for fitting in range(min(most, len(pieces) - 1), -1, -1):
        runs = _joined([*pieces[:fitting], [(f"+{len(pieces) - fitting}", "legend")]])
        if _cells(runs) <= room:
            return runs
    return []


def _value(readout: Readout, unit: Callable[[float], str]) -> str:
    if readout.value is None:
        return " –"
    return f" {unit(readout.value)}" + (f" {signed(readout.change, unit)}" if readout.change else "")


def _pieces(entries: Sequence[Entry], names: Sequence[str], values: Sequence[str]) -> list[list[Run]]:
    return [
        [(f"{entry.sign} {name}", entry.role), *([(value, "legend")] if value else [])]
        for entry, name, value in zip(entries, names, values, strict=True)
    ]


def _joined(pieces: Sequence[Sequence[Run]]) -> list[Run]:
    between: Run = (_BETWEEN, "legend")
    return [run for piece in pieces if piece for run in (between, *piece)][1:]


def _cells(runs: Sequence[Run]) -> int:
    return sum(cell_len(text) for text, _ in runs)


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


MIN_TABLE_ENTRIES = 3
MIN_TABLE_ROWS = 5
MIN_RASTER_CELLS = 36
"""Charts with fewer entries, rows or raster cells show the legend in the header."""

_TABLE_NAME_CELLS = 14
_GAP = 2


def legend_table(
    entries: Sequence[Entry], spec: ChartSpec, unit: Callable[[float], str], width: int, rows: int
) -> list[Line] | None:
    """Return ``rows`` lines of equal width, some around the selected series; None without room."""
    if len(entries) < MIN_TABLE_ENTRIES or rows < MIN_TABLE_ROWS:
        return None
    names = [entry.name for entry in entries]
    names = abbreviated_names(short_names(names) if len(entries) > rows else names, _TABLE_NAME_CELLS)
    shown, rest = _shown(entries, rows - 1)
    readings = [entries[at].readout() for at in shown]
    cells = [
        [
            names[at],
            *("–" if value is None else unit(value) for value in (entry.value, entry.low, entry.high)),
        ]
        for at, entry in zip(shown, readings, strict=True)
    ]
    titles = ["", "at │" if spec.cursor is not None else "last", "min", "max"]
    if spec.baseline and spec.cursor is not None:
        changes = ["" if entry.change is None else signed(entry.change, unit) for entry in readings]
        cells = [[*row[:2], change] for row, change in zip(cells, changes, strict=True)]
        titles = ["", "at │", "Δ"]
    widths = [max(map(cell_len, column)) for column in zip(titles, *cells, strict=True)]
    total = _GAP + 2 + sum(widths) + len(widths) - 1
    if width - total < MIN_RASTER_CELLS:
        return None
    lines: list[Line] = [[(" " * (_GAP + 2) + _row(titles, widths), "axis")]]
    for at, texts in zip(shown, cells, strict=True):
        entry = entries[at]
        label = f"{entry.sign} {texts[0]}"
        rest_of_row = _row(["", *texts[1:]], [widths[0] - cell_len(texts[0]), *widths[1:]])
        lines.append(
            [(" " * _GAP, "blank"), (label, entry.role), (rest_of_row, "off" if is_off(entry) else "legend")]
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
    selected = next((number for number, entry in enumerate(entries) if entry.sign == SELECTED), 0)
    begin = max(0, min(selected - room // 2, len(entries) - room))
    return range(begin, begin + room), len(entries) - room
