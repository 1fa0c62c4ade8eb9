"""What is done to samples before they are drawn: smoothing, and the logarithm."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf, log10, nan

from tui.insight.series import Series


def smoothed(series: Series, weight: float) -> Series:
    """The exponential mean of the samples so far, without the pull to zero at its beginning.

    Each sample counts ``1 - weight``, what was before it ``weight``. Gaps stay gaps and infinities
    stay where they are; neither moves the mean.
    """
    if weight <= 0:
        return series
    mean = filled = 0.0
    rest = 1.0 - weight
    values: list[float] = []
    for value in series.values:
        if value != value or isinf(value):
            values.append(value)
            continue
        mean = weight * mean + rest * value
        filled = weight * filled + rest
        values.append(mean / filled)
    return Series(series.name, series.times, tuple(values))


def logarithmic(series: Series) -> Series:
    """The decimal logarithms of the samples; a value up to zero has none and is a gap."""
    return Series(
        series.name, series.times, tuple(log10(value) if value > 0 else nan for value in series.values)
    )


class Shaper:
    """Shapes series, and remembers the result while it is asked for the same objects again."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Series, float, bool, Series]] = {}

    def shape(self, series: Series, *, smoothing: float = 0.0, log: bool = False) -> Series:
        """The series smoothed, then in logarithms, as wanted."""
        if not smoothing and not log:
            return series
        key = id(series) * 2 + (smoothing > 0)
        held = self._held.get(key)
        if held is not None and held[0] is series and held[1:3] == (smoothing, log):
            return held[3]
        shaped = smoothed(series, smoothing)
        shaped = logarithmic(shaped) if log else shaped
        self._held[key] = (series, smoothing, log, shaped)
        return shaped

    def forget_all_but(self, series: Sequence[Series]) -> None:
        """Let go of what was remembered of other series."""
        if self._held:
            kept = {id(one) for one in series}
            self._held = {key: held for key, held in self._held.items() if key // 2 in kept}
