"""GPUs that are never busy, although the run makes steps: most of all if the CPUs are."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tui.analysis.health.check import MINUTE_S, WORKING, Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.health.windows import means_of_parts
from tui.text.units import duration, percent


@dataclass(frozen=True, slots=True)
class Limits:
    underused_below: float = limit(
        0.5, "Utilization below which GPUs are underused, if the CPUs of their nodes are at their limit."
    )
    underused_after_s: float = limit(
        1800.0, "Time during which GPUs must be underused; four times that below 20%, whatever the CPUs do."
    )


def find(run: Watched, limits: Limits) -> Findings:
    at = run.metrics.at
    if at is None or run.is_reinforcement or (run.last_step_s or 0.0) < at - 5 * MINUTE_S:
        return
    is_held = run.is_held()
    machine = run.run.job.instance_type
    cores = (machine.millicpu_limit if machine else 0) / 1000
    busy_cpus = run.eased(0.8, 0.0, held=is_held) * cores or math.inf
    for window_s, below, cpu_from in (
        (limits.underused_after_s, limits.underused_below, busy_cpus),
        (4.0 * limits.underused_after_s, WORKING, 0.0),
    ):
        if at - window_s < (run.training_since or math.inf) + 5 * MINUTE_S:
            continue
        uses, cpus = (
            means_of_parts(series, at, window_s / 3, 3)
            for series in zip(*((node.mean_utilization, node.cpu) for node in run.metrics.nodes), strict=True)
        )
        is_low = len(uses) == 3 and max(uses) < run.eased(below, 1.0, held=is_held)
        if is_low and min(cpus, default=0.0) >= cpu_from:
            text = f"GPUs only {percent(sum(uses) / 3)} busy for {duration(window_s)} or longer"
            if cpu_from:
                text += f", CPUs at their limit ({max(cpus):.0f} of {cores:.0f} cores): waiting for data?"
            yield run.finding("info", text, since_s=at - window_s)
            return


CHECK = Check(
    FindingKind("gpu-underused", 170, "GPUs underused", figures=("GPU use", "CPU")),
    "Underused GPUs",
    "info",
    Limits,
    find,
    needs="a run that makes steps and GPUs below `underused_below` in each third of the window, while the"
    " CPUs of their nodes are at 80% of their limit or more; or GPUs below 20% for four times as long,"
    " whatever the CPUs do.",
    excused="the first minutes, reinforcement learning, and a run that is known to be slow or idle.",
    ends="above `underused_below`, by a quarter of the way to full use",
    costs="the unused share of all GPUs, if they could be fed faster",
    covered_by=frozenset({"gpu-idle", "slowdown"}),
    examples=(
        Example("data that comes too slowly", "GPUs only 35% busy", gpu=(0.35,), cpu=62.0),
        Example("a small model", gpu=(0.35,)),
    ),
)
