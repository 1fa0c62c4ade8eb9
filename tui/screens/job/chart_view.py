"""How a person looks at the charts of a run: which time, which lines, and drawn in which way. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import accumulate

from tui.analysis.series import Series
from tui.text.units import duration
from tui.widgets.charts.ticks import Window, XAxis, place_label

PRESETS = tuple(timedelta(minutes=minutes) for minutes in (5, 15, 60, 6 * 60, 24 * 60, 7 * 24 * 60))
"""Lengths that a key steps through; after the longest comes all there is."""

FIRST_SPAN = PRESETS[2]
SMOOTHINGS = (0.0, 0.6, 0.9, 0.98)
X_AXES: tuple[XAxis, ...] = ("relative", "clock", "elapsed", "step")


@dataclass(frozen=True, slots=True)
class ChartView:
    """What is shown of the charts.

    Attributes:
        window: the time shown, in epoch seconds.
        whole_progress: curves of the log show the whole run, whatever the window.
        node: one node alone, by GPU, or None for all nodes.
        x_axis: what the x axis is; "step" applies to curves of the log alone.
        smoothing: weight of the exponential mean, 0 for none.
        log: logarithmic value axes, where they have no fixed ends.
        hidden: names of the series that are switched off.
        selected: the series that lies on top.
        cursor: the time at which values are read.
    """

    window: Window = field(default_factory=lambda: Window(FIRST_SPAN.total_seconds()))
    whole_progress: bool = True
    node: str | None = None
    x_axis: XAxis = "relative"
    smoothing: float = 0.0
    log: bool = False
    hidden: frozenset[str] = frozenset()
    selected: str | None = None
    cursor: float | None = None


def longer(window: Window) -> Window:
    """The next longer preset; after the longest, all."""
    lengths = [preset.total_seconds() for preset in PRESETS]
    if window.span is None:
        return window
    above = bisect_right(lengths, window.span)
    return Window(lengths[above], window.end) if above < len(lengths) else Window()


def shorter(window: Window) -> Window:
    """The next shorter preset; the shortest stays."""
    lengths = [preset.total_seconds() for preset in PRESETS]
    below = len(lengths) if window.span is None else bisect_left(lengths, window.span)
    return Window(lengths[max(0, below - 1)], window.end)


def words(view: ChartView) -> str:
    """The view in a few words: its length, where it ends, and how lines are drawn."""
    window = view.window
    said = ["all" if window.span is None else _length(window.span)]
    if window.end is not None:
        said[0] += f" to {place_label(window.end, 'clock')}"
    if view.x_axis != "relative":
        said.append(f"by {view.x_axis}")
    if view.smoothing:
        said.append(f"smooth {view.smoothing:g}")
    if view.log:
        said.append("log")
    if view.hidden:
        said.append(f"{len(view.hidden)} off")
    return " · ".join(said)


def _length(seconds: float) -> str:
    """Round lengths as people say them ("15 min", "6 h"), others to the minute."""
    for unit_s, word, least in ((86400, "d", 2), (3600, "h", 1), (60, "min", 1)):
        if seconds % unit_s == 0 and seconds >= least * unit_s:
            return f"{seconds / unit_s:.0f} {word}"
    return duration(seconds)


class StepClock:
    """Which step was reached when, and back; a run that began again keeps the highest step so far."""

    def __init__(self, steps: Series) -> None:
        """``steps`` are step numbers over time."""
        self._times = steps.times
        self._steps = tuple(accumulate(steps.values, max))

    def __bool__(self) -> bool:
        return len(self._times) > 0

    def step(self, time_s: float) -> float:
        """The step reached at a time, in between and beyond by the pace there."""
        return _between(self._times, self._steps, time_s)

    def time(self, step: float) -> float:
        """When a step was reached."""
        return _between(self._steps, self._times, step)


def _between(xs: tuple[float, ...], ys: tuple[float, ...], x: float) -> float:
    """Linear between the points, whose xs never fall; the first and last value beyond them."""
    above = bisect_right(xs, x)
    if above == 0:
        return ys[0]
    if above == len(xs):
        return ys[-1]
    x0, x1 = xs[above - 1], xs[above]
    return ys[above - 1] + (ys[above] - ys[above - 1]) * (x - x0) / (x1 - x0)
