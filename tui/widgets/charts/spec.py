"""What a chart is to look like: everything about it but its samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Literal

from tui.widgets.charts.ticks import XAxis

Role = str | int
"""What a piece of a chart is: a name such as "title" or "axis", or a series by its number.

A series that is switched off has the role ``-1 - number`` in the legend.
"""

Run = tuple[str, Role]
"""A piece of a line and what it is."""

Line = list[Run]

Tone = Literal["good", "caution", "bad"]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at ``at`` (in the x axis' unit), shown as one sign on the axis.

    Of several in one cell the last of the worst tone is shown.
    """

    at: float
    sign: str
    tone: Tone
    text: str = ""


@dataclass(frozen=True, slots=True)
class ChartSpec:
    """How a chart is drawn.

    Attributes:
        title: what it shows.
        start: the window's left edge, in the x axis' unit (epoch seconds, or steps).
        end: its right edge.
        y_min: the lower end of the value axis; chosen from the data when None.
        y_max: the upper end likewise.
        unit: turns a value into text.
        tick_base: 2 makes ticks powers of two, for bytes.
        x_axis: what the x axis is labelled with.
        origin: where an "elapsed" axis begins (epoch seconds).
        end_label: what the right edge is called on a relative axis.
        timezone: for clock labels; the machine's own when None.
        empty_text: what to say where there is no sample.
        note: a remark at the right of the header.
        letters: series carry letters, as there are no colours.
        log: the value axis is logarithmic; values up to zero are left out.
        smoothing: weight (0 ≤ w < 1) of the exponential mean drawn over the faint samples; 0 is none.
        marks: what happened, on the x axis.
        cursor: where values are read (x), or None for the newest ones.
        hidden: names of the series that are switched off.
        selected: the name of the series that lies on top.
        emphasis: names of the series that stand out where there are too many for colours.
        first_colour: number of the first series' colour, for a chart of some series of many.
    """

    title: str = ""
    start: float = 0.0
    end: float = 0.0
    y_min: float | None = None
    y_max: float | None = None
    unit: Callable[[float], str] | None = None
    tick_base: Literal[2, 10] = 10
    x_axis: XAxis = "relative"
    origin: float = 0.0
    end_label: str = "now"
    timezone: tzinfo | None = None
    empty_text: str = "no data yet"
    note: str = ""
    letters: bool = False
    log: bool = False
    smoothing: float = 0.0
    marks: tuple[Mark, ...] = ()
    cursor: float | None = None
    hidden: frozenset[str] = frozenset()
    selected: str | None = None
    emphasis: frozenset[str] = frozenset()
    first_colour: int = 0
