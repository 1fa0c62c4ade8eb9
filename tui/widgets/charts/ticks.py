"""The visible range of the x axis, shared by several charts, and the ticks of both axes."""

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
    """A range of seconds or steps.

    ``span`` is its length, or None for everything; ``end`` is its right edge, or None while it follows
    the newest data.
    """

    span: float | None = None
    end: float | None = None

    @property
    def follows(self) -> bool:
        return self.end is None

    def bounds(self, first: float, last: float) -> tuple[float, float]:
        """Return the edges, given data from ``first`` to ``last``. The range is never empty."""
        end = last if self.end is None else self.end
        start = first if self.span is None else end - self.span
        if start < first and self.span is not None:
            # There is no data before the beginning: start there and keep the length.
            end = end if self.end is None else min(last, first + self.span)
            start = first
        return min(start, end - 1e-3), end

    def zoomed(self, factor: float, around: float | None, first: float, last: float) -> Window:
        """Return the range scaled by ``factor`` (> 1 is longer), keeping ``around`` in place.

        Without ``around``, a following range keeps its right edge, any other its middle.
        """
        start, end = self.bounds(first, last)
        if around is None:
            around = end if self.end is None else (start + end) / 2
        span = max(MIN_WINDOW_SPAN, (end - start) * factor)
        if span >= last - first:
            return Window()
        ratio = span / (end - start)
        return _placed(span, around + (end - around) * ratio, first, last)

    def panned(self, by: float, first: float, last: float) -> Window:
        """Return the range moved by ``by``; a range that reaches the newest data follows it."""
        start, end = self.bounds(first, last)
        # A run shorter than the range cannot be panned; keep the chosen length.
        return self if end - start >= last - first else _placed(end - start, end + by, first, last)

    def around(self, x: float, first: float, last: float) -> Window:
        """Return the range moved so that ``x`` is in its middle, within the data."""
        start, end = self.bounds(first, last)
        return self.panned(x - (start + end) / 2, first, last)

    def showing(self, x: float, first: float, last: float) -> Window:
        start, end = self.bounds(first, last)
        if x < start:
            # without _placed(), which would start following near the newest data
            return Window(end - start, x + (end - start))
        return _placed(end - start, x, first, last) if x > end else self


def _placed(span: float, end: float, first: float, last: float) -> Window:
    if span >= last - first:
        return Window()
    # Within a hundredth of the newest data counts as at the end, so that new samples move the range.
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

_FLAT = 1e-9  # data whose relative spread is below this counts as one value
_TINY = 1e-200  # below this magnitude, tick arithmetic breaks down
_ROUNDING = 1e-6  # numbers this close to a whole one count as whole


def nice_step(span: float, most: int, *, base: Literal[2, 10] = 10) -> float:
    """Return the smallest round step that covers `span` (> 0) in at most `most` intervals."""
    rough = span / max(1, most)
    if base == 2:
        return float(2.0 ** ceil(log2(rough) - 1e-9))
    power = 10.0 ** floor(log10(rough))
    for factor in (1.0, 2.0, 2.5, 5.0):
        if factor * power >= rough * (1 - 1e-9):
            return factor * power
    return 10.0 * power


def value_ticks(
    low: float,
    high: float,
    most: int,
    *,
    fixed_low: float | None = None,
    fixed_high: float | None = None,
    base: Literal[2, 10] = 10,
) -> tuple[float, ...]:
    """Return between 2 and `most` round values from the bottom of the axis to its top, even if possible.

    The first and last are the ends of the axis: the fixed end if given, else a round value just beyond
    the data, so that the data fills most of the height and a live axis rarely changes.
    """
    bottom = low if fixed_low is None else fixed_low
    top = high if fixed_high is None else fixed_high
    if top - bottom <= max(abs(top), abs(bottom)) * _FLAT or top - bottom < _TINY:
        bottom, top = _around(bottom, top, fixed_low, fixed_high)
    fine = nice_step(top - bottom, 10, base=base)  # ends are round to about a tenth of the axis
    if fixed_low is None:
        bottom = floor(bottom / fine + 1e-9) * fine
    if fixed_high is None:
        top = ceil(top / fine - 1e-9) * fine
    even = _even_ticks(bottom, top, fine, most, extends=fixed_high is None)
    return even or (bottom, *_between(bottom, top, most - 2, base), top)


def _even_ticks(bottom: float, top: float, fine: float, most: int, *, extends: bool) -> tuple[float, ...]:
    """Return ticks that divide the axis evenly, extending its top if allowed; () if none are round."""
    steps = (top - bottom) / fine
    if most <= 2 or abs(steps - round(steps)) > _ROUNDING:
        return ()
    for count in range(round(steps), round(steps) + (2 if extends else 1)):
        for parts in range(min(most - 1, count), 1, -1):
            step = count // parts * fine
            zero = -bottom / step  # an axis across zero keeps its tick there
            shows_zero = not 0 < zero < parts or abs(zero - round(zero)) < _ROUNDING
            if count % parts == 0 and 2 * parts >= most - 1 and shows_zero:
                return tuple(bottom + index * step for index in range(parts + 1))
    return ()


def _between(bottom: float, top: float, most: int, base: Literal[2, 10]) -> tuple[float, ...]:
    """Return at most `most` round values between the ends, none of them close to an end."""
    if most <= 0:
        return ()
    step = nice_step(top - bottom, most + 1, base=base)
    inner = [index * step for index in range(floor(bottom / step) + 1, ceil(top / step))]
    return tuple(tick for tick in inner if min(tick - bottom, top - tick) >= 0.4 * step)[:most]


def _around(
    bottom: float, top: float, fixed_low: float | None, fixed_high: float | None
) -> tuple[float, float]:
    """Return axis ends around a constant value. A fixed end stays, and the axis does not cross zero."""
    margin = abs(bottom) * 0.5 if abs(bottom) > _TINY else 1.0
    if fixed_low is None:
        bottom = 0.0 if 0.0 <= bottom < margin else bottom - margin
    if fixed_high is None or top <= bottom:
        top = max(top, bottom) + margin
    return bottom, top


def duration_label(seconds: float, units: int = 4) -> str:
    """Format whole seconds in the largest units that are not zero: "30s", "5m", "1h30m", "2d"; "-5m"."""
    parts, rest = [], abs(round(seconds))
    for unit_s, sign in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "m"), (1, "s")):
        amount, rest = divmod(rest, unit_s)
        if amount:
            parts.append(f"{amount}{sign}")
    return ("-" if seconds < 0 else "") + "".join(parts[:units] or ["0s"])


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
    """Return positions and labels, all of them different, at least about ten cells apart."""
    span_s = end - start
    if span_s <= 0 or cells <= 0:
        return ()
    most = max(1, cells // 9)
    if axis == "step":
        return _step_ticks(start, end, most)
    step_s = next((step for step in _TIME_STEPS_S if span_s / step < most + 1), _TIME_STEPS_S[-1])
    if axis == "clock":
        return _clock_ticks(start, end, step_s, timezone)
    if axis == "relative":
        origin, first, last = end, -floor(span_s / step_s + 1e-9), -1
    else:
        first, last = ceil((start - origin) / step_s - 1e-9), floor((end - origin) / step_s + 1e-9)
    steps = [index * step_s for index in range(first, last + 1)]
    ticks = tuple((origin + seconds, duration_label(seconds)) for seconds in steps)
    return (*ticks, (end, end_label)) if axis == "relative" else ticks


def position_label(x: float, axis: XAxis, *, origin: float = 0.0) -> str:
    if axis == "step":
        return f"step {round(x):,}"
    if axis == "elapsed":
        return duration_label(max(0.0, x - origin))
    # On a relative axis too: "13:04:05" can be found in the log, "-12m3s" cannot.
    return f"{datetime.fromtimestamp(x, UTC).astimezone():%H:%M:%S}"


def log_ticks(low: float, high: float, most: int, *, fixed_high: float | None = None) -> tuple[float, ...]:
    """Return ticks of a logarithmic axis as decimal logarithms, bottom to top.

    ``low`` and ``high`` are logarithms too. The ends are 1, 2 or 5 times a power of ten just beyond the
    data. Ticks between them are such values, or only powers of ten; between 2 and `most` in all.
    """
    if high - low < 1.0 and fixed_high is None:  # within one decade, 1-2-5 ticks are too few: use linear ones
        plain = value_ticks(10.0**low, 10.0**high, most)
        if plain[0] > 0:
            return tuple(map(log10, plain))
    top = high if fixed_high is None else max(fixed_high, low)
    around = [
        (floor(low) + index // 3) + _LOG_1_2_5[index % 3] for index in range(3 * (ceil(top) - floor(low) + 2))
    ]
    bottom = max(tick for tick in around if tick <= low + 1e-9)
    if fixed_high is None:
        top = min(tick for tick in around if tick >= high - 1e-9 and tick > bottom + 1e-9)
    if top <= bottom:
        top = bottom + 1.0
    inner = [tick for tick in around if bottom + 1e-9 < tick < top - 1e-9]
    if len(inner) > most - 2:
        decades = [tick for tick in inner if abs(tick - round(tick)) < 1e-9]
        stride = max(1, ceil(len(decades) / max(1, most - 2)))
        inner = decades[::stride] if most > 2 else []
    return (bottom, *inner, top)


_LOG_1_2_5 = (0.0, log10(2.0), log10(5.0))


def _step_ticks(start: float, end: float, most: int) -> tuple[tuple[float, str], ...]:
    step = nice_step(max(end - start, 1.0), most + 1)
    whole_step = max(1, round(step if step.is_integer() else 2 * step))  # steps are whole: 5 instead of 2.5
    ticks = range(whole_step * ceil(start / whole_step - 1e-9), floor(end + 1e-9) + 1, whole_step)
    return tuple((float(tick), f"{tick:,}") for tick in ticks)


def _clock_ticks(
    start: float, end: float, step_s: int, timezone: tzinfo | None
) -> tuple[tuple[float, str], ...]:
    # Count steps from local midnight so that labels are round in local time. Around a daylight saving change
    # they are off by an hour but still correct: each label is formatted from its own time.
    begin = datetime.fromtimestamp(start, timezone).astimezone(timezone)
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    moments: dict[float, datetime] = {}
    index = ceil((begin - midnight).total_seconds() / step_s)
    while (stamp := (moment := midnight + timedelta(seconds=index * step_s)).timestamp()) <= end:
        moments[stamp] = moment
        index += 1

    def label(stamp: float, at_midnight: str, other: str) -> str:
        moment = moments[stamp]
        is_midnight = moment.hour == moment.minute == moment.second == 0
        return moment.strftime(at_midnight if is_midnight else other)

    time = "%H:%M:%S" if step_s < _MINUTE_S else "%H:%M"
    formats = [
        partial(label, at_midnight="%d %b", other=time),
        partial(label, at_midnight="%d %b", other=f"%a {time}"),
        partial(label, at_midnight="%d %b %Y", other=f"%d %b {time}"),
        partial(label, at_midnight="%Y-%m-%d", other=f"%Y-%m-%d {time}"),
    ]
    return labeled_ticks(tuple(moments), formats)
