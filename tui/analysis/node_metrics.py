"""Fold answers of the metrics route into one snapshot of all nodes.

Answers may overlap and be unordered. Nodes whose samples did not change stay the same objects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from operator import itemgetter
from typing import Any, TypeVar

from api_client.models.metrics import (
    JobMetrics,
    metric_and_gpu,
    series_of,
    storage_series,
)
from tui.analysis.series import EMPTY, Series, SeriesBuffer
from tui.text.names import natural_key

LEADER = "leader"
"""Name for a node that the API leaves unnamed."""

MAX_POINTS = 1500
"""Maximum number of samples kept per series."""


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """A node: its series, and its current values (``None`` if none is recent).

    GPU tuples are in the order of GPU ranks, whose names are in ``gpus``. Utilizations are fractions 0–1,
    CPU use is in cores, memory and disk use in bytes.
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
    """All nodes in natural order, the job's cache, and ``at``, the time of the newest sample (epoch s).

    ``step_s`` is the interval between the newest samples.
    """

    nodes: tuple[NodeSnapshot, ...] = ()
    cache_usage: Series = EMPTY
    cache_utilization: Series = EMPTY
    cache_usage_now: float | None = None
    cache_utilization_now: float | None = None
    at: float | None = None
    step_s: float = 0.0


_NAMES = {
    "gpu_utilization": "utilization",
    "gpu_memory_usage_bytes": "memory",
    "cpu_usage": "cpu",
    "cpu_memory_usage_bytes": "cpu memory",
    "ephemeral_storage_usage_bytes": "disk usage",
    "ephemeral_storage_utilization": "disk utilization",
    "cache_usage_bytes": "cache usage",
    "cache_utilization": "cache utilization",
}
"""What the charts call the metrics."""

_Buffers = dict[tuple[str, str], SeriesBuffer]
"""The series of a node, or of the cache, by metric and GPU; without a GPU also the GPUs' mean."""


class MetricsFold:
    """Accumulates responses of the metrics route, which may overlap, be unordered, and change their nodes.

    A node whose samples did not change is the same object in the next snapshot; a node that disappeared
    keeps its history but has no current values.
    """

    def __init__(self, *, max_points: int = MAX_POINTS) -> None:
        self._max_points = max_points
        self._nodes: dict[str, _Buffers] = {}
        self._cache: _Buffers = {}
        self._is_changed = False
        self.snapshot = MetricsSnapshot()
        """The last snapshot that was made."""

    def fold(self, metrics: JobMetrics, step_s: float = 0.0) -> MetricsSnapshot:
        """Add a response. Return the new snapshot, or the same one; see ``add``."""
        self.add(metrics, step_s)
        return self.make_snapshot()

    def add(self, metrics: JobMetrics, step_s: float = 0.0) -> None:
        """Add a response without making a snapshot: one for each part of a long range would take longer.

        Of its samples, those are left out that are denser than ``step_s`` with what is known: samples of
        overlapping answers may lie between each other.
        """
        nodes = [(named.node_id, series_of(named.metrics)) for named in metrics.per_node_metrics]
        if nodes:
            # The top-level series are the leader's: once nodes are named, they would show it twice.
            self._is_changed |= self._nodes.pop(LEADER, None) is not None
        elif self._nodes.keys() <= {LEADER} and any(samples for _, samples in series_of(metrics)):
            nodes = [(LEADER, series_of(metrics))]
        parts = [(self._nodes.setdefault(name, {}), all_series) for name, all_series in nodes]
        for buffers, all_series in [*parts, (self._cache, storage_series("cache", metrics.cache))]:
            changed = defaultdict[str, set[float]](set)
            for path, samples in all_series:
                metric, gpu = metric_and_gpu(path)
                points = [(sample.timestamp.timestamp(), sample.value) for sample in samples]
                points.sort(key=itemgetter(0))  # The sort is stable: the last value for a repeated time wins.
                times = self._buffer(buffers, metric, gpu).extend(points, apart_s=step_s)
                self._is_changed |= bool(times)
                if gpu:
                    changed[metric].update(times)
            for metric, moved in changed.items():
                self._average(buffers, metric, moved)

    def _average(self, buffers: _Buffers, metric: str, times: Iterable[float]) -> None:
        gpus = [buffer for (name, gpu), buffer in buffers.items() if name == metric and gpu]
        mean = self._buffer(buffers, metric)
        for time in sorted(times):
            # GPUs sampled within 10 s of each other are averaged as one sample
            mean.add(time, mean_known(buffer.value_near(time, 10.0) for buffer in gpus))

    def _buffer(self, buffers: _Buffers, metric: str, gpu: str = "") -> SeriesBuffer:
        if (metric, gpu) not in buffers:
            name = f"GPU {gpu}" if gpu else _NAMES[metric]
            buffers[metric, gpu] = SeriesBuffer(name, max_points=self._max_points)
        return buffers[metric, gpu]

    def make_snapshot(self) -> MetricsSnapshot:
        """Return a snapshot of all that was added, the same one if nothing changed."""
        if self._is_changed:
            self._is_changed = False
            at = max(map(_newest, self._nodes.values()), default=0.0) or _newest(self._cache) or None
            names = sorted(self._nodes, key=natural_key)
            before = {node.name: node for node in self.snapshot.nodes}
            nodes = tuple(self._node(name, at, before.get(name)) for name in names)
            usage = self._buffer(self._cache, "cache_usage_bytes").snapshot()
            utilization = self._buffer(self._cache, "cache_utilization").snapshot()
            self.snapshot = MetricsSnapshot(
                nodes=nodes,
                cache_usage=usage,
                cache_utilization=utilization,
                cache_usage_now=value_now(usage, at),
                cache_utilization_now=value_now(utilization, at),
                at=at,
                step_s=_newest_step_s(nodes),
            )
        return self.snapshot

    def _node(self, name: str, at: float | None, before: NodeSnapshot | None) -> NodeSnapshot:
        """Return a node as of ``at``; the one before if its samples and its current values are the same."""
        buffers = self._nodes[name]

        def series(metric: str, gpu: str = "") -> Series:
            return self._buffer(buffers, metric, gpu).snapshot()

        gpus = tuple(sorted({gpu for _, gpu in buffers if gpu}, key=natural_key))
        node = NodeSnapshot(
            name=name,
            gpus=gpus,
            gpu_utilization=tuple(series("gpu_utilization", gpu) for gpu in gpus),
            gpu_memory=tuple(series("gpu_memory_usage_bytes", gpu) for gpu in gpus),
            mean_utilization=series("gpu_utilization"),
            mean_memory=series("gpu_memory_usage_bytes"),
            cpu=series("cpu_usage"),
            cpu_memory=series("cpu_memory_usage_bytes"),
            disk_usage=series("ephemeral_storage_usage_bytes"),
            disk_utilization=series("ephemeral_storage_utilization"),
        )
        node = _with_values_now(node, at)
        return before if before is not None and node == before else node


def _newest(buffers: _Buffers) -> float:
    """Return the time of the newest sample; 0 without any."""
    return max((buffer.newest or 0.0 for buffer in buffers.values()), default=0.0)


def _newest_step_s(nodes: Iterable[NodeSnapshot]) -> float:
    for node in nodes:
        for series in (node.mean_utilization, node.cpu, node.cpu_memory):
            if len(series) > 1:
                return series.times[-1] - series.times[-2]
    return 0.0


def value_now(series: Series, at: float | None) -> float | None:
    """Return the newest value, None if it is too old at ``at`` (epoch seconds) to be current."""
    if at is None or not series.times:
        return None
    value = series.values[-1]
    if value != value:
        return None
    age_s = at - series.times[-1]
    # no current value without recent samples, if other series have some
    if age_s > 90.0:
        usual_s = series.times[-1] - series.times[-2] if len(series) > 1 else 0.0
        # a series that is sampled rarely may be older
        if age_s > 4.0 * usual_s:
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
    """Return the samples until a time, and the values that were current at the last of them."""
    cut = _until(metrics, time)
    nodes = [_until(node, time) for node in metrics.nodes]
    nodes = [node for node in nodes if node.mean_utilization.times or node.cpu.times]
    series = [line for node in nodes for line in (node.mean_utilization, node.cpu)] or [cut.cache_usage]
    at = max((line.times[-1] for line in series if line.times), default=None)
    return replace(
        cut,
        nodes=tuple(_with_values_now(node, at) for node in nodes),
        cache_usage_now=value_now(cut.cache_usage, at),
        cache_utilization_now=value_now(cut.cache_utilization, at),
        at=at,
        step_s=_newest_step_s(nodes),
    )


Samples = TypeVar("Samples", NodeSnapshot, MetricsSnapshot)


def _until(samples: Samples, time: float) -> Samples:
    changes: dict[str, Any] = {}
    for field in fields(samples):
        match getattr(samples, field.name):
            case Series() as series:
                changes[field.name] = series.until(time)
            case (Series(), *_) as several:
                changes[field.name] = tuple(series.until(time) for series in several)
    return replace(samples, **changes)


def mean_known(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None
