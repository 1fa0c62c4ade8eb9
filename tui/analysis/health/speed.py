"""The speed of a run: how fast it steps between its pauses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median

from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.progress.steps import numbered
from tui.analysis.series import Series

_NEAR, _PAUSE = 20, 4.0  # A step that takes this many times as long as those around it contains a pause.


def speed_of(progress: ProgressSnapshot) -> tuple[Series, str]:
    """Return the best measure of speed in the log, and its unit: tokens, samples, steps or lines a second."""
    series, unit = progress.throughput_series
    if unit != "it/s":
        return series, unit
    marks = progress.step_series
    if marks.times:
        return paced(marks), unit
    return paced(numbered(progress.loss_series)), "lines/s"


def paced(marks: Series) -> Series:
    """Return the speed at each count, without those that span a pause: printed speeds omit pauses, too."""
    pairs = pairwise(zip(marks.times, marks.values, strict=True))
    speeds = [(t, (v - before) / (t - at)) for (at, before), (t, v) in pairs if t > at and v > before]
    steady: list[tuple[float, float]] = []
    for first in range(0, len(speeds), _NEAR):
        near = speeds[first : first + _NEAR]
        least = median(speed for _, speed in near) / _PAUSE
        steady += [point for point in near if point[1] >= least]
    return Series("steps/s", tuple(time for time, _ in steady), tuple(speed for _, speed in steady))


def mean_speed(speeds: Sequence[float]) -> float:
    """Return the speed over all of the work: slow steps in bursts count as long as they take."""
    positive = [speed for speed in speeds if speed > 0]
    return 1 / fmean(1 / speed for speed in positive) if positive else 0.0
