"""Six-hour runs with a healthy history and one problem each, for snapshots of how the problem is shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from functools import cache, partial
from typing import Any

from api_client.models import Checkpoint, JobMetrics, MetricSample, NodeMetrics, NodeSeries, StorageMetrics
from api_client.models.logs import LogLine
from support.worlds import CHECKPOINTS, JOBS, ONE_O_CLOCK, job
from tui.analysis.health.judge import judged
from tui.analysis.node_metrics import MetricsFold
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.run.snapshot import RunSnapshot

HOURS = 6
STEP_S = 30
_ON_ONE_NODE = ("straggler", "leak", "disk", "silent", "idle")
_HANGS_S = 1500
_BROKEN_S = 600
"""Losses have been bad, and errors were logged, since so many seconds before one o'clock."""


@cache
def sick_run(sickness: str, *, nodes: int = 4, gpus: int = 8) -> RunSnapshot:
    """The last six hours of a run up to one o'clock, as the fold of its log and its metrics."""
    known: dict[str, Any] = {
        "at": ONE_O_CLOCK,
        "seen_at": ONE_O_CLOCK,
        "history_known": True,
        "log_read": True,
    }
    if sickness == "queue":
        waiting = job("ablate", "PENDING", name="llama-8b-ablate", node_count=2, hours_ago=0.4)
        return judged(RunSnapshot(waiting, checkpoints=(), **known))
    large = job("large", name="llama-405b-pretrain", node_count=nodes, hours_ago=6.2)
    progress = ProgressFold()
    progress.add(_log(sickness))
    metrics = MetricsFold().fold(_metrics(sickness, nodes, gpus))
    snapshot = RunSnapshot(
        JOBS[0] if nodes == 4 else large,
        progress=progress.snapshot(),
        metrics=metrics,
        metrics_at=ONE_O_CLOCK,
        health_metrics=metrics,
        checkpoints=_late_checkpoints() if sickness == "overdue" else CHECKPOINTS,
        price_per_minute=0.65,
        **known,
    )
    return judged(snapshot)


def sick_log(sickness: str) -> tuple[LogLine, ...]:
    return () if sickness == "queue" else tuple(_log(sickness)[-60:])


def _late_checkpoints() -> tuple[Checkpoint, ...]:
    """A checkpoint every hundred minutes and thousand steps, and then none."""
    return tuple(
        one.model_copy(
            update={
                "checkpoint_id": f"checkpoint-{700 + 1000 * number}",
                "created_at": ONE_O_CLOCK - timedelta(minutes=362 - 100 * number),
            }
        )
        for number, one in enumerate(CHECKPOINTS[:3])
    )


def _log(sickness: str) -> list[LogLine]:
    lines = []
    end_ns = int(ONE_O_CLOCK.timestamp() * 1e9)
    steps = HOURS * 3600 // STEP_S

    def log(ago_s: float, text: str, node: str = "node-0", level: str | None = None) -> None:
        lines.append(LogLine(end_ns - int(ago_s * 1e9), text, node, level))

    for number in range(steps):
        ago_s = (steps - number) * STEP_S
        if sickness == "hang" and ago_s < _HANGS_S:
            break
        loss = 0.8 + 1.6 * math.exp(-number / 250) + 0.03 * math.sin(number * 1.7)
        if sickness == "explode" and ago_s < _BROKEN_S:
            loss *= 1 + (_BROKEN_S - ago_s) / 60
        shown = "nan" if sickness == "nan" and ago_s < _BROKEN_S else f"{loss:.4f}"
        lost = 40 * sum(ago_s < at for at in (6000, 3600, 1200)) if sickness == "restarts" else 0
        text = (
            f"step {3400 + number - lost}/9000 loss={shown} grad_norm={0.6 + 0.1 * math.sin(number):.3f}"
            f" lr={2e-5 * (1 - number / 2000):.3e} tokens_per_sec={41000 + 900 * math.sin(number / 9):.0f}"
        )
        log(ago_s, text)
        rank = 1 + number % 3
        if not (sickness == "silent" and rank == 2 and ago_s < 900):
            log(ago_s - 11, f"all_gather 2.1 GB in {40 + number % 9} ms", f"node-{rank}")
        if sickness == "restarts" and ago_s in (6000, 3600, 1200):
            log(ago_s - 1, "torchelastic: worker group restarting, exit code 1", "node-2", "WARNING")
        if sickness == "errors" and ago_s in (300, 120):
            log(ago_s - 1, "ERROR NCCL watchdog: collective timed out after 60 s", "node-2", "ERROR")
    return lines


def _metrics(sickness: str, nodes: int, gpus: int) -> JobMetrics:
    series = [_node(sickness if sickness == "hang" else "", rank, gpus) for rank in range(nodes)]
    if sickness in _ON_ONE_NODE:
        sick = min(2, nodes - 1)
        series[sick] = _node(sickness, sick, gpus)
    found = [NodeMetrics(node_id=f"node-{rank}", metrics=each) for rank, each in enumerate(series)]
    return JobMetrics(per_node_metrics=found)


def _node(sickness: str, rank: int, gpus: int) -> NodeSeries:
    ages_s = range(3600, 899 if sickness == "silent" else -1, -STEP_S)

    def use(gpu: int, age_s: int) -> float:
        wave = 0.03 * math.sin(age_s / 70 + rank + gpu)
        if sickness == "idle" and age_s < 1200:
            return 0.0
        if sickness == "hang" and age_s < _HANGS_S:
            return 1.0
        checkpoint = 0.5 if (age_s + 450) % 900 < STEP_S else 0.0
        return (0.58 if sickness == "straggler" else 0.95) + wave - checkpoint

    def memory(gpu: int, age_s: int) -> float:
        grown = (3600 - age_s) / 3600 * 12e9 if sickness == "leak" else 0.0
        return 62e9 + gpu * 2e8 + grown

    def disk(age_s: int) -> float:
        return 0.55 + (3600 - age_s) / 3600 * 0.4 if sickness == "disk" else 0.4

    def samples(value: Callable[[int], float]) -> list[MetricSample]:
        return [MetricSample(ONE_O_CLOCK - timedelta(seconds=age_s), value(age_s)) for age_s in ages_s]

    return NodeSeries(
        gpu_utilization={str(gpu): samples(partial(use, gpu)) for gpu in range(gpus)},
        gpu_memory_usage_bytes={str(gpu): samples(partial(memory, gpu)) for gpu in range(gpus)},
        cpu_usage=samples(lambda _: 30.0 + rank),
        cpu_memory_usage_bytes=samples(lambda _: 6e11),
        ephemeral_storage=StorageMetrics(
            usage_bytes=samples(lambda age_s: disk(age_s) * 5e12), utilization=samples(disk)
        ),
    )
