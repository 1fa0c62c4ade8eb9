"""The curves of what else a trainer prints: rewards, KL, accuracy, each under its own name.

Like the loss, a metric is shown as one stream of lines printed it: several ranks often print the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tui.analysis.progress.snapshot import ProgressSnapshot, ThinnedPoints
from tui.analysis.series import Series

StreamKey = tuple[str, int]
"""A replica, and the rank within it."""

MAX_METRICS = 200
"""Names of a run that get a curve; the first ones printed do."""

MAX_CURVES = 1_000
"""Curves of all streams together, so that 64 nodes that print the same don't take the memory of 64 runs."""


class MetricCurves:
    """The bounded curves of a run by stream and name; a full curve is thinned, but keeps its extremes."""

    def __init__(self, max_points: int, *, max_total_points: int = 1_000_000) -> None:
        self._max_points = max_points
        self._max_total_points = max_total_points  # of all curves together, about 60 MB
        self._curves: dict[StreamKey, dict[str, ThinnedPoints]] = {}
        self._names: set[str] = set()
        self._count = 0
        self._refused: set[int] = set()  # hashes: the names may be long

    @property
    def refused_count(self) -> int:
        """Number of names without a curve because there are too many; counted up to ``MAX_CURVES``."""
        return len(self._refused)

    def add(self, stream: StreamKey, time: float, metrics: Iterable[tuple[str, float]]) -> None:
        """Add what a line reports at a time (epoch seconds)."""
        curves = self._curves.setdefault(stream, {}) if self._count < MAX_CURVES else self._curves.get(stream)
        for name, value in metrics:
            points = None if curves is None else curves.get(name) or self._begin(curves, name)
            if points is not None:
                points.add(time, value)

    def shown(self, stream: StreamKey | None) -> Mapping[str, Series]:
        """Return the curves by name, as a stream printed them, or else the stream with the most points."""
        longest: dict[str, ThinnedPoints] = {}
        for curves in self._curves.values():
            for name, points in curves.items():
                if name not in longest or len(points) > len(longest[name]):
                    longest[name] = points
        if stream is not None:
            longest |= self._curves.get(stream, {})
        return {name: longest[name].series() for name in sorted(longest)}

    def _begin(self, curves: dict[str, ThinnedPoints], name: str) -> ThinnedPoints | None:
        if name not in self._names and len(self._names) >= MAX_METRICS:
            if len(self._refused) < MAX_CURVES:
                self._refused.add(hash(name))
            return None
        if self._count >= MAX_CURVES:
            return None
        self._names.add(name)
        self._count += 1
        points = curves[name] = ThinnedPoints(name, self._max_points)
        limit = min(self._max_points, self._max_total_points // self._count)
        for other in (one for of_stream in self._curves.values() for one in of_stream.values()):
            other.limit = limit
        return points


class Curve(NamedTuple):
    """A curve with its name and the unit of its values."""

    name: str
    unit: str
    series: Series


def curves_of(progress: ProgressSnapshot) -> list[Curve]:
    """Return the curves of a run that have points: those with a meaning first, then by name."""
    curves = [
        Curve("loss", "", progress.loss_series),
        Curve("eval_loss", "", progress.eval_loss_series),
        Curve("learning_rate", "", progress.learning_rate_series),
        Curve("grad_norm", "", progress.grad_norm_series),
        Curve("tokens_per_s", "tok/s", progress.tokens_per_s_series),
        Curve("samples_per_s", "samples/s", progress.samples_per_s_series),
        Curve("steps_per_s", "it/s", progress.rate_series),
        *(Curve(name, "", series) for name, series in progress.metrics.items()),
    ]
    return [curve for curve in curves if len(curve.series)]
