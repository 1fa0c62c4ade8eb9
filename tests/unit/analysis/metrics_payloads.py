"""Answers of the metrics route, made for tests."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from api_client.models.metrics import JobMetrics, NodeMetrics, NodeSeries

START_S = 1_700_000_000.0

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


def payload(nodes: dict[str, dict[str, object]], **top: object) -> JobMetrics:
    named = [
        NodeMetrics(node_id=name, metrics=NodeSeries.model_validate(series)) for name, series in nodes.items()
    ]
    leader = next(iter(nodes.values()), {})
    return JobMetrics.model_validate({**leader, **top, "per_node_metrics": named})
