"""The visible range of the x axis, which several charts share, and the ticks of both axes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from math import ceil, floor, log2, log10
from typing import Literal

from tui.text.labels import labeled_ticks

MIN_WINDOW_SPAN = 10.0
"""Minimum length of the visible range, in seconds or steps."""


@dataclass(frozen=True, slots=True)
class Window:
    """The visible range of the x axis, in seconds or steps.

    The methods take the positions of the ``first`` and the ``last`` sample.

    Attributes:
        span: Length of the range; None for all data.
        end: Right edge of the range; None if the range follows the newest data.
    """

    span: float | None = None
    end: float | None = None

    @property
    def follows(self) -> bool:
        return self.end is None

    def bounds(self, first: float, last: float) -> tuple[float, float]:
        """Return the left and the right edge. The range is never empty."""
        end = last if self.end is None else self.end
        start = first if self.span is None else end - self.span
        if start < first and self.span is not None:
            # There is no data before ``first``: begin there, with the same length.
            end = end if self.end is None else min(last, first + self.span)
            start = first
        return min(start, end - 1e-3), end

    def zoomed(self, factor: float, around: float | None, first: float, last: float) -> Window:
        """Return the range scaled by ``factor`` (> 1 is longer), with the position ``around`` kept in place.

        Without ``around``, the middle is kept in place; if the range follows the newest data, its right edge.
        """
        start, end = self.bounds(first, last)
        if around is None:
            around = end if self.end is None else (start + end) / 2
        span = max(MIN_WINDOW_SPAN, (end - start) * factor)
        if span >= last - first:
            return Window()
        ratio = span / (end - start)
        return _ending_at(around + (end - around) * ratio, span, first, last)

    def panned(self, by: float, first: float, last: float) -> Window:
        """Return the range moved by ``by`` (right if positive); at the newest data, it follows them."""
        start, end = self.bounds(first, last)
        # If all data are visible there is nothing to pan to; keep the length that the user chose.
        return self if end - start >= last - first else _ending_at(end + by, end - start, first, last)

    def around(self, x: float, first: float, last: float) -> Window:
        """Return the range moved so that ``x`` is in its middle, but not beyond the data."""
        start, end = self.bounds(first, last)
        return self.panned(x - (start + end) / 2, first, last)

    def showing(self, x: float, first: float, last: float) -> Window:
        """Return the range moved as little as needed for ``x`` to be visible."""
        start, end = self.bounds(first, last)
        if x < start:
            # Not _ending_at: close to the newest data, it would return a range that follows.
            return Window(end - start, x + (end - start))
        return _ending_at(x, end - start, first, last) if x > end else self


def _ending_at(end: float, span: float, first: float, last: float) -> Window:
    """Return a range with this right edge, within the data; close to the newest data, it follows them."""
    if span >= last - first:
        return Window()
    # An edge within a hundredth of the range from the newest data counts as at the end.
    return Window(span) if end >= last - span / 100 else Window(span, max(end, first + span))


XAxis = Literal["relative", "clock", "elapsed", "step"]
"""Kind of labels on the x axis.

`relative`: "-30m … now", counted back from the right edge. `clock`: local time of day. `elapsed`: time
since the run began. `step`: training steps; the only kind whose unit is not seconds.
"""

_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 86400

_TIME_STEPS_S = (
    *(1, 2, 5, 10, 15, 30),
    *(_MINUTE_S * minutes for minutes in (1, 2, 5, 10, 15, 20, 30)),
    *(_HOUR_S * hours for hours in (1, 2, 3, 6, 12)),
    *(_DAY_S * days for days in (1, 2, 5, 10, 30, 90, 365)),
)

_MIN_RELATIVE_SPREAD = 1e-9  # values whose relative spread is below this count as one value
_MIN_AXIS_LENGTH = 1e-200  # below this, floating-point arithmetic of ticks becomes inaccurate
_ROUNDING_TOLERANCE = 1e-6  # a number this close to an integer counts as an integer


def nice_step(span: float, max_intervals: int, *, base: Literal[2, 10] = 10) -> float:
    """Return the smallest round step that divides ``span`` (> 0) into at most ``max_intervals`` intervals."""
    min_step = span / max(1, max_intervals)
    if base == 2:
        return float(2.0 ** ceil(log2(min_step) - 1e-9))
    power = 10.0 ** floor(log10(min_step))
    for factor in (1.0, 2.0, 2.5, 5.0):
        if factor * power >= min_step * (1 - 1e-9):
            return factor * power
    return 10.0 * power


def value_ticks(
    low: float,
    high: float,
    max_ticks: int,
    *,
    fixed_low: float | None = None,
    fixed_high: float | None = None,
    base: Literal[2, 10] = 10,
) -> tuple[float, ...]:
    """Return the ticks of a value axis, ascending: 2 to ``max_ticks`` round values, even if possible.

    The first and the last tick are the ends of the axis: the fixed end if given, else a round value just
    beyond the data, so that the data fill most of the height and the axis of a live chart rarely changes.
    """
    bottom = low if fixed_low is None else fixed_low
    top = high if fixed_high is None else fixed_high
    if top - bottom <= max(abs(top), abs(bottom)) * _MIN_RELATIVE_SPREAD or top - bottom < _MIN_AXIS_LENGTH:
        bottom, top = _ends_around(bottom, top, fixed_low, fixed_high)
    end_step = nice_step(top - bottom, 10, base=base)  # the ends are multiples of this
    if fixed_low is None:
        bottom = floor(bottom / end_step + 1e-9) * end_step
    if fixed_high is None:
        top = ceil(top / end_step - 1e-9) * end_step
    even_ticks = _even_ticks(bottom, top, end_step, max_ticks, may_extend=fixed_high is None)
    return even_ticks or (bottom, *_inner_ticks(bottom, top, max_ticks - 2, base), top)


def _even_ticks(
    bottom: float, top: float, end_step: float, max_ticks: int, *, may_extend: bool
) -> tuple[float, ...]:
    """Return ticks that divide the axis evenly at multiples of ``end_step``; () if there are none.

    If ``may_extend``, the top of the axis may be one ``end_step`` higher.
    """
    steps = (top - bottom) / end_step
    if max_ticks <= 2 or abs(steps - round(steps)) > _ROUNDING_TOLERANCE:
        return ()
    for end_steps in range(round(steps), round(steps) + (2 if may_extend else 1)):
        for intervals in range(min(max_ticks - 1, end_steps), 1, -1):
            tick_step = end_steps // intervals * end_step
            zero = -bottom / tick_step  # where zero is on the axis, in ticks from the bottom
            is_zero_a_tick = abs(zero - round(zero)) < _ROUNDING_TOLERANCE
            if (
                end_steps % intervals == 0
                and 2 * intervals >= max_ticks - 1
                and (is_zero_a_tick or not 0 < zero < intervals)
            ):
                return tuple(bottom + index * tick_step for index in range(intervals + 1))
    return ()


def _inner_ticks(bottom: float, top: float, max_ticks: int, base: Literal[2, 10]) -> tuple[float, ...]:
    """Return at most ``max_ticks`` round values between the ends of an axis, none of them close to an end."""
    if max_ticks <= 0:
        return ()
    step = nice_step(top - bottom, max_ticks + 1, base=base)
    multiples = [index * step for index in range(floor(bottom / step) + 1, ceil(top / step))]
    return tuple(tick for tick in multiples if min(tick - bottom, top - tick) >= 0.4 * step)[:max_ticks]


def _ends_around(
    bottom: float, top: float, fixed_low: float | None, fixed_high: float | None
) -> tuple[float, float]:
    """Return the ends of an axis for constant data. A fixed end stays, and the axis does not cross zero."""
    margin = abs(bottom) * 0.5 if abs(bottom) > _MIN_AXIS_LENGTH else 1.0
    if fixed_low is None:
        bottom = 0.0 if 0.0 <= bottom < margin else bottom - margin
    if fixed_high is None or top <= bottom:
        top = max(top, bottom) + margin
    return bottom, top


def duration_label(seconds: float, max_units: int = 4) -> str:
    """Format whole seconds in at most ``max_units`` units, the largest first: "30s", "1h30m", "2d", "-5m"."""
    numbers, remaining_s = [], abs(round(seconds))
    for unit_s, unit in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "m"), (1, "s")):
        amount, remaining_s = divmod(remaining_s, unit_s)
        if amount:
            numbers.append(f"{amount}{unit}")
    return ("-" if seconds < 0 else "") + "".join(numbers[:max_units] or ["0s"])


def time_ticks(
    start: float,
    end: float,
    cells: int,
    *,
    axis: XAxis = "relative",
    end_label: str = "now",
    timezone: tzinfo | None = None,
    origin: float = 0.0,
) -> tuple[tuple[float, str], ...]:
    """Return the ticks of an x axis of ``cells`` cells: positions and labels, about ten cells apart or more.

    No two labels are the same. ``origin`` is the start of an "elapsed" axis; ``end_label`` is the label at
    the right end of a "relative" axis.
    """
    span_s = end - start
    if span_s <= 0 or cells <= 0:
        return ()
    max_ticks = max(1, cells // 9)
    if axis == "step":
        return _step_ticks(start, end, max_ticks)
    step_s = next((step for step in _TIME_STEPS_S if span_s / step < max_ticks + 1), _TIME_STEPS_S[-1])
    if axis == "clock":
        return _clock_ticks(start, end, step_s, timezone)
    if axis == "relative":
        origin, first, last = end, -floor(span_s / step_s + 1e-9), -1
    else:
        first, last = ceil((start - origin) / step_s - 1e-9), floor((end - origin) / step_s + 1e-9)
    offsets_s = [index * step_s for index in range(first, last + 1)]
    ticks = tuple((origin + offset_s, duration_label(offset_s)) for offset_s in offsets_s)
    return (*ticks, (end, end_label)) if axis == "relative" else ticks


def position_label(x: float, axis: XAxis, *, origin: float = 0.0) -> str:
    """Format the position of the cursor."""
    if axis == "step":
        return f"step {round(x):,}"
    if axis == "elapsed":
        return duration_label(max(0.0, x - origin))
    # On a relative axis, too: the user can find "13:04:05" in the log, but not "-12m3s".
    return f"{datetime.fromtimestamp(x, UTC).astimezone():%H:%M:%S}"


def log_ticks(
    low: float, high: float, max_ticks: int, *, fixed_high: float | None = None
) -> tuple[float, ...]:
    """Return the ticks of a logarithmic value axis, ascending: 2 to ``max_ticks`` decimal logarithms.

    ``low`` and ``high``, the range of the data, are decimal logarithms, too. The ends of the axis are 1, 2 or
    5 times a power of ten just beyond the data. So are the ticks between the ends; if these are too many,
    only powers of ten are ticks.
    """
    if high - low < 1.0 and fixed_high is None:  # within a decade, there would be too few ticks
        linear_ticks = value_ticks(10.0**low, 10.0**high, max_ticks)
        if linear_ticks[0] > 0:
            return tuple(map(log10, linear_ticks))
    top = high if fixed_high is None else max(fixed_high, low)
    candidates = [
        (floor(low) + index // 3) + _LOG_1_2_5[index % 3] for index in range(3 * (ceil(top) - floor(low) + 2))
    ]
    bottom = max(tick for tick in candidates if tick <= low + 1e-9)
    if fixed_high is None:
        top = min(tick for tick in candidates if tick >= high - 1e-9 and tick > bottom + 1e-9)
    if top <= bottom:
        top = bottom + 1.0
    inner = [tick for tick in candidates if bottom + 1e-9 < tick < top - 1e-9]
    if len(inner) > max_ticks - 2:
        powers_of_ten = [tick for tick in inner if abs(tick - round(tick)) < 1e-9]
        stride = max(1, ceil(len(powers_of_ten) / max(1, max_ticks - 2)))
        inner = powers_of_ten[::stride] if max_ticks > 2 else []
    return (bottom, *inner, top)


_LOG_1_2_5 = (0.0, log10(2.0), log10(5.0))  # the logarithms of 1, 2 and 5


def _step_ticks(start: float, end: float, max_ticks: int) -> tuple[tuple[float, str], ...]:
    interval = nice_step(max(end - start, 1.0), max_ticks + 1)
    # Training steps are integers: an interval of 2.5 becomes 5.
    whole_interval = max(1, round(interval if interval.is_integer() else 2 * interval))
    first_tick = whole_interval * ceil(start / whole_interval - 1e-9)
    ticks = range(first_tick, floor(end + 1e-9) + 1, whole_interval)
    return tuple((float(tick), f"{tick:,}") for tick in ticks)


def _clock_ticks(
    start: float, end: float, step_s: int, timezone: tzinfo | None
) -> tuple[tuple[float, str], ...]:
    # Count from local midnight, so that labels are round in local time. After a change of daylight saving
    # time they are off by an hour, but still right: each label is formatted from the time of its tick.
    begin = datetime.fromtimestamp(start, timezone).astimezone(timezone)
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    moments: dict[float, datetime] = {}
    index = ceil((begin - midnight).total_seconds() / step_s)
    while (stamp := (moment := midnight + timedelta(seconds=index * step_s)).timestamp()) <= end:
        moments[stamp] = moment
        index += 1

    def label(stamp: float, midnight_format: str, other_format: str) -> str:
        moment = moments[stamp]
        is_midnight = moment.hour == moment.minute == moment.second == 0
        return moment.strftime(midnight_format if is_midnight else other_format)

    time = "%H:%M:%S" if step_s < _MINUTE_S else "%H:%M"
    formats = [
        partial(label, midnight_format="%d %b", other_format=time),
        partial(label, midnight_format="%d %b", other_format=f"%a {time}"),
        partial(label, midnight_format="%d %b %Y", other_format=f"%d %b {time}"),
        partial(label, midnight_format="%Y-%m-%d", other_format=f"%Y-%m-%d {time}"),
    ]
    return labeled_ticks(tuple(moments), formats)
