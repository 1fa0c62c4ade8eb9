"""Metric samples as the API sends them.

Samples may be out of order and repeated. Utilizations are fractions 0–1, CPU usage is in cores, memory
and storage in bytes. The top-level series are the leader node's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field
from pydantic_core import core_schema

from api_client.models.base import (
    UTC_TIME,
    FastPath,
    LargeApiModel,
    MaxItems,
    NullAsEmpty,
    Number,
    TolerantDict,
    UtcDatetime,
)
from api_client.models.jobs import TrainingJob


def _none_for_number(value: object) -> object:
    """Return None for a number that is infinite, NaN or too large: such a sample is a gap in the chart."""
    return None if isinstance(value, int | float) else value


_FINITE_NUMBER = core_schema.float_schema(strict=True, ge=-(2.0**63), le=2.0**63, allow_inf_nan=False)
_Time = Annotated[UtcDatetime, FastPath(UTC_TIME, lambda time: time)]
_Value = Annotated[Number | None, FastPath(core_schema.nullable_schema(_FINITE_NUMBER), _none_for_number)]


@dataclass(frozen=True, slots=True)
class MetricSample:
    """Sample of a series; a plain dataclass, because a response may have 100,000 of them."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="ignore")  # slots rule out "allow"

    timestamp: _Time
    value: _Value = None


Samples = Annotated[list[MetricSample], MaxItems(300_000), NullAsEmpty(list)]


class StorageMetrics(LargeApiModel):
    """Usage of a volume: bytes, and the fraction of its size."""

    usage_bytes: Samples = []
    utilization: Samples = []


GpuSeries = Annotated[TolerantDict[Samples], Field(max_length=64)]


class NodeSeries(LargeApiModel):
    """Series of one node; the keys of GPU series are GPU ranks as strings."""

    gpu_memory_usage_bytes: GpuSeries = {}
    gpu_utilization: GpuSeries = {}
    cpu_usage: Samples = []
    cpu_memory_usage_bytes: Samples = []
    ephemeral_storage: StorageMetrics | None = None


class NodeMetrics(LargeApiModel):
    """Name and series of a node."""

    node_id: str
    metrics: Annotated[NodeSeries, NullAsEmpty(NodeSeries)] = Field(default_factory=NodeSeries)


class JobMetrics(NodeSeries):
    """Response of the metrics route: the leader's series, the job's cache, and every node."""

    cache: StorageMetrics | None = None
    training_job: TrainingJob | None = None
    per_node_metrics: Annotated[list[NodeMetrics], MaxItems(1000), NullAsEmpty(list)] = []


GPU_VALUES = ("gpu_utilization", "gpu_memory_usage_bytes")
NODE_VALUES = ("cpu_usage", "cpu_memory_usage_bytes")
STORAGE, STORAGE_VALUES = "ephemeral_storage", ("usage_bytes", "utilization")

SeriesPath = tuple[str, ...]
"""Path of a series in the response: the field, then the GPU or the field of the storage, if any."""


def series_of(node: NodeSeries) -> Iterator[tuple[SeriesPath, list[MetricSample]]]:
    """Yield all series of a node."""
    for name in GPU_VALUES:
        for gpu, samples in getattr(node, name).items():
            yield (name, gpu), samples
    for name in NODE_VALUES:
        yield (name,), getattr(node, name)
    yield from storage_series(STORAGE, node.ephemeral_storage)


def storage_series(
    name: str, storage: StorageMetrics | None
) -> Iterator[tuple[SeriesPath, list[MetricSample]]]:
    """Yield the series of a storage volume; ``name`` is the first component of their paths."""
    for field_name in STORAGE_VALUES if storage is not None else ():
        yield (name, field_name), getattr(storage, field_name)


def metric_and_gpu(path: SeriesPath) -> tuple[str, str]:
    """Return the name of a series' metric (``ephemeral_storage_usage_bytes``), and its GPU, or "" if none."""
    return (path[0], path[1]) if path[0] in GPU_VALUES else ("_".join(path), "")


def node_of(samples: Mapping[SeriesPath, list[MetricSample]]) -> NodeSeries:
    """Build a node from these series; the inverse of ``series_of``."""
    fields: dict[str, Any] = {name: samples.get((name,), []) for name in NODE_VALUES}
    fields |= {
        name: {path[1]: series for path, series in samples.items() if path[0] == name and path[1:]}
        for name in GPU_VALUES
    }
    return NodeSeries.model_construct(**fields, ephemeral_storage=storage_of(samples, STORAGE))


def storage_of(samples: Mapping[SeriesPath, list[MetricSample]], name: str) -> StorageMetrics:
    """Build the volume ``name`` from its series."""
    return StorageMetrics.model_construct(
        None, **{field_name: samples.get((name, field_name), []) for field_name in STORAGE_VALUES}
    )
