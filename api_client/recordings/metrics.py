"""The metrics of a recording: one JSON object per node and time, read block by block on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any

from api_client.clock import utc_text
from api_client.models import JobMetrics, MetricSample, NodeMetrics, TrainingJob
from api_client.models.base import FIRST_MOMENT, LAST_MOMENT
from api_client.models.logs import NS_PER_S
from api_client.models.metrics import (
    GPU_VALUES,
    NODE_VALUES,
    STORAGE,
    SeriesPath,
    node_of,
    series_of,
    storage_of,
    storage_series,
)
from api_client.recordings.archive import DamagedMember, Members
from api_client.recordings.blocks import METRICS, Blocks, clamped_moment, stamp_of

MAX_NODES, MAX_GPUS, MAX_SAMPLES = 1_024, 64, 500_000
"""Limits of a response, larger than an hour of 512 nodes with 16 GPUs.

A response must fit one sample of each series of each node, or no step would be long enough.
"""
CACHE_KEY = "\0"
"""Key of the project's cache, in place of a node's id."""


Samples = dict[SeriesPath, list[MetricSample]]
"""Samples of a node by series. Samples of the cache have the paths of a node's storage."""


class RecordedMetrics:
    """The samples of a recording."""

    def __init__(self, members: Members, begin_ns: int = 0) -> None:
        self.blocks = Blocks(members, METRICS, begin_ns)
        self._cached_rows = lru_cache(8)(self._rows)

    def select(
        self, start_ns: int, end_ns: int, *, step_s: int, job: TrainingJob | None = None
    ) -> JobMetrics:
        """Return the samples ``start_ns <= t <= end_ns``, at most one per ``step_s`` seconds.

        If there would be more than ``MAX_SAMPLES``, the step is doubled. Of too many nodes or GPUs, only the
        first are returned.
        """
        while (samples_by_node := self._samples_by_node(start_ns, end_ns, step_s * NS_PER_S)) is None:
            step_s *= 2
        cache = samples_by_node.pop(CACHE_KEY, None)
        leader = samples_by_node.get("") or next(iter(samples_by_node.values()), {})
        return JobMetrics.model_construct(
            **dict(node_of(leader)),
            cache=None if cache is None else storage_of(cache, STORAGE),
            training_job=job,
            per_node_metrics=[
                NodeMetrics.model_construct(node_id=node_id, metrics=node_of(samples))
                for node_id, samples in samples_by_node.items()
                if node_id
            ],
        )

    def _samples_by_node(self, start_ns: int, end_ns: int, step_ns: int) -> dict[str, Samples] | None:
        """Return the samples by node; None if there are more than ``MAX_SAMPLES``."""
        nodes: dict[str, Samples] = {}
        latest_steps: dict[str, int] = {}
        count = 0
        for number, block in enumerate(self.blocks.items):
            if block.first_ns > end_ns or block.last_ns < start_ns:
                continue
            for time_ns, row in self._cached_rows(number):
                node_id, step = _node_of(row), time_ns // step_ns
                exceeds_nodes = node_id not in nodes and len(nodes) >= MAX_NODES
                if not start_ns <= time_ns <= end_ns or latest_steps.get(node_id) == step or exceeds_nodes:
                    continue
                latest_steps[node_id], samples = step, nodes.setdefault(node_id, {})
                moment = clamped_moment(time_ns)
                for key, value in _series_values(row):
                    samples.setdefault(key, []).append(MetricSample(moment, value))
                    count += 1
                if count > MAX_SAMPLES:
                    return None
        return nodes

    def _rows(self, number: int) -> list[tuple[int, dict[str, Any]]]:
        """Return a block's samples as stored, with their times, sorted by time."""
        try:
            values = [
                value for value in self.blocks.values(self.blocks.items[number]) if isinstance(value, dict)
            ]
        except DamagedMember:
            return []
        stamps = [(stamp_of(value.get("timestamp")), value) for value in values]
        return sorted(
            [(time_ns, value) for time_ns, value in stamps if time_ns is not None], key=itemgetter(0)
        )


def _node_of(row: Mapping[str, Any]) -> str:
    """Return the node id of a row; empty for samples that name no node."""
    node_id = row.get("node_id")
    return CACHE_KEY if "cache" in row else node_id if isinstance(node_id, str) else ""


def _series_values(row: Mapping[str, Any]) -> Iterator[tuple[SeriesPath, float]]:
    """Yield the path and the value of each series in a row, if the value is valid."""
    for name in (*NODE_VALUES, *GPU_VALUES, STORAGE, "cache"):
        stored = row.get(name)
        if stored is None:
            continue
        values = stored if isinstance(stored, dict) else {"": stored}
        for gpu_or_field, value in islice(values.items(), MAX_GPUS):
            # No usage in cores or bytes is larger. ``type`` rejects bools, unlike ``isinstance``.
            if type(value) in (int, float) and abs(value) < 2.0**63:
                path = (STORAGE if name == "cache" else name, gpu_or_field)
                yield path if gpu_or_field else path[:1], float(value)


def rows_of(
    metrics: JobMetrics, start: datetime = FIRST_MOMENT, end: datetime = LAST_MOMENT
) -> list[dict[str, Any]]:
    """Convert a response's samples ``start <= t < end`` to rows of a recording, sorted by time."""
    rows: dict[tuple[datetime, str, bool], dict[str, Any]] = {}

    def add(node: Mapping[str, Any], series: Iterable[tuple[SeriesPath, list[MetricSample]]]) -> None:
        for path, samples in series:
            for sample in samples:
                if sample.value is None or not start <= sample.timestamp < end:
                    continue
                key = (sample.timestamp, node.get("node_id", ""), "cache" in path)
                row = rows.setdefault(key, {"timestamp": utc_text(sample.timestamp), **node})
                for name in path[:-1]:
                    row = row.setdefault(name, {})
                row[path[-1]] = sample.value

    for entry in metrics.per_node_metrics:
        add({"node_id": entry.node_id}, series_of(entry.metrics))
    add({}, series_of(metrics))
    add({}, storage_series("cache", metrics.cache))
    return [rows[key] for key in sorted(rows)]
