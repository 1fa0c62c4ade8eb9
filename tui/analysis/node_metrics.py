"""Fold responses of the metrics route into one snapshot of all nodes.

Responses may overlap or be unordered. A server may ignore the requested interval and return more samples;
these are reduced. Nodes whose samples did not change stay the same objects, so that readers can skip them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from operator import itemgetter
from typing import Any, TypeVar

from api_client.models.metrics import (
    JobMetrics,
    MetricSample,
    NodeSeries,
    SeriesPath,
    metric_and_gpu,
    series_of,
    storage_series,
)
from tui.analysis.series import EMPTY, Series, SeriesBuffer
from tui.text.names import natural_key

Point = tuple[float, float | None]


def resample(points: Sequence[Point], step_s: float) -> Sequence[Point]:
    """Reduce points (in time order) to at most one per step on average; sparser points are not changed.

    Each window of two steps is reduced to its lowest and highest value. Windows are aligned to the epoch, so
    that overlapping responses are reduced alike. A gap shorter than a window is lost.
    """
    width_s = 2 * step_s
    if step_s <= 0 or not _is_dense(points, step_s):
        return points
    points = tuple(dict(points).items())  # The last value for a time wins.
    if not _is_dense(points, step_s):
        return points
    windows: dict[int, list[Point]] = {}
    for point in points:
        windows.setdefault(int(point[0] // width_s), []).append(point)
    newest_time = points[-1][0]
    reduced: dict[float, float | None] = {}
    for window, window_points in windows.items():
        # Evenly spaced times, because the times of the extremes would be so uneven that gaps appear.
        for half, value in enumerate(_extremes([value for _, value in window_points])):
            reduced[min(newest_time, (window + (2 * half + 1) / 4) * width_s)] = value
    return tuple(reduced.items())


def _is_dense(points: Sequence[Point], step_s: float) -> bool:
    return len(points) > 2 and points[-1][0] - points[0][0] < 0.75 * (len(points) - 1) * step_s


def _extremes(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    measured = [value for value in values if value is not None and value == value]
    if not measured:
        return (None, None)
    low, high = min(measured), max(measured)
    return (low, high) if measured.index(low) <= measured.index(high) else (high, low)


LEADER = "leader"
"""Name for a node that the API leaves unnamed."""

MAX_POINTS = 1500
"""Maximum number of samples per series; the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """A node: its series, and its current values (``None`` without a recent sample).

    Tuples have an item for each GPU, in the order of ``gpus``, the names of the GPUs' ranks. Utilizations are
    fractions 0–1; CPU usage is in cores, memory and disk usage in bytes.
    """

    name: str
    gpus: tuple[str, ...] = ()
    gpu_utilization: tuple[Series, ...] = ()
    gpu_memory: tuple[Series, ...] = ()
    mean_utilization: Series = EMPTY
    mean_memory: Series = EMPTY
    cpu: Series = EMPTY
    cpu_memory: Series = EMPTY
    disk_usage: Series = EMPTY
    disk_utilization: Series = EMPTY
    gpu_utilization_now: tuple[float | None, ...] = ()
    gpu_memory_now: tuple[float | None, ...] = ()
    mean_utilization_now: float | None = None
    mean_memory_now: float | None = None
    cpu_now: float | None = None
    cpu_memory_now: float | None = None
    disk_usage_now: float | None = None
    disk_utilization_now: float | None = None


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """The metrics of all nodes, in the natural order of their names, and of the job's cache.

    ``at`` is the time of the newest sample (epoch s), ``step_s`` the interval between the newest samples.
    """

    nodes: tuple[NodeSnapshot, ...] = ()
    cache_usage: Series = EMPTY
    cache_utilization: Series = EMPTY
    cache_usage_now: float | None = None
    cache_utilization_now: float | None = None
    at: float | None = None
    step_s: float = 0.0

    @property
    def began(self) -> float | None:
        """The time of the oldest sample of GPU utilization, CPU or memory, of any node (epoch s)."""
        curves = (
            curve for node in self.nodes for curve in (node.mean_utilization, node.cpu, node.cpu_memory)
        )
        return min((curve.times[0] for curve in curves if curve.times), default=None)


class MetricsFold:
    """Accumulates responses of the metrics route, which may overlap, be unordered, and change their nodes.

    A node whose samples did not change is the same object in the next snapshot. A node that is missing in new
    responses keeps its history but has no current values. Samples denser than requested are reduced to their
    extremes (``resample``), or with ``keeps_first_per_step`` to the first of each step.
    """

    def __init__(self, *, max_points: int = MAX_POINTS, keeps_first_per_step: bool = False) -> None:
        self._max_points = max_points
        self._keeps_first_per_step = keeps_first_per_step
        self._nodes: dict[str, _SeriesBuffers] = {}
        self._cache = _SeriesBuffers(max_points, keeps_first_per_step)
        self._snapshot = MetricsSnapshot()
        self._has_changed = False

    @property
    def snapshot(self) -> MetricsSnapshot:
        """The snapshot that ``make_snapshot`` returned last."""
        return self._snapshot

    def fold(self, metrics: JobMetrics, step_s: float = 0.0) -> MetricsSnapshot:
        """Add a response with about one sample per ``step_s``; return the snapshot."""
        self.add(metrics, step_s)
        return self.make_snapshot()

    def add(self, metrics: JobMetrics, step_s: float = 0.0) -> None:
        """Add a response without making a snapshot, so that many responses need only one."""
        nodes: list[tuple[str, NodeSeries]] = [
            (node_metrics.node_id, node_metrics.metrics) for node_metrics in metrics.per_node_metrics
        ]
        # The top-level series are the leader's; once nodes are named, they duplicate the series of a node.
        changed = bool(nodes) and self._nodes.pop(LEADER, None) is not None
        if not nodes and set(self._nodes) <= {LEADER} and any(samples for _, samples in series_of(metrics)):
            nodes = [(LEADER, metrics)]
        for name, series in nodes:
            if name not in self._nodes:
                self._nodes[name] = _SeriesBuffers(self._max_points, self._keeps_first_per_step)
            changed |= self._nodes[name].add(series_of(series), step_s)
        changed |= self._cache.add(storage_series("cache", metrics.cache), step_s)
        self._has_changed |= changed

    def make_snapshot(self) -> MetricsSnapshot:
        """Return a snapshot of all added samples; the same object if nothing changed."""
        if self._has_changed:
            self._has_changed = False
            times = [
                buffers.newest_time for buffers in self._nodes.values() if buffers.newest_time is not None
            ]
            at = max(times, default=self._cache.newest_time)
            names = sorted(self._nodes, key=natural_key)
            snapshots = tuple(self._nodes[name].snapshot(name, at) for name in names)
            usage, utilization = (
                self._cache.series("cache_usage_bytes"),
                self._cache.series("cache_utilization"),
            )
            self._snapshot = MetricsSnapshot(
                nodes=snapshots,
                cache_usage=usage,
                cache_utilization=utilization,
                cache_usage_now=value_now(usage, at),
                cache_utilization_now=value_now(utilization, at),
                at=at,
                step_s=_newest_step_s(snapshots),
            )
        return self._snapshot


def _newest_step_s(nodes: Iterable[NodeSnapshot]) -> float:
    for node in nodes:
        for series in (node.mean_utilization, node.cpu, node.cpu_memory):
            if len(series) > 1:
                return series.times[-1] - series.times[-2]
    return 0.0


def value_now(series: Series, at: float | None) -> float | None:
    """Return the newest value; None if at ``at`` (epoch seconds) it is too old to be current."""
    if at is None or not series.times:
        return None
    value = series.values[-1]
    if value != value:
        return None
    age_s = at - series.times[-1]
    if age_s > 90.0:
        interval_s = series.times[-1] - series.times[-2] if len(series) > 1 else 0.0
        # the newest sample of a rarely sampled series may be older
        if age_s > 4.0 * interval_s:
            return None
    return value


def _with_values_now(node: NodeSnapshot, at: float | None) -> NodeSnapshot:
    utilization_now = tuple(value_now(series, at) for series in node.gpu_utilization)
    memory_now = tuple(value_now(series, at) for series in node.gpu_memory)
    return replace(
        node,
        gpu_utilization_now=utilization_now,
        gpu_memory_now=memory_now,
        mean_utilization_now=mean_known(utilization_now),
        mean_memory_now=mean_known(memory_now),
        cpu_now=value_now(node.cpu, at),
        cpu_memory_now=value_now(node.cpu_memory, at),
        disk_usage_now=value_now(node.disk_usage, at),
        disk_utilization_now=value_now(node.disk_utilization, at),
    )


def metrics_until(metrics: MetricsSnapshot, time: float) -> MetricsSnapshot:
    """Return the samples up to ``time``, with the current values as of the newest of these samples."""
    shortened = _samples_until(metrics, time)
    nodes = [_samples_until(node, time) for node in metrics.nodes]
    nodes = [node for node in nodes if node.mean_utilization.times or node.cpu.times]
    series = [line for node in nodes for line in (node.mean_utilization, node.cpu)] or [shortened.cache_usage]
    at = max((line.times[-1] for line in series if line.times), default=None)
    return replace(
        shortened,
        nodes=tuple(_with_values_now(node, at) for node in nodes),
        cache_usage_now=value_now(shortened.cache_usage, at),
        cache_utilization_now=value_now(shortened.cache_utilization, at),
        at=at,
        step_s=_newest_step_s(nodes),
    )


Samples = TypeVar("Samples", NodeSnapshot, MetricsSnapshot)


def _samples_until(samples: Samples, time: float) -> Samples:
    changes: dict[str, Any] = {}
    for field in fields(samples):
        match getattr(samples, field.name):
            case Series() as series:
                changes[field.name] = series.until(time)
            case (Series(), *_) as all_series:
                changes[field.name] = tuple(series.until(time) for series in all_series)
    return replace(samples, **changes)


def mean_known(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None


_CURVE_NAMES = {
    "gpu_utilization": "utilization",
    "gpu_memory_usage_bytes": "memory",
    "cpu_usage": "cpu",
    "cpu_memory_usage_bytes": "cpu memory",
    "ephemeral_storage_usage_bytes": "disk usage",
    "ephemeral_storage_utilization": "disk utilization",
    "cache_usage_bytes": "cache usage",
    "cache_utilization": "cache utilization",
}
"""Names of the curves by the API's name of the metric."""

_Series = Iterable[tuple[SeriesPath, list[MetricSample]]]


class _SeriesBuffers:
    """The series of a node, or of the cache, by metric and GPU.

    The GPU is empty for series of the whole node, such as the mean of its GPUs.
    """

    def __init__(self, max_points: int, keeps_first_per_step: bool) -> None:
        self._max_points = max_points
        self._keeps_first_per_step = keeps_first_per_step
        self._buffers: dict[tuple[str, str], SeriesBuffer] = {}
        self._snapshot: NodeSnapshot | None = None
        self.newest_time: float | None = None

    def _buffer(self, metric: str, gpu: str) -> SeriesBuffer:
        buffer = self._buffers.get((metric, gpu))
        if buffer is None:
            name = f"GPU {gpu}" if gpu else _CURVE_NAMES[metric]
            buffer = self._buffers[metric, gpu] = SeriesBuffer(name, max_points=self._max_points)
        return buffer

    def add(self, all_series: _Series, step_s: float) -> bool:
        """Add samples, reduced if they are denser than ``step_s``; return True if any series changed."""
        changed, changed_times_by_metric = False, defaultdict[str, set[float]](set)
        for path, samples in all_series:
            metric, gpu = metric_and_gpu(path)
            points = [(sample.timestamp.timestamp(), sample.value) for sample in samples]
            points.sort(key=itemgetter(0))  # The sort is stable: the last value for a repeated time wins.
            buffer = self._buffer(metric, gpu)
            if self._keeps_first_per_step:
                times = buffer.extend(points, min_interval_s=step_s)
            else:
                times = buffer.extend(resample(points, step_s))
            changed |= bool(times)
            if gpu:
                changed_times_by_metric[metric].update(times)
        for metric, changed_times in changed_times_by_metric.items():
            gpus = [buffer for (name, gpu), buffer in self._buffers.items() if name == metric and gpu]
            mean = self._buffer(metric, "")
            for time in sorted(changed_times):
                # GPUs sampled within 10 s of each other are averaged as one sample
                mean.add(time, mean_known(buffer.value_near(time, 10.0) for buffer in gpus))
        if changed:
            ends = (buffer.newest for buffer in self._buffers.values())
            self.newest_time = max((end for end in ends if end is not None), default=None)
        return changed

    def series(self, metric: str, gpu: str = "") -> Series:
        """Return the series of a metric; empty if there are no samples."""
        return self._buffer(metric, gpu).snapshot()

    def snapshot(self, name: str, at: float | None) -> NodeSnapshot:
        """Return the node with its current values at ``at``; the same object if nothing changed."""
        gpus = tuple(sorted({gpu for _, gpu in self._buffers if gpu}, key=natural_key))
        utilization = tuple(self.series("gpu_utilization", gpu) for gpu in gpus)
        memory = tuple(self.series("gpu_memory_usage_bytes", gpu) for gpu in gpus)
        node = NodeSnapshot(
            name=name,
            gpus=gpus,
            gpu_utilization=utilization,
            gpu_memory=memory,
            mean_utilization=self.series("gpu_utilization"),
            mean_memory=self.series("gpu_memory_usage_bytes"),
            cpu=self.series("cpu_usage"),
            cpu_memory=self.series("cpu_memory_usage_bytes"),
            disk_usage=self.series("ephemeral_storage_usage_bytes"),
            disk_utilization=self.series("ephemeral_storage_utilization"),
        )
        node = _with_values_now(node, at)
        if node != self._snapshot:
            self._snapshot = node
        return self._snapshot
