"""Answers of the metrics route, made for tests."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from api_client.models import InstanceType
from api_client.models.metrics import JobMetrics, MetricSample, NodeMetrics, NodeSeries

START_S = 1_700_000_000.0
HOUR = range(0, 3660, 60)
GIB = 1024**3
H100 = InstanceType(
    id="h100", gpu_count=2, gpu_type="H100", gpu_memory_limit_mib=81920, memory_limit_mib=1024 * 400
)

Level = float | Callable[[float], float | None]


def samples(times: Iterable[float], level: Level) -> list[MetricSample]:
    value = level if callable(level) else lambda _time: level
    return [MetricSample(datetime.fromtimestamp(START_S + time, UTC), value(time)) for time in times]


def series(
    times: Iterable[float] = HOUR,
    gpu: Level = 0.95,
    *,
    gpus: int = 2,
    gpu_memory: Level = 60e9,
    memory: Level = 200e9,
    cpu: Level = 12.5,
    disk: Level = 0.25,
) -> dict[str, object]:
    times = list(times)
    return {
        "gpu_utilization": {str(number): samples(times, gpu) for number in range(gpus)},
        "gpu_memory_usage_bytes": {str(number): samples(times, gpu_memory) for number in range(gpus)},
        "cpu_usage": samples(times, cpu),
        "cpu_memory_usage_bytes": samples(times, memory),
        "ephemeral_storage": {"usage_bytes": samples(times, 5e9), "utilization": samples(times, disk)},
    }


def payload(nodes: dict[str, dict[str, object]], **top: object) -> JobMetrics:
    named = [NodeMetrics(node_id=name, metrics=NodeSeries.model_validate(one)) for name, one in nodes.items()]
    leader = next(iter(nodes.values()), {})
    return JobMetrics.model_validate({**leader, **top, "per_node_metrics": named})
