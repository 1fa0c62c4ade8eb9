"""View options of a run's charts: time range, visible series, and drawing options.

The module is pure: no I/O and no widgets.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import accumulate

from tui.analysis.series import Series
from tui.text.units import duration
from tui.widgets.charts.ticks import Window, XAxis, position_label

TIME_LENGTHS = (86400.0, 6 * 3600.0, 3600.0, 900.0, 300.0)
STEP_LENGTHS = (10_000.0, 1000.0, 100.0)
"""Lengths of the visible range, in seconds or steps, that keys step through after the whole run."""

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


def lengths_of(whole: float, axis: XAxis) -> list[float]:
    """Return the lengths to choose from, the longest first: those shorter than the whole run."""
    return [length for length in (STEP_LENGTHS if axis == "step" else TIME_LENGTHS) if length < whole]


def next_length(
    view: ChartView, by: int, reach: tuple[float, float], axis: XAxis, *, cycles: bool = False
) -> Window:
    """Return the next shorter range (1) or a longer one (-1), around the cursor if there is one.

    If ``cycles``, the first length follows after the last.
    """
    lengths, span = lengths_of(reach[1] - reach[0], axis), view.window.span
    if by > 0:
        shorter = [length for length in lengths if span is None or length < span]
        span = shorter[0] if shorter else None if cycles else span
    elif span is not None:
        span = min((length for length in lengths if length > span), default=None)
    elif cycles:
        span = min(lengths, default=None)
    window = Window() if span is None else replace(view.window, span=span)
    return window if view.cursor is None else window.around(view.cursor, *reach)


def with_cursor_moved(view: ChartView, by: float, cells: int, reach: tuple[float, float]) -> ChartView:
    """Return the view with the cursor moved by ``by`` cells and visible; charts are ``cells`` wide."""
    start, end = view.window.bounds(*reach)
    cell = (end - start) / max(1, cells)
    if view.cursor is None or not start <= view.cursor <= end:
        x = end - cell / 2 if by < 0 else start + cell / 2
    else:
        x = min(max(view.cursor + by * cell, reach[0]), reach[1])
    return replace(view, cursor=x, window=view.window.showing(x, *reach))


def range_words(window: Window, axis: XAxis) -> str:
    """Return ``run``, ``1 h``, ``1 h to 14:05:00``, or ``1,000 steps``."""
    if window.span is None:
        return "run"
    length = f"{window.span:,.0f} steps" if axis == "step" else _length(window.span)
    return length if window.end is None else f"{length} to {position_label(window.end, axis)}"


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

    def step(self, time_s: float) -> float:
        """Return the step at a time, interpolated linearly and clamped to the first and last step."""
        return _between(self._times, self._steps, time_s)

    def reached(self, time_s: float) -> int | None:
        """Return the last whole step before a time; None before the first."""
        return int(self.step(time_s)) if self._times and time_s >= self._times[0] else None

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
