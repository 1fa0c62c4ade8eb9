"""Group the series of a chart by how they are drawn, for raster and legend; build the legend's entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from tui.analysis.series import Series
from tui.text.sanitize import sanitize
from tui.widgets.charts.spec import ChartSpec, Readout, Role, read_series, value_at
from tui.widgets.tones import SERIES_COLORS

LINE_SIGN = "━"
HIDDEN_SIGN = "·"
SELECTED_SIGN = "▶"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


GRAY = "gray-"
"""Prefix of the legend role of a series that is drawn in gray; the index of the series follows."""


def series_of(role: Role) -> int | None:
    """Return the index of the series of a role in the legend; None if the role is not that of a series."""
    if isinstance(role, int):
        return role if role >= 0 else -1 - role
    return int(role.removeprefix(GRAY)) if role.startswith(GRAY) else None


def letter(index: int) -> str:
    return LETTERS[index % len(LETTERS)]


def colors_highlights_only(series: Sequence[Series], spec: ChartSpec) -> bool:
    """True if only emphasized and selected series are colored: with a band, or more series than colors."""
    return spec.has_band or len(series) > SERIES_COLORS


@dataclass(frozen=True, slots=True)
class SeriesGroups:
    """Indices of the series, grouped by how they are drawn.

    Attributes:
        lines: Drawn as lines in color.
        background: Drawn in gray, or together as a band.
        hidden: Not drawn.
    """

    lines: tuple[int, ...]
    background: tuple[int, ...]
    hidden: tuple[int, ...]


def group_series(series: Sequence[Series], spec: ChartSpec) -> SeriesGroups:
    highlights_only = colors_highlights_only(series, spec)
    lines, background, hidden = [], [], []
    for index, curve in enumerate(series):
        is_highlighted = curve.name in spec.emphasis or curve.name == spec.selected
        if curve.name in spec.hidden:
            hidden.append(index)
        elif is_highlighted or not highlights_only:
            lines.append(index)
        else:
            background.append(index)
    return SeriesGroups(tuple(lines), tuple(background), tuple(hidden))


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the legend: a series, or the band of several series.

    ``name`` is sanitized. ``readout`` computes the values when called, because a legend may show only some of
    its entries.
    """

    sign: str
    name: str
    role: Role
    readout: Callable[[], Readout]


def legend_entries(series: Sequence[Series], spec: ChartSpec) -> list[Entry]:
    """Return the entries of the legend: one for the band if there is one, and one for each other series.

    Entries are in the order of the series; if only highlighted series are colored, these come first. Hidden
    series have an entry, so that a click on it can show the series again.
    """
    groups = group_series(series, spec)
    baseline = next((curve for curve in series if curve.name == spec.baseline), None)

    def readout(curve: Series) -> Readout:
        reading = read_series(curve, spec.start, spec.end, spec.cursor)
        if baseline is None or baseline is curve or spec.cursor is None or reading.value is None:
            return reading
        baseline_value = value_at(baseline, spec.cursor)
        return reading if baseline_value is None else replace(reading, change=reading.value - baseline_value)

    def series_entry(index: int, role: Role) -> Entry:
        curve = series[index]
        sign = letter(index) if spec.has_letters and role == index else LINE_SIGN
        sign = SELECTED_SIGN if curve.name == spec.selected else sign
        sign = HIDDEN_SIGN if index in groups.hidden else sign
        return Entry(sign, sanitize(curve.name), role, partial(readout, curve))

    lines = [series_entry(index, index) for index in groups.lines]
    hidden = [series_entry(index, -1 - index) for index in groups.hidden]
    if spec.has_band and len(groups.background) > 1:
        band = _band_entry([series[index] for index in groups.background], spec, bool(lines))
        return [*lines, *band, *hidden]
    background = [
        series_entry(index, "median" if spec.has_band else f"{GRAY}{index}") for index in groups.background
    ]
    others = sorted([*background, *hidden], key=_series_index)
    if colors_highlights_only(series, spec):
        return [*lines, *others]
    return sorted([*lines, *others], key=_series_index)


def _series_index(entry: Entry) -> int:
    return series_of(entry.role) or 0


def _band_entry(members: Sequence[Series], spec: ChartSpec, has_lines: bool) -> list[Entry]:
    """Return the entry of a band, with the median and the extremes of its series; [] without values."""
    readings = [read_series(series, spec.start, spec.end, spec.cursor) for series in members]
    # NaN is not equal to itself.
    values = [
        reading.value for reading in readings if reading.value is not None and reading.value == reading.value
    ]
    lows = [reading.low for reading in readings if reading.low is not None]
    highs = [reading.high for reading in readings if reading.high is not None]
    if not lows:
        return []
    readout = Readout(median(values) if values else None, min(lows), max(highs))
    name = f"{len(members)} others" if has_lines else f"median of {len(members)}"
    return [Entry(LINE_SIGN, name, "median", lambda: readout)]
