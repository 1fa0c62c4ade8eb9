"""The metrics of a recording: one object per node and time, read block by block as it is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from api_client.models import JobMetrics, MetricSample, NodeMetrics, NodeSeries, StorageMetrics, TrainingJob
from api_client.models.base import FIRST_MOMENT, LAST_MOMENT
from api_client.recordings.archive import DamagedMember, Members
from api_client.recordings.blocks import METRICS, Blocks
from api_client.recordings.stamps import moment_at, stamp_of

NS_PER_S = 1_000_000_000
MAX_VALUE = 2.0**63
"""No usage in cores or bytes reaches it."""
MAX_SERIES, MAX_SAMPLES = 20_000, 500_000
"""Maximum size of an answer: 512 nodes with 16 GPUs have fewer series, and an hour of them fewer samples."""
NODE_VALUES = ("cpu_usage", "cpu_memory_usage_bytes")
GPU_VALUES = ("gpu_utilization", "gpu_memory_usage_bytes")
STORAGE_VALUES = ("usage_bytes", "utilization")


class _Row(NamedTuple):
    time_ns: int
    moment: datetime
    values: dict[str, Any]


Storage = dict[str, list[MetricSample]]


class _Full(Exception):
    """An answer has ``MAX_SAMPLES``."""


@dataclass
class _Size:
    """Number of series and samples in an answer."""

    series: int = 0
    samples: int = 0


@dataclass
class _RecordedNode:
    """The samples of a node, or of the cache, while they are collected."""

    size: _Size
    plain: Storage = field(default_factory=lambda: {name: [] for name in NODE_VALUES})
    gpus: dict[str, Storage] = field(default_factory=lambda: {name: {} for name in GPU_VALUES})
    storage: Storage = field(default_factory=lambda: {name: [] for name in STORAGE_VALUES})
    last_slot: int = -1

    def take(self, row: _Row) -> None:
        for name, samples in self.plain.items():
            self._take(samples, row, row.values.get(name))
        for name, by_gpu in self.gpus.items():
            values = row.values.get(name)
            for gpu, value in values.items() if isinstance(values, dict) else ():
                if gpu not in by_gpu and self.size.series < MAX_SERIES:
                    self.size.series += 1
                    by_gpu[gpu] = []
                self._take(by_gpu.get(gpu, []), row, value)
        stored = row.values.get("ephemeral_storage", row.values.get("cache"))
        for name, samples in self.storage.items():
            self._take(samples, row, stored.get(name) if isinstance(stored, dict) else None)

    def _take(self, samples: list[MetricSample], row: _Row, value: object) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_VALUE:
            self.size.samples += 1
            if self.size.samples > MAX_SAMPLES:
                raise _Full
            samples.append(MetricSample(row.moment, float(value)))

    def series(self) -> dict[str, Any]:
        return {**self.plain, **self.gpus, "ephemeral_storage": self.volume()}

    def volume(self) -> StorageMetrics:
        return StorageMetrics.model_construct(None, **self.storage)


class RecordedMetrics:
    """The samples of a recording."""

    def __init__(self, members: Members, begin_ns: int = 0) -> None:
        self.blocks = Blocks(members, METRICS, begin_ns)
        self._parsed = lru_cache(8)(self._parse)

    def select(
        self, start_ns: int, end_ns: int, *, step_s: int, job: TrainingJob | None = None
    ) -> JobMetrics:
        """Return the samples ``start_ns <= t <= end_ns``, at most one in ``step_s`` seconds.

        If that were more than ``MAX_SAMPLES``, the step is longer; of more than ``MAX_SERIES``, the first
        are returned.
        """
        while True:
            try:
                nodes, cache = self._collect(start_ns, end_ns, step_s * NS_PER_S)
                break
            except _Full:
                step_s *= 2
        leader = nodes.get(None) or next(iter(nodes.values()), _RecordedNode(_Size()))
        return JobMetrics.model_construct(
            **leader.series(),
            cache=None if cache is None else cache.volume(),
            training_job=job,
            per_node_metrics=[
                NodeMetrics.model_construct(
                    node_id=node_id, metrics=NodeSeries.model_construct(**node.series())
                )
                for node_id, node in nodes.items()
                if node_id is not None
            ],
        )

    def _collect(
        self, start_ns: int, end_ns: int, step_ns: int
    ) -> tuple[dict[str | None, _RecordedNode], _RecordedNode | None]:
        nodes: dict[str | None, _RecordedNode] = {}
        cache: _RecordedNode | None = None
        size = _Size()
        for number, block in enumerate(self.blocks.items):
            if block.first_ns > end_ns or block.last_ns < start_ns:
                continue
            for row in self._parsed(number):
                if not start_ns <= row.time_ns <= end_ns:
                    continue
                if "cache" in row.values:
                    node = cache = cache or _RecordedNode(size)
                else:
                    node_id = row.values.get("node_id")
                    node_id = node_id if isinstance(node_id, str) else None
                    if node_id not in nodes:
                        if size.series >= MAX_SERIES:
                            continue
                        size.series += len(NODE_VALUES) + len(STORAGE_VALUES)
                        nodes[node_id] = _RecordedNode(size)
                    node = nodes[node_id]
                slot = row.time_ns // step_ns
                if slot != node.last_slot:
                    node.last_slot = slot
                    node.take(row)
        return nodes, cache

    def _parse(self, number: int) -> list[_Row]:
        try:
            values = self.blocks.values(self.blocks.items[number])
        except DamagedMember:
            return []
        return sorted(_rows(values), key=lambda row: row.time_ns)


def _rows(values: Iterable[Any]) -> Iterator[_Row]:
    for value in values:
        time_ns = stamp_of(value.get("timestamp")) if isinstance(value, dict) else None
        if time_ns is not None:
            yield _Row(time_ns, moment_at(time_ns), value)


def rows_of(
    answer: JobMetrics, start: datetime = FIRST_MOMENT, end: datetime = LAST_MOMENT
) -> list[dict[str, Any]]:
    """Return the samples ``start <= t < end`` of an answer as the objects of a recording, in order."""
    rows: dict[tuple[datetime, str, bool], dict[str, Any]] = {}

    def add(samples: list[MetricSample], node: Mapping[str, Any], *path: str) -> None:
        for sample in samples:
            if sample.value is None or not start <= sample.timestamp < end:
                continue
            key = (sample.timestamp, node.get("node_id", ""), "cache" in path)
            row = rows.setdefault(key, {"timestamp": _iso(sample.timestamp), **node})
            for name in path[:-1]:
                row = row.setdefault(name, {})
            row[path[-1]] = sample.value

    def add_storage(storage: StorageMetrics | None, node: Mapping[str, Any], name: str) -> None:
        if storage is not None:
            add(storage.usage_bytes, node, name, "usage_bytes")
            add(storage.utilization, node, name, "utilization")

    named: list[tuple[Mapping[str, Any], NodeSeries]] = [
        ({"node_id": node_metrics.node_id}, node_metrics.metrics) for node_metrics in answer.per_node_metrics
    ]
    for node, series in named or [({}, answer)]:
        for gpu, samples in series.gpu_utilization.items():
            add(samples, node, "gpu_utilization", gpu)
        for gpu, samples in series.gpu_memory_usage_bytes.items():
            add(samples, node, "gpu_memory_usage_bytes", gpu)
        add(series.cpu_usage, node, "cpu_usage")
        add(series.cpu_memory_usage_bytes, node, "cpu_memory_usage_bytes")
        add_storage(series.ephemeral_storage, node, "ephemeral_storage")
    add_storage(answer.cache, {}, "cache")
    return [rows[key] for key in sorted(rows)]


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
