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

LENGTHS_S = (86400.0, 6 * 3600.0, 3600.0, 900.0, 300.0)
"""Lengths of the visible time range, in seconds; keys step from the whole run through them."""
LENGTHS_STEPS = (10_000.0, 1000.0, 100.0)
"""Lengths of the visible range on an axis of training steps, in steps; keys step through them."""

X_AXES: tuple[XAxis, ...] = ("relative", "clock", "elapsed", "step")
"""Kinds of x axis, in the order in which the key for the x axis steps through them."""


@dataclass(frozen=True, slots=True)
class ChartView:
    """View options of charts; times are in epoch seconds, on Compare in the unit of its axis."""

    window: Window = field(default_factory=Window)
    """The visible range."""
    pins: tuple[str, ...] = ()
    """Ids of the pinned charts, which come first."""
    every_metric: bool = False
    """Show all metrics of the trainer, instead of only the reward and pinned metrics."""
    node: str | None = None
    """The only node whose GPUs are shown; None for all nodes."""
    x_axis: XAxis = "relative"
    """Kind of x axis; "step" applies only to charts of the log."""
    smoothing: float = 0.0
    """Weight of the exponential mean that smooths curves; 0 for no smoothing."""
    log_scale: bool = False
    """Draw values on a logarithmic axis."""
    draws_lines: bool = False
    """Draw each of many nodes as a line, instead of all as a band."""
    hidden: frozenset[str] = frozenset()
    """Names of the series that are not drawn."""
    selected: str | None = None
    """Name of the highlighted series."""
    cursor: float | None = None
    """The position at which all charts show their values; None shows the newest values."""


def shorter_lengths(run_length: float, axis: XAxis) -> list[float]:
    """Return the range lengths that are shorter than the whole run, the longest first."""
    return [length for length in (LENGTHS_STEPS if axis == "step" else LENGTHS_S) if length < run_length]


def next_length(
    view: ChartView, step: int, full_range: tuple[float, float], axis: XAxis, *, cycles: bool = False
) -> Window:
    """Return the next shorter range (``step`` 1) or the next longer range (-1), around the cursor if set.

    If ``cycles``, the whole run follows after the shortest range, and the other way round.
    """
    lengths, span = shorter_lengths(full_range[1] - full_range[0], axis), view.window.span
    if step > 0:
        lengths_below = [length for length in lengths if span is None or length < span]
        span = lengths_below[0] if lengths_below else None if cycles else span
    elif span is not None:
        span = min((length for length in lengths if length > span), default=None)
    elif cycles:
        span = min(lengths, default=None)
    window = Window() if span is None else replace(view.window, span=span)
    return window if view.cursor is None else window.around(view.cursor, *full_range)


def with_cursor_moved(
    view: ChartView, moved_cells: float, chart_cells: int, full_range: tuple[float, float]
) -> ChartView:
    """Return the view with the cursor moved by this many cells; the range moves if it lacks the cursor."""
    start, end = view.window.bounds(*full_range)
    cell_length = (end - start) / max(1, chart_cells)
    if view.cursor is None or not start <= view.cursor <= end:
        x = end - cell_length / 2 if moved_cells < 0 else start + cell_length / 2
    else:
        x = min(max(view.cursor + moved_cells * cell_length, full_range[0]), full_range[1])
    return replace(view, cursor=x, window=view.window.showing(x, *full_range))


def range_text(window: Window, axis: XAxis) -> str:
    """Describe a range: ``run``, ``1 h``, ``1 h to 14:05:00``, or ``1,000 steps``."""
    if window.span is None:
        return "run"
    length = f"{window.span:,.0f} steps" if axis == "step" else _length_text(window.span)
    return length if window.end is None else f"{length} to {position_label(window.end, axis)}"


def drawing_notes(view: ChartView) -> list[str]:
    notes = (
        f"smooth {view.smoothing:g}" if view.smoothing else "",
        "log" if view.log_scale else "",
        f"{len(view.hidden)} hidden" if view.hidden else "",
    )
    return [note for note in notes if note]


def _length_text(seconds: float) -> str:
    """Format round lengths briefly ("15 min", "6 h"), and other lengths to the minute."""
    for unit_s, word, min_count in ((86400, "d", 2), (3600, "h", 1), (60, "min", 1)):
        if seconds % unit_s == 0 and seconds >= min_count * unit_s:
            return f"{seconds / unit_s:.0f} {word}"
    return duration(seconds)


class StepTimeMap:
    """Converts between time (epoch seconds) and step.

    After a restart, a run repeats steps: until it passes the highest step so far, this step is used.
    """

    def __init__(self, steps: Series) -> None:
        self._times = steps.times
        self._steps = tuple(accumulate(steps.values, max))

    def step(self, time_s: float) -> float:
        """Return the step at a time, interpolated linearly and clamped to the first and last step."""
        return _interpolated(self._times, self._steps, time_s)

    def last_step_at(self, time_s: float) -> int | None:
        """Return the last whole step that was reached by a time; None before the first step."""
        return int(self.step(time_s)) if self._times and time_s >= self._times[0] else None

    def time(self, step: float) -> float:
        """Return the time at which a step was reached, interpolated linearly and clamped to known times."""
        return _interpolated(self._steps, self._times, step)


def _interpolated(xs: tuple[float, ...], ys: tuple[float, ...], x: float) -> float:
    """Interpolate linearly between points with non-decreasing xs; clamp outside of them."""
    index = bisect_right(xs, x)
    if index == 0:
        return ys[0]
    if index == len(xs):
        return ys[-1]
    x0, x1 = xs[index - 1], xs[index]
    return ys[index - 1] + (ys[index] - ys[index - 1]) * (x - x0) / (x1 - x0)
