"""Fold answers of the metrics route into one snapshot of all nodes.

Answers may overlap, be unordered, or have samples denser than wanted, because a server may ignore the
interval; these are reduced. Nodes whose samples did not change stay the same objects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from api_client.models.metrics import JobMetrics, MetricSample, NodeSeries, StorageMetrics
from tui.analysis.series import EMPTY, Series, SeriesBuffer
from tui.text.names import natural_key

Point = tuple[float, float | None]

_REGULAR = 0.75  # Samples at this fraction of the requested interval or more count as requested.


def resample(points: Sequence[Point], step_s: float) -> Sequence[Point]:
    """Return the points (in time order) reduced to at most one per step on average; unchanged if sparser.

    Each part of two steps is reduced to its extremes. Parts are aligned to a fixed grid, so that
    overlapping responses are reduced alike. A gap within a part is lost; a gap as long as a part stays.
    """
    width_s = 2 * step_s
    if step_s <= 0 or not _is_dense(points, step_s):
        return points
    points = tuple(dict(points).items())  # The last value for a time wins.
    if not _is_dense(points, step_s):
        return points
    parts: dict[int, list[Point]] = {}
    for point in points:
        parts.setdefault(int(point[0] // width_s), []).append(point)
    newest = points[-1][0]
    points_kept: dict[float, float | None] = {}
    for number, part in parts.items():
        # Their exact times are lost; regular spacing avoids false gaps.
        for half, value in enumerate(_extremes([value for _, value in part])):
            points_kept[min(newest, (number + (2 * half + 1) / 4) * width_s)] = value
    return tuple(points_kept.items())


def _is_dense(points: Sequence[Point], step_s: float) -> bool:
    return len(points) > 2 and points[-1][0] - points[0][0] < _REGULAR * (len(points) - 1) * step_s


def _extremes(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    measured = [value for value in values if value is not None and value == value]
    if not measured:
        return (None, None)
    low, high = min(measured), max(measured)
    return (low, high) if measured.index(low) <= measured.index(high) else (high, low)


LEADER = "leader"
"""Name for a node that the API leaves unnamed."""

MAX_POINTS = 1500
"""Maximum number of samples kept per series."""

FRESH_S = 90.0
"""A series without a sample for this long, while others have some, has no current value."""

FRESH_STEPS = 4.0
"""The same limit in the series' own sampling intervals; the longer of the two applies."""

ALIGNED_S = 10.0
"""GPUs sampled within this time of each other are averaged as one sample."""


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

    def node(self, name: str) -> NodeSnapshot | None:
        return next((node for node in self.nodes if node.name == name), None)


class MetricsFold:
    """Accumulates responses of the metrics route, which may overlap, be unordered, and change their nodes.

    A node whose samples did not change is the same object in the next snapshot; a node that disappeared
    keeps its history but has no current values. Samples denser than wanted are reduced to their extremes
    (``resample``), or to one of each step with ``thins``.
    """

    def __init__(self, *, max_points: int = MAX_POINTS, thins: bool = False) -> None:
        self._max_points = max_points
        self._thins = thins
        self._nodes: dict[str, _Node] = {}
        self._cache = _Storage("cache", max_points)
        self._snapshot = MetricsSnapshot()

    @property
    def snapshot(self) -> MetricsSnapshot:
        return self._snapshot

    def fold(self, metrics: JobMetrics, step_s: float = 0.0, since_s: float = 0.0) -> MetricsSnapshot:
        """Add a response, about one sample each ``step_s``. Return the new snapshot, or the same one.

        Samples before ``since_s`` (epoch seconds) are left out.
        """
        taking = Taking(step_s, since_s, self._thins)
        changed = False
        if metrics.per_node_metrics:
            # The top-level series are the leader's: once nodes are named, they would show it twice.
            changed = self._nodes.pop(LEADER, None) is not None
            for named in metrics.per_node_metrics:
                changed |= self._node(named.node_id).take(named.metrics, taking)
        elif set(self._nodes) <= {LEADER} and _has_samples(metrics):
            changed = self._node(LEADER).take(metrics, taking)
        changed |= self._cache.take(metrics.cache, taking)
        if changed:
            self._snapshot = self._build()
        return self._snapshot

    def _node(self, name: str) -> _Node:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = _Node(name, self._max_points)
        return node

    def _build(self) -> MetricsSnapshot:
        newest = [node.newest for node in self._nodes.values() if node.newest is not None]
        at = max(newest, default=self._cache.usage.newest)
        nodes = tuple(self._nodes[name].snapshot(at) for name in sorted(self._nodes, key=natural_key))
        return MetricsSnapshot(
            nodes=nodes,
            cache_usage=self._cache.usage.snapshot(),
            cache_utilization=self._cache.utilization.snapshot(),
            cache_usage_now=value_now(self._cache.usage.snapshot(), at),
            cache_utilization_now=value_now(self._cache.utilization.snapshot(), at),
            at=at,
            step_s=_newest_step_s(nodes),
        )


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
    if age_s > FRESH_S:
        usual_s = series.times[-1] - series.times[-2] if len(series) > 1 else 0.0
        if age_s > FRESH_STEPS * usual_s:
            return None
    return value


def mean_known(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None


@dataclass(frozen=True, slots=True)
class Taking:
    """Adds the samples of a response to buffers."""

    step_s: float
    since_s: float
    thins: bool

    def take(self, buffer: SeriesBuffer, samples: Iterable[MetricSample]) -> list[float]:
        """Add the samples to a buffer. Return the times that changed."""
        points = [(sample.timestamp.timestamp(), sample.value) for sample in samples]
        points.sort(key=_time_of)  # The sort is stable: the last value for a repeated time wins.
        points = points[bisect_left(points, self.since_s, key=_time_of) :]
        if self.thins:
            return buffer.extend(points, apart_s=self.step_s)
        return buffer.extend(resample(points, self.step_s))


def _time_of(point: tuple[float, float | None]) -> float:
    return point[0]


def _has_samples(series: NodeSeries) -> bool:
    storage = series.ephemeral_storage
    return bool(
        series.gpu_utilization
        or series.gpu_memory_usage_bytes
        or series.cpu_usage
        or series.cpu_memory_usage_bytes
        or (storage is not None and (storage.usage_bytes or storage.utilization))
    )


class _Storage:
    """The two series of a volume."""

    def __init__(self, name: str, max_points: int) -> None:
        self.usage = SeriesBuffer(f"{name} usage", max_points=max_points)
        self.utilization = SeriesBuffer(f"{name} utilization", max_points=max_points)

    def take(self, storage: StorageMetrics | None, taking: Taking) -> bool:
        if storage is None:
            return False
        usage = taking.take(self.usage, storage.usage_bytes)
        utilization = taking.take(self.utilization, storage.utilization)
        return bool(usage or utilization)


class _Gpus:
    """A single metric of every GPU of a node, and its mean."""

    def __init__(self, name: str, max_points: int) -> None:
        self._max_points = max_points
        self.buffers: dict[str, SeriesBuffer] = {}
        self.mean = SeriesBuffer(name, max_points=max_points)

    def take(self, series: Mapping[str, list[MetricSample]], taking: Taking) -> bool:
        changed: set[float] = set()
        for gpu, samples in series.items():
            buffer = self.buffers.get(gpu)
            if buffer is None:
                buffer = self.buffers[gpu] = SeriesBuffer(f"GPU {gpu}", max_points=self._max_points)
            changed.update(taking.take(buffer, samples))
        for time in sorted(changed):
            self.mean.add(
                time, mean_known(buffer.value_near(time, ALIGNED_S) for buffer in self.buffers.values())
            )
        return bool(changed)

    def shown(self, names: Iterable[str]) -> tuple[Series, ...]:
        """Return the series of these GPUs; an empty one for a GPU without this metric."""
        return tuple(
            self.buffers[name].snapshot() if name in self.buffers else Series(f"GPU {name}") for name in names
        )


class _Node:
    def __init__(self, name: str, max_points: int) -> None:
        self._name = name
        self._utilization = _Gpus("utilization", max_points)
        self._memory = _Gpus("memory", max_points)
        self._cpu = SeriesBuffer("cpu", max_points=max_points)
        self._cpu_memory = SeriesBuffer("cpu memory", max_points=max_points)
        self._disk = _Storage("disk", max_points)
        self._snapshot: NodeSnapshot | None = None
        self.newest: float | None = None

    def take(self, series: NodeSeries, taking: Taking) -> bool:
        changed = self._utilization.take(series.gpu_utilization, taking)
        changed |= self._memory.take(series.gpu_memory_usage_bytes, taking)
        changed |= bool(taking.take(self._cpu, series.cpu_usage))
        changed |= bool(taking.take(self._cpu_memory, series.cpu_memory_usage_bytes))
        changed |= self._disk.take(series.ephemeral_storage, taking)
        if changed:
            self._snapshot = None
            buffers = (*self._utilization.buffers.values(), *self._memory.buffers.values(), self._cpu,
                       self._cpu_memory, self._disk.usage, self._disk.utilization)  # fmt: skip
            self.newest = max((b.newest for b in buffers if b.newest is not None), default=None)
        return changed

    def snapshot(self, at: float | None) -> NodeSnapshot:
        """Return the node as of ``at``; the same object until its samples or its current values change."""
        fresh = self._build(at)
        if self._snapshot is None or fresh != self._snapshot:
            self._snapshot = fresh
        return self._snapshot

    def _build(self, at: float | None) -> NodeSnapshot:
        gpus = tuple(sorted({*self._utilization.buffers, *self._memory.buffers}, key=natural_key))
        utilization, memory = self._utilization.shown(gpus), self._memory.shown(gpus)
        cpu, cpu_memory = self._cpu.snapshot(), self._cpu_memory.snapshot()
        disk_usage, disk_utilization = self._disk.usage.snapshot(), self._disk.utilization.snapshot()
        utilization_now = tuple(value_now(series, at) for series in utilization)
        memory_now = tuple(value_now(series, at) for series in memory)
        return NodeSnapshot(
            name=self._name,
            gpus=gpus,
            gpu_utilization=utilization,
            gpu_memory=memory,
            mean_utilization=self._utilization.mean.snapshot(),
            mean_memory=self._memory.mean.snapshot(),
            cpu=cpu,
            cpu_memory=cpu_memory,
            disk_usage=disk_usage,
            disk_utilization=disk_utilization,
            gpu_utilization_now=utilization_now,
            gpu_memory_now=memory_now,
            mean_utilization_now=mean_known(utilization_now),
            mean_memory_now=mean_known(memory_now),
            cpu_now=value_now(cpu, at),
            cpu_memory_now=value_now(cpu_memory, at),
            disk_usage_now=value_now(disk_usage, at),
            disk_utilization_now=value_now(disk_utilization, at),
        )
