"""A chart's legend: in the line above it, shortened to the width, or as a table beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len

from tui.text.names import abbreviated_names, common_prefix_length
from tui.text.sanitize import clip, sanitize
from tui.widgets.charts.parts import SELECTED, SWITCHED_OFF, Entry
from tui.widgets.charts.spec import ChartSpec, Line, Readout, Role, Run, signed

_SEPARATOR = "  "
_MAX_NAME_CELLS = 24


def short_names(names: Sequence[str]) -> list[str]:
    """Return the names without their common prefix, cut after a separator: "node-0" → "0"."""
    cut = common_prefix_length(names) if names else 0
    return [name[cut:] or name for name in names]


def header(
    title: str,
    entries: Sequence[Entry],
    width: int,
    unit: Callable[[float], str],
    spec: ChartSpec,
    *,
    remark: Run = ("", "note"),
) -> Line:
    """Return the line above a chart: title, the longest legend that fits, and a remark on the right."""
    note, role = clip(sanitize(remark[0]), width // 2), remark[1]
    room = max(0, width - (cell_len(note) + len(_SEPARATOR) if note else 1))  # not close to the next title
    title = clip(sanitize(title), room)
    pieces: list[Line] = [[(title, "title")]] if title else []
    legend_room = room - (cell_len(title) + len(_SEPARATOR) if title else 0)
    runs = _joined([*pieces, *_legend(entries, legend_room, unit, spec)])
    filler = " " * (width - _width(runs) - cell_len(note))
    return [run for run in (*runs, (filler, "legend"), (note, role)) if run[0]]


def _legend(entries: Sequence[Entry], room: int, unit: Callable[[float], str], spec: ChartSpec) -> list[Line]:
    """Return the pieces of the longest legend that fits.

    A single series shows its value, and the extremes of the time range if there is room. Several entries
    show mark, name and value each. To save room, in this order: names lose their common prefix; values are
    dropped, unless there is a cursor; names are cut while they stay distinct; the last entries become "+3".
    """
    if len(entries) == 1 and isinstance(entries[0].role, int):
        return _single_series(entries[0].readout(), room, unit)
    names = [entry.name for entry in entries]
    short = short_names(names)
    values = [_value_text(entry.readout(), unit) for entry in entries]
    shown = values if spec.cursor is not None else [""] * len(entries)
    name_room = (room + len(_SEPARATOR)) // max(1, len(entries)) - len(_SEPARATOR) - len("━ ")
    cells = max(4, min(_MAX_NAME_CELLS, name_room - max(map(cell_len, shown), default=0)))
    full = [
        (names, _MAX_NAME_CELLS, values),
        (short, _MAX_NAME_CELLS, values),
        (short, _MAX_NAME_CELLS, shown),
    ]
    for form, name_cells, texts in (*full, (short, cells, shown)):
        cut = abbreviated_names(form, name_cells)
        pieces = _pieces(entries, cut, texts)
        if _width(_joined(pieces)) <= room and len(set(cut)) == len(set(names)):
            return pieces
    pieces = _pieces(entries, abbreviated_names(short, _MAX_NAME_CELLS), shown)
    # An entry takes at least four cells, so only the first room // 4 can fit.
    for fitting in range(min(len(pieces) - 1, room // 4), -1, -1):
        counted: list[Line] = [*pieces[:fitting], [(f"+{len(pieces) - fitting}", "legend")]]
        if _width(_joined(counted)) <= room:
            return counted
    return []


def _single_series(readout: Readout, room: int, unit: Callable[[float], str]) -> list[Line]:
    if readout.value is None:
        return [[("–", "legend")]] if readout.low is not None and room > 0 else []
    text, extremes = unit(readout.value), ""
    if readout.low is not None and readout.high is not None:
        extremes = f"  {unit(readout.low)} … {unit(readout.high)}"
    if cell_len(text + extremes) <= room:
        return [[(text, 0), (extremes, "legend")]]
    return [[(text, 0)]] if cell_len(text) <= room else []


def _value_text(readout: Readout, unit: Callable[[float], str]) -> str:
    if readout.value is None:
        return " –"
    return f" {unit(readout.value)}" + (f" {signed(readout.change, unit)}" if readout.change else "")


def _pieces(entries: Sequence[Entry], names: Sequence[str], values: Sequence[str]) -> list[Line]:
    return [
        [(f"{entry.sign} {name}", entry.role), (value, "legend")]
        for entry, name, value in zip(entries, names, values, strict=True)
    ]


def _joined(pieces: Sequence[Line]) -> Line:
    between: Run = (_SEPARATOR, "legend")
    return [run for piece in pieces for run in (between, *piece)][1:]


def _width(runs: Line) -> int:
    return sum(cell_len(text) for text, _ in runs)


def legend_table(
    entries: Sequence[Entry], spec: ChartSpec, unit: Callable[[float], str], width: int, rows: int
) -> list[Line] | None:
    """Return the legend as ``rows`` lines of equal width; None if there is no room.

    If not all series fit, those around the selected one are listed.
    """
    if len(entries) < 3 or rows < 5:
        return None
    names = [entry.name for entry in entries]
    names = abbreviated_names(short_names(names) if len(entries) > rows else names, 14)
    has_changes = bool(spec.baseline) and spec.cursor is not None
    titles = ["last" if spec.cursor is None else "at │", *(["Δ"] if has_changes else ["min", "max"])]
    shown, rest = _listed_entries(entries, rows - 1)
    value_texts = [_value_texts(entries[at].readout(), unit, has_changes=has_changes) for at in shown]
    widths = [max(map(cell_len, column)) for column in zip(titles, *value_texts, strict=True)]
    name_cells = len("━ ") + max(cell_len(names[at]) for at in shown)
    total = len(_SEPARATOR) + name_cells + sum(cells + 1 for cells in widths)
    if width - total < 36:  # minimum width of a raster beside a table
        return None

    def line(label: str, role: Role, texts: Sequence[str], text_role: Role) -> Line:
        right = "".join(
            " " * (cells + 1 - cell_len(text)) + text for text, cells in zip(texts, widths, strict=True)
        )
        return [
            (_SEPARATOR, "blank"),
            (label, role),
            (" " * (name_cells - cell_len(label)) + right, text_role),
        ]

    lines = [line(" ", "axis", titles, "axis")]
    for at, texts in zip(shown, value_texts, strict=True):
        entry = entries[at]
        lines.append(
            line(f"{entry.sign} {names[at]}", entry.role, texts, "off" if is_hidden(entry) else "legend")
        )
    if rest:
        lines.append([(f"{_SEPARATOR}+{rest} more".ljust(total)[:total], "axis")])
    blank: Line = [(" " * total, "blank")]
    return [*lines, *[blank] * (rows - len(lines))]


def _value_texts(readout: Readout, unit: Callable[[float], str], *, has_changes: bool) -> list[str]:
    values = [readout.value] if has_changes else [readout.value, readout.low, readout.high]
    texts = ["–" if value is None else unit(value) for value in values]
    if has_changes:
        texts.append("" if readout.change is None else signed(readout.change, unit))
    return texts


def is_hidden(entry: Entry) -> bool:
    return entry.sign == SWITCHED_OFF


def _listed_entries(entries: Sequence[Entry], rows: int) -> tuple[Sequence[int], int]:
    """Return the indexes of the entries that fit, around the selected one, and the number of the others."""
    if len(entries) <= rows:
        return range(len(entries)), 0
    room = rows - 1
    selected = next((number for number, entry in enumerate(entries) if entry.sign == SELECTED), 0)
    begin = max(0, min(selected - room // 2, len(entries) - room))
    return range(begin, begin + room), len(entries) - room
