"""View options of a run's charts: time range, visible series, and drawing options.

The module is pure: no I/O and no widgets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from tui.analysis.series import Series
from tui.text.units import duration
from tui.widgets.charts.ticks import Window, XAxis, place_label

PRESETS = (300.0, 3600.0, 6 * 3600.0)
"""Lengths of the time range, in seconds, that keys step through; the whole run follows the longest."""

X_AXES: tuple[XAxis, ...] = ("relative", "clock", "elapsed", "step")


@dataclass(frozen=True, slots=True)
class ChartView:
    """View options of the charts.

    Attributes:
        window: the visible time range, in epoch seconds.
        pins: ids of the charts that come first.
        every_metric: show all metrics of the trainer, not only those that come first.
        node: the only node shown, by GPU, or None for all nodes.
        x_axis: unit of the x axis; "step" applies only to charts of the log.
        cursor: the time at which values are shown.
    """

    window: Window = field(default_factory=Window)
    pins: tuple[str, ...] = ()
    every_metric: bool = False
    node: str | None = None
    x_axis: XAxis = "relative"
    smoothing: float = 0.0
    log: bool = False
    lines: bool = False
    """Draw each of many nodes as a line, instead of all as a band."""
    hidden: frozenset[str] = frozenset()
    selected: str | None = None
    cursor: float | None = None


def longer(window: Window) -> Window:
    if window.span is None:
        return window
    above = bisect_right(PRESETS, window.span)
    return Window(PRESETS[above], window.end) if above < len(PRESETS) else Window()


def shorter(window: Window) -> Window:
    below = len(PRESETS) if window.span is None else bisect_left(PRESETS, window.span)
    return Window(PRESETS[max(0, below - 1)], window.end)


def range_words(window: Window) -> str:
    """Return ``run``, ``1 h``, or ``1 h to 14:05``."""
    length = "run" if window.span is None else _length(window.span)
    return length if window.end is None else f"{length} to {place_label(window.end, 'clock')}"


def option_words(view: ChartView) -> list[str]:
    """Return what is unusual about the charts, apart from their time range."""
    return [*([] if view.x_axis == "relative" else [f"by {view.x_axis}"]), *drawing_words(view)]


def drawing_words(view: ChartView) -> list[str]:
    parts = (
        f"smooth {view.smoothing:g}" if view.smoothing else "",
        "log" if view.log else "",
        f"{len(view.hidden)} hidden" if view.hidden else "",
    )
    return [word for word in parts if word]


def _length(seconds: float) -> str:
    """Format round lengths briefly ("15 min", "6 h"), others to the minute."""
    for unit_s, word, least in ((86400, "d", 2), (3600, "h", 1), (60, "min", 1)):
        if seconds % unit_s == 0 and seconds >= least * unit_s:
            return f"{seconds / unit_s:.0f} {word}"
    return duration(seconds)


class StepTimeMap:
    """Converts between time and step; after a restart it keeps the highest step reached so far."""

    def __init__(self, steps: Series) -> None:
        self._times = steps.times
        self._steps = tuple(accumulate(steps.values, max))

    def __bool__(self) -> bool:
        return len(self._times) > 0

    def step(self, time_s: float) -> float:
        """Return the step at a time, interpolated linearly and clamped to the first and last step."""
        return _between(self._times, self._steps, time_s)

    def time(self, step: float) -> float:
        """Return the time at which a step was reached, interpolated and clamped likewise."""
        return _between(self._steps, self._times, step)


def _between(xs: tuple[float, ...], ys: tuple[float, ...], x: float) -> float:
    """Interpolate linearly between points with non-decreasing xs; clamp outside of them."""
    above = bisect_right(xs, x)
    if above == 0:
        return ys[0]
    if above == len(xs):
        return ys[-1]
    x0, x1 = xs[above - 1], xs[above]
    return ys[above - 1] + (ys[above] - ys[above - 1]) * (x - x0) / (x1 - x0)
