"""Answers of the metrics route, made for tests."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from api_client.models import InstanceType
from api_client.models.metrics import JobMetrics, NodeMetrics, NodeSeries

START_S = 1_700_000_000.0
HOUR = range(0, 3660, 60)
GIB = 1024**3
H100 = InstanceType(
    id="h100", gpu_count=2, gpu_type="H100", gpu_memory_limit_mib=81920, memory_limit_mib=1024 * 400
)

Level = float | Callable[[float], float | None]


def samples(times: Iterable[float], level: Level) -> list[dict[str, object]]:
    return [
        {
            "timestamp": datetime.fromtimestamp(START_S + time, UTC).isoformat(),
            "value": level(time) if callable(level) else level,
        }
        for time in times
    ]


def node_series(times: Iterable[float], level: Level = 0.97, gpus: int = 2) -> dict[str, object]:
    times = list(times)
    return {
        "gpu_utilization": {str(gpu): samples(times, level) for gpu in range(gpus)},
        "gpu_memory_usage_bytes": {str(gpu): samples(times, 60e9 + gpu * 1e9) for gpu in range(gpus)},
        "cpu_usage": samples(times, 12.5),
        "cpu_memory_usage_bytes": samples(times, 200e9),
        "ephemeral_storage": {"usage_bytes": samples(times, 5e9), "utilization": samples(times, 0.25)},
    }


def series(times: Iterable[int] = HOUR, **levels: Any) -> dict[str, object]:
    """A node's answer with some of its levels replaced: gpu, gpu_memory, memory, disk."""
    times = list(times)
    made = node_series(times, levels.get("gpu", 0.95))
    if "gpu_memory" in levels:
        made["gpu_memory_usage_bytes"] = {gpu: samples(times, levels["gpu_memory"]) for gpu in ("0", "1")}
    if "memory" in levels:
        made["cpu_memory_usage_bytes"] = samples(times, levels["memory"])
    if "disk" in levels:
        made["ephemeral_storage"] = {"usage_bytes": [], "utilization": samples(times, levels["disk"])}
    return made


def payload(nodes: dict[str, dict[str, object]], **top: object) -> JobMetrics:
    named = [
        NodeMetrics(node_id=name, metrics=NodeSeries.model_validate(series)) for name, series in nodes.items()
    ]
    leader = next(iter(nodes.values()), {})
    return JobMetrics.model_validate({**leader, **top, "per_node_metrics": named})
