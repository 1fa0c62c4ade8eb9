"""A run watched from its beginning, as the job screen does it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from metrics_payloads import GIB, H100, START_S, payload, series

from api_client.models import TrainingJob
from tui.analysis.health.checks import health
from tui.analysis.health.rules import HealthRules
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.run import HEALTH_STEP_S as HEALTH_METRICS_STEP_S
from tui.readers.run import health_metrics_fold

Level = Callable[[float], float]


def watched(
    nodes: Mapping[str, Mapping[str, Level]],
    hours: float,
    *,
    every_s: int = 300,
    rules: HealthRules | None = None,
    **fields: Any,
) -> Iterator[tuple[float, tuple[HealthFinding, ...]]]:
    """What is found every five minutes, or other times (seconds from the beginning), of samples a minute apart.

    ``nodes`` are levels over time by node: gpu (0–1), gpu_memory and memory (GiB), disk (0–1).
    """
    job = TrainingJob.model_validate(
        {
            "id": "j",
            "current_status": "TRAINING_JOB_RUNNING",
            "instance_type": H100.model_dump(),
            "created_at": datetime.fromtimestamp(START_S, UTC),
            "node_count": len(nodes),
        }
    )
    fold, found = health_metrics_fold(job), ()
    for at in range(0, int(hours * 3600) + 1, every_s):
        now = datetime.fromtimestamp(START_S + at, UTC)
        new = range(max(0, at - every_s + HEALTH_METRICS_STEP_S), at + 1, HEALTH_METRICS_STEP_S)
        health_metrics = fold.fold(payload({name: _samples(levels, new) for name, levels in nodes.items()}))
        run = RunSnapshot(
            job, now, now, health_metrics=health_metrics, history_known=True, log_read=True, **fields
        )
        found = health(run, rules or HealthRules(), found)
        yield at, found


def _samples(levels: Mapping[str, Level], times: Iterable[int]) -> dict[str, object]:
    in_bytes = {name: lambda at, level=levels[name]: level(at) * GIB for name in levels if "memory" in name}
    return series(times, **{**levels, **in_bytes})
