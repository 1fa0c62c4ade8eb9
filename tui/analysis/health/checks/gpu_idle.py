"""Idle GPUs (all of them, those of a node, or some within a busy node), and GPUs that are never busy."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import (
    MINUTE_S,
    WORKING,
    Check,
    Example,
    FindingKind,
    Findings,
    HealthFinding,
    Watched,
    limit,
)
from tui.analysis.health.windows import first_time, holds_since, means_of_parts
from tui.analysis.node_metrics import NodeSnapshot
from tui.analysis.pauses import recurring_pause
from tui.analysis.series import Series, mean_between
from tui.text.units import counted, duration, percent

_REST = 1.25  # A rest may be this many times as long as those before it.
_CORES = 2  # A node that uses more CPU cores per GPU than this before the first step prepares data.


@dataclass(frozen=True, slots=True)
class Limits:
    idle_below: float = limit(0.05, "Utilization below which a GPU counts as idle.")
    idle_after_s: float = limit(600.0, "Minimum idle time before GPUs that have worked are reported as idle.")
    idle_never_s: float = limit(
        1500.0, "Minimum idle time before GPUs that have never been seen working are reported as idle."
    )


def find(run: Watched, limits: Limits) -> Findings:
    at = run.metrics.at
    if at is None:
        return
    nodes = [node for node in run.metrics.nodes if node.mean_utilization]
    idle = {
        node.name: since
        for node in nodes
        if (since := _idle_since(run, limits, node.mean_utilization, at)) is not None
    }
    if idle and len(idle) == len(nodes):
        since = max(idle.values())
        if at - since >= _allowed_s(run, limits) and not _has_just_ended(run, since, at):
            yield _idle_gpus(run, limits, since, at)
        return
    busiest_cpu = max((node.cpu_now or 0.0 for node in nodes if node.name not in idle), default=0.0)
    for node in nodes:
        if node.name not in idle:
            yield from _idle_among_busy(run, node, limits, at)
            continue
        since, use = idle[node.name], node.mean_utilization
        worked_from = first_time(use, WORKING)
        # A node whose GPUs never worked, but its CPUs do, serves the others; so does one that works rarely.
        serves = worked_from == math.inf and (node.cpu_now or 0.0) > busiest_cpu
        begin = min(worked_from, run.training_since or worked_from)
        is_rare = worked_from < since and (mean_between(use, begin, since) or 0.0) < WORKING
        if not serves and not is_rare and at - since >= _turn_s(run, limits):
            yield _idle_gpus(run, limits, since, at, node.name)


def _idle_gpus(
    run: Watched, limits: Limits, since: float, at: float, node: str | None = None
) -> HealthFinding:
    lasts = duration(at - since)
    text = f"GPUs idle (below {percent(limits.idle_below)}) for {lasts}"
    short = f"GPUs idle for {lasts}"
    if node is not None:
        text, short = f"{node}: {text}", f"{node} {short}"
    return run.finding("warning", text, short=short, node=node, since_s=since)


def _allowed_s(run: Watched, limits: Limits) -> float:
    """Return how long all GPUs may be idle while the log or the CPUs show why."""
    progress = run.progress
    # A count other than the steps moves: data is prepared, or the model is uploaded.
    is_moving = (progress.moved_at or 0.0) > max(run.last_step_s or 0.0, run.now_s - limits.idle_after_s)
    prepares = (
        run.last_step_s is None
        and run.works_since == math.inf
        and any((node.cpu_now or 0.0) > _CORES * len(node.gpus) for node in run.metrics.nodes)
    )
    return max(
        run.pause_allowed_s(_REST),
        4.0 * limits.idle_never_s if is_moving or prepares else 0.0,
    )


def _turn_s(run: Watched, limits: Limits) -> float:
    """Return how long a node may rest while others work: nodes may take turns, within a step or two."""
    usual_s = run.progress.step_interval_s
    takes_turns = run.is_reinforcement or (run.training_since is not None and usual_s is None)
    return max(
        run.pause_allowed_s(_REST), _REST * (usual_s or 0.0), limits.idle_never_s if takes_turns else 0.0
    )


def _has_just_ended(run: Watched, since: float, at: float) -> bool:
    """Return True if the first steps for long are newer than the samples, which do not show them yet."""
    times = run.progress.step_series.times or run.progress.loss_series.times
    first = bisect_left(times, since + MINUTE_S)
    return first < len(times) and times[first] > at - MINUTE_S


def _idle_since(run: Watched, limits: Limits, use: Series, at: float) -> float | None:
    """Return when the GPUs became idle, None if that is too recent; GPUs that never worked need longer."""
    idle_since = _uninterrupted_since(use, limits.idle_below)
    if idle_since is None or at - use.times[-1] > 5 * MINUTE_S:
        return None
    since = max(idle_since, run.attempt_since)
    worked = first_time(use, WORKING, run.attempt_since) < since
    if not worked and run.training_since is not None:
        # Metrics may cover only the last hour: a run that makes steps has worked, whatever they show.
        worked = run.works_since == math.inf or use.times[0] > run.training_since
        since = max(since, run.training_since)
    allowed_s = limits.idle_after_s if worked and not run.loads_again else limits.idle_never_s
    if not worked and not run.is_held() and _is_loading(run, since, limits.idle_after_s):
        allowed_s *= 2.0
    rest_s = _REST * _longest_rest_s(use, since, run.training_since)
    return since if at - since >= max(allowed_s, rest_s) else None


def _is_loading(run: Watched, since: float, recent_s: float) -> bool:
    """Return True if the log is written to, or announced loading or compiling before it fell silent."""
    line_s = (run.progress.last_line_at_ns or 0) / NS_PER_S
    announced_at = run.progress.announced_at or 0.0
    return run.now_s - line_s < recent_s or announced_at >= max(since, line_s - recent_s)


def _uninterrupted_since(use: Series, idle_below: float) -> float | None:
    """Return since when the GPUs have been idle without interruption; None if they are not.

    A single slightly higher sample does not count as work: it may be a monitoring tool or a heartbeat.
    """
    blips = holds_since(use, lambda value: value < idle_below, forgiven=1)
    steady = holds_since(use, lambda value: value < WORKING)
    return None if blips is None or steady is None else max(blips, steady)


def _longest_rest_s(use: Series, until: float, training_since: float | None = None) -> float:
    """Return the longest idle time that ended with work, as when phases alternate.

    The first one begins with the training.
    """
    rests: list[float] = []
    worked_at = training_since
    rested = False
    for time, value in zip(use.times, use.values, strict=True):
        if time > until:
            break
        if value < WORKING:
            rested = worked_at is not None
        elif value == value:
            if rested and worked_at is not None:
                rests.append(time - worked_at)
            worked_at, rested = time, False
    return recurring_pause(rests) or 0.0


def _idle_among_busy(run: Watched, node: NodeSnapshot, limits: Limits, at: float) -> Findings:
    """Report idle GPUs next to busy ones of the same node: a dead rank, or GPUs never used."""
    gpus = dict(zip(node.gpus, node.gpu_utilization, strict=True))
    start = at - limits.idle_after_s
    busy = sum((mean_between(use, start, at) or 0.0) >= WORKING for use in gpus.values())
    idle: dict[str, float] = {}
    for gpu, use in gpus.items():
        since = _uninterrupted_since(use, limits.idle_below)
        if since is not None and use.times[-1] > start:
            worked = first_time(use, WORKING) < since
            allowed_s = limits.idle_after_s if worked else limits.idle_never_s
            if at - since >= max(allowed_s, _REST * _longest_rest_s(use, since)):
                idle[gpu] = since
    if not idle or not busy:
        return
    what = f"{len(idle)} of {counted(len(gpus), 'GPU')} idle"
    text = f"{node.name}: {what}"
    if len(idle) == 1:
        what = f"GPU {next(iter(idle))} idle"
        text = f"{node.name}: {what} while {counted(busy, 'other works', 'others work')}"
    short = f"{node.name} {what} for {duration(at - min(idle.values()))}"
    yield run.finding("warning", text, short=short, node=node.name, since_s=min(idle.values()))


CHECK = Check(
    FindingKind(
        "gpu-idle",
        40,
        "",
        note="▽ idle",
        states_duration=True,
        wastes_all=True,
        saves_no_more=True,
        lines="quiet",
        figures=("GPU use", "CPU"),
    ),
    "Idle GPUs",
    "warning",
    Limits,
    find,
    needs="utilization below `idle_below` for `idle_after_s` on all GPUs, on one node's GPUs, or on some"
    " GPUs while others work, once they have worked; or for `idle_never_s` on GPUs that have never worked"
    " (twice as long while the log is written to, or if it announced loading or compiling shortly before"
    " its last line).",
    excused="start-up, announced pauses as for stalls, a count of other work that moves, CPUs that prepare"
    " data before the first step, a node that has always worked rarely, and GPUs that rest in turn: within a"
    " step, as long as they have before, or, in reinforcement learning, for `idle_never_s`.",
    ends="with work; a single blip is none",
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


UNDERUSED = Check(
    FindingKind("gpu-underused", 170, "GPUs underused", figures=("GPU use", "CPU")),
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
