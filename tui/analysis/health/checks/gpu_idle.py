"""Idle GPUs (all of them, those of a node, or some within a busy node), and GPUs that are never busy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from tui.analysis.health.check import (
    ASIDE_S,
    LONGER,
    MINUTE_S,
    WORKING,
    Check,
    Example,
    FindingKind,
    Findings,
    HealthFinding,
    Severity,
    Watched,
    limit,
)
from tui.analysis.health.windows import first_time, holds_since, segment_means, since_start
from tui.analysis.node_metrics import NodeSnapshot
from tui.analysis.pauses import recurring_pause
from tui.analysis.series import Series, mean_between
from tui.text.units import counted, duration, percent


@dataclass(frozen=True, slots=True)
class Limits:
    idle_below: float = limit(0.05, "Utilization below which a GPU counts as idle.")
    idle_after_s: float = limit(600.0, "Minimum idle time before GPUs that have worked are reported as idle.")
    idle_never_s: float = limit(
        1500.0, "Minimum idle time before GPUs that have never been seen working are reported as idle."
    )


def find(run: Watched, limits: Limits) -> Findings:
    at = run.metrics.at
    nodes = [node for node in run.metrics.nodes if node.gpus]
    if at is None or not nodes:
        return
    idle = {node.name: _idle_since(run, limits, node, at) for node in nodes}
    idle_nodes = {node.name for node in nodes if len(idle[node.name]) == len(node.gpus)}
    below = f", below {percent(limits.idle_below)}"
    if len(idle_nodes) == len(nodes):
        since = max(max(gpus.values()) for gpus in idle.values())
        allowed_s = 4.0 * limits.idle_never_s if _prepares(run, limits) else run.pause_allowed_s
        # After a pause, the log shows the first step before the samples show that GPUs work.
        resumed_s = next(iter(since_start(run.steps, since + MINUTE_S).times), -math.inf)
        if at - since >= allowed_s and resumed_s <= at - MINUTE_S and not run.has_stalled:
            yield _finding(run, "GPUs idle", since, at, below)
        return
    # Nodes may take turns within a step.
    step_s = limits.idle_never_s if run.is_reinforcement else LONGER * (run.progress.step_interval_s or 0.0)
    turn_s = max(run.pause_allowed_s, step_s)
    for node in nodes:
        gpus = idle[node.name]
        if node.name in idle_nodes and run.has_stalled and 2 * len(idle_nodes) > len(nodes):
            continue  # The stall explains that most nodes are idle.
        if node.name in idle_nodes:
            since = max(gpus.values())
            if at - since >= turn_s:
                # Warn only if the run waits for the node: it may have done its share, or serve the others.
                is_slower = (run.lost_speed(since) or 0.0) > 0.1
                is_waited_for = run.has("stalled") or run.last_line_s < since + MINUTE_S or is_slower
                severity: Severity = "warning" if is_waited_for else "info"
                yield _finding(run, "GPUs idle", since, at, below, node.name, severity)
            continue
        start = at - limits.idle_after_s
        busy = sum((mean_between(curve, start, at) or 0.0) >= WORKING for curve in node.gpu_utilization)
        # An activity after the steps, or between them, may need only some of the GPUs.
        since = min(gpus.values(), default=at)
        pauses = run.last_step_s is not None and run.last_step_s < since + MINUTE_S
        prepares = run.last_step_s is None and _prepares(run, limits)
        allowed_s = 4.0 * limits.idle_never_s if prepares else run.pause_allowed_s
        is_aside = run.progress.is_done or ((prepares or pauses) and at - since < allowed_s)
        if gpus and busy and not is_aside:  # a dead rank, or GPUs that are never used
            which = f"GPU {next(iter(gpus))}"
            if len(gpus) > 1:
                which = f"{len(gpus)} of {counted(len(node.gpus), 'GPU')}"
            beside = f" while {counted(busy, 'other works', 'others work')}"
            yield _finding(run, f"{which} idle", since, at, beside, node.name)


def _finding(
    run: Watched,
    subject: str,
    since: float,
    at: float,
    detail: str,
    node: str | None = None,
    severity: Severity = "warning",
) -> HealthFinding:
    text = f"{subject} for {duration(at - since)}"
    short = text if node is None else f"{node} {text}"
    text = f"{text}{detail}" if node is None else f"{node}: {text}{detail}"
    return run.finding(severity, text, short=short, node=node, since_s=since)


def _prepares(run: Watched, limits: Limits) -> bool:
    """Return True if a count other than the steps rises, or, before GPUs work, if anything is logged."""
    progress = run.progress
    has_begun = run.last_step_s is not None or run.works_since < math.inf
    newest_s = max(progress.moved_at or 0.0, 0.0 if has_begun else run.last_line_s)
    return newest_s > max(run.last_step_s or 0.0, run.now_s - ASIDE_S)


def _idle_since(run: Watched, limits: Limits, node: NodeSnapshot, at: float) -> dict[str, float]:
    """Return the GPUs of a node that have been idle for too long, and since when (epoch s).

    GPUs that have never worked may be idle for longer, and other GPUs as long as they were idle before.
    """
    idle: dict[str, float] = {}
    for gpu, utilization in zip(node.gpus, node.gpu_utilization, strict=True):
        # A single slightly higher sample is no work: it may be a monitoring tool.
        idle_since = holds_since(utilization, lambda value: value < limits.idle_below, forgiven=1)
        not_working_since = holds_since(utilization, lambda value: value < WORKING)
        since = max(idle_since, not_working_since, run.attempt_since)
        if since == math.inf or at - utilization.times[-1] > 5 * MINUTE_S:
            continue
        worked = first_time(utilization, WORKING, run.attempt_since) < since
        if not worked and run.training_since is not None:
            # Metrics may cover only the last hour: a run that makes steps has worked before.
            worked = utilization.times[0] > run.training_since
            since = max(since, run.training_since)
        allowed_s = limits.idle_after_s if worked else limits.idle_never_s
        if at - since >= max(allowed_s, LONGER * _longest_idle_s(utilization, since)):
            idle[gpu] = since
    return idle


def _longest_idle_s(utilization: Series, until: float) -> float:
    """Return the longest idle time (s) that has recurred, as when nodes take turns; 0 if none has."""
    pairs = zip(utilization.times, utilization.values, strict=True)
    worked = [time for time, value in pairs if value >= WORKING and time <= until]
    return recurring_pause(later - earlier for earlier, later in pairwise(worked)) or 0.0


CHECK = Check(
    FindingKind(
        "gpu-idle",
        40,
        "",
        note="▽ idle",
        states_duration=True,
        wastes_all=True,
        may_never_save_again=True,
        lines="quiet",
        figures=("GPU use", "cores"),
    ),
    "Idle GPUs",
    "warning",
    Limits,
    find,
    needs="utilization below `idle_below` for `idle_after_s` on all GPUs, on one node's GPUs, or on some"
    " GPUs while others work, once they have worked; or for `idle_never_s` on GPUs that have never worked.",
    excused="a stalled run, most of whose GPUs idle with it; pauses and new work as for stalls; a count of"
    " other work that moves, and a log that goes on before GPUs have worked; and GPUs that rest in turn:"
    " within a step, as long as they have before, or, in reinforcement learning, for `idle_never_s`. GPUs"
    " beside others that work are excused after the last step, too. Reported as info: a node that is idle"
    " while the run goes on as fast, which may have done its share, or serves the others.",
    ends="with work; a single higher sample is none",
    costs="the idle GPUs: a node's price, by their share of its GPUs",
    examples=(
        Example(
            "a run that has ended without exiting",
            "GPUs idle for",
            gpu=(lambda at: 0.95 if at < 5400 else 0.0,),
        ),
        Example("a first load of 20 minutes", minutes=20, gpu=(0.0,), stops_s=0),
        Example(
            "nodes that take turns",
            gpu=(lambda at: 0.9 * (at % 1200 < 600), lambda at: 0.9 * (at % 1200 >= 600)),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class UnderusedLimits:
    underused_below: float = limit(
        0.5, "Utilization below which GPUs are underused, if the CPUs of their nodes are at their limit."
    )
    underused_after_s: float = limit(
        1800.0, "Time during which GPUs must be underused; four times that below 20%, whatever the CPUs do."
    )


def underused(run: Watched, limits: UnderusedLimits) -> Findings:
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
        utilizations, cores_used = (
            segment_means(series, at, window_s / 3, 3)
            for series in zip(*((node.mean_utilization, node.cpu) for node in run.metrics.nodes), strict=True)
        )
        is_low = len(utilizations) == 3 and max(utilizations) < run.eased(below, 1.0, held=is_held)
        if is_low and min(cores_used, default=0.0) >= cpu_from:
            short = f"GPUs only {percent(sum(utilizations) / 3)} busy"
            text = f"{short} for {duration(window_s)} or longer"
            if cpu_from:
                short += ", CPUs at their limit"
                text += (
                    f", CPUs at their limit ({max(cores_used):.0f} of {cores:.0f} cores): waiting for data?"
                )
            yield run.finding("info", text, short=short, since_s=at - window_s)
            return


UNDERUSED = Check(
    FindingKind("gpu-underused", 170, "GPUs underused", figures=("GPU use", "cores")),
    "Underused GPUs",
    "info",
    UnderusedLimits,
    underused,
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
