"""Which series of a chart are drawn in color, gray or not at all; raster and legend both use this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from tui.analysis.series import Series
from tui.text.sanitize import sanitize
from tui.widgets.charts.spec import ChartSpec, Readout, Role, read_series, value_at
from tui.widgets.tones import SERIES_COLORS

SWATCH = "━"
SWITCHED_OFF = "·"
SELECTED = "▶"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


CROWD = "crowd-"
"""Prefix of the legend role of a series drawn in gray; its index follows."""


def series_of(role: Role) -> int | None:
    """Return the index of the series that a legend role stands for; None for other roles."""
    if isinstance(role, int):
        return role if role >= 0 else -1 - role
    return int(role.removeprefix(CROWD)) if role.startswith(CROWD) else None


def letter(index: int) -> str:
    return LETTERS[index % len(LETTERS)]


def is_crowd(series: Sequence[Series], spec: ChartSpec) -> bool:
    """Return True if only emphasized and selected series are colored: a band, or more series than colors."""
    return spec.band or len(series) > SERIES_COLORS


@dataclass(frozen=True, slots=True)
class Parts:
    """Indexes of the series that are drawn as colored lines, in gray or as a band, and that are hidden."""

    lines: tuple[int, ...]
    crowd: tuple[int, ...]
    hidden: tuple[int, ...]


def parts(series: Sequence[Series], spec: ChartSpec) -> Parts:
    crowd = is_crowd(series, spec)
    hidden = {index for index, curve in enumerate(series) if curve.name in spec.hidden}
    colored = {
        index
        for index, curve in enumerate(series)
        if index not in hidden and (not crowd or curve.name in spec.emphasis or curve.name == spec.selected)
    }
    rest = (index for index in range(len(series)) if index not in colored | hidden)
    return Parts(tuple(sorted(colored)), tuple(rest), tuple(sorted(hidden)))


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the legend: a series or the band. ``name`` is sanitized; ``readout`` returns its values."""

    sign: str
    name: str
    role: Role
    readout: Callable[[], Readout]


def entries(series: Sequence[Series], spec: ChartSpec) -> list[Entry]:
    """Return an entry for the band and for each other series; clicking a hidden one shows it again.

    Few series keep their order; of many, the colored ones come first.
    """
    drawn = parts(series, spec)
    baseline = next((curve for curve in series if curve.name == spec.baseline), None)

    def readout(curve: Series) -> Readout:
        reading = read_series(curve, spec.start, spec.end, spec.cursor)
        if baseline is None or baseline is curve or spec.cursor is None or reading.value is None:
            return reading
        other = value_at(baseline, spec.cursor)
        return reading if other is None else replace(reading, change=reading.value - other)

    def series_entry(index: int, role: Role) -> Entry:
        curve = series[index]
        sign = letter(index) if spec.letters and role == index else SWATCH
        sign = SELECTED if curve.name == spec.selected else sign
        sign = SWITCHED_OFF if index in drawn.hidden else sign
        return Entry(sign, sanitize(curve.name), role, partial(readout, curve))

    lines = [series_entry(index, index) for index in drawn.lines]
    hidden = [series_entry(index, -1 - index) for index in drawn.hidden]
    if spec.band and len(drawn.crowd) > 1:
        band = _band_entry([series[index] for index in drawn.crowd], spec, bool(lines))
        return [*lines, *band, *hidden]
    crowd = [series_entry(index, "median" if spec.band else f"{CROWD}{index}") for index in drawn.crowd]
    others = sorted([*crowd, *hidden], key=_series_index)
    return [*lines, *others] if is_crowd(series, spec) else sorted([*lines, *others], key=_series_index)


def _series_index(entry: Entry) -> int:
    return series_of(entry.role) or 0


def _band_entry(members: Sequence[Series], spec: ChartSpec, has_lines: bool) -> list[Entry]:
    """Return the entry of a band: the median of its members, and their extremes."""
    readings = [read_series(item, spec.start, spec.end, spec.cursor) for item in members]
    values = [item.value for item in readings if item.value is not None and item.value == item.value]
    lows = [item.low for item in readings if item.low is not None]
    highs = [item.high for item in readings if item.high is not None]
    if not lows:
        return []
    readout = Readout(median(values) if values else None, min(lows), max(highs))
    name = f"{len(members)} others" if has_lines else f"median of {len(members)}"
    return [Entry(SWATCH, name, "median", lambda: readout)]
