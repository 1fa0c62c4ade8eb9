"""Detect idle GPUs: all of them, those of a node, or some within a busy node."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from tui.analysis.health.context import Context, finding, start_of_condition
from tui.analysis.node_metrics import NodeSnapshot
from tui.analysis.progress.phases import SINGLE_PAUSE_S
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.series import Series, mean_between, value_range
from tui.text.units import duration, percent

_LATE_SAMPLES_S = 300.0  # If a node has been silent for longer, there is no telling whether it is idle.
# GPUs that never worked next to others that do may start late: wait this many idle times.
_SINGLE_NODE_FACTOR = 2.0


def idle_gpus(context: Context) -> Iterator[HealthFinding]:
    """Report GPUs that worked and are now idle: a single finding for the job if all are."""
    metrics, rules = context.metrics, context.rules
    at = metrics.at
    if at is None:
        return
    # Metrics may cover only the last hour: a run that has logged a step has worked, whatever they show.
    worked = context.progress.last_step_at_ns is not None
    idle = {
        node.name: since
        for node in metrics.nodes
        if (since := _idle_since(context, node.mean_utilization, at, worked=worked)) is not None
    }
    told = f"below {percent(rules.idle_below)}"
    with_gpus = sum(len(node.mean_utilization) > 0 for node in metrics.nodes)
    if idle and len(idle) == with_gpus:
        since = max(idle.values())
        how_long = duration(at - since)
        text, short = f"GPUs idle ({told}) for {how_long}", f"GPUs idle for {how_long}"
        yield finding(FindingKind.GPU_IDLE, "warning", text, short=short, since_s=since)
        return
    for name, since in idle.items():
        how_long = duration(at - since)
        text, short = f"{name}: GPUs idle ({told}) for {how_long}", f"{name} GPUs idle for {how_long}"
        yield finding(FindingKind.GPU_IDLE, "warning", text, short=short, node=name, since_s=since)
    for node in metrics.nodes:
        if node.name not in idle:
            yield from _idle_among_busy(context, node, at)


def _idle_since(context: Context, utilization: Series, at: float, *, worked: bool) -> float | None:
    """Return when the GPUs became idle, None if that is too recent; GPUs that never worked need longer."""
    rules = context.rules
    times, values = utilization.times, utilization.values
    since = _idle_since_uninterrupted(utilization, rules.idle_below, rules.active_from)
    if (
        since is None
        or at - times[-1] > max(_LATE_SAMPLES_S, rules.idle_after_s)
        or at - since < rules.idle_after_s
        or at - since < rules.stall_pause_factor * _longest_idle_time(utilization, since, rules.active_from)
    ):
        return None
    earlier = value_range(values[: bisect_left(times, since)])
    if (
        worked
        or at - since >= rules.idle_never_s
        or (earlier is not None and earlier[1] >= rules.active_from)
    ):
        return since
    return None


def _idle_since_uninterrupted(utilization: Series, idle_below: float, active_from: float) -> float | None:
    """Return since when the GPUs have been idle without interruption; None if they are not.

    A single slightly higher sample does not count as work: it may be a monitoring tool or a heartbeat.
    """
    blips = start_of_condition(utilization, lambda value: value < idle_below, forgiven=1)
    steady = start_of_condition(utilization, lambda value: value < active_from)
    return None if blips is None or steady is None else max(blips, steady)


def _longest_idle_time(utilization: Series, until: float, active_from: float) -> float:
    """Return the longest idle time (s) that ended with work, as when phases alternate.

    A single long one is an accident, not a pattern.
    """
    rests: list[float] = []
    worked_at: float | None = None
    rested = False
    for time, value in zip(utilization.times, utilization.values, strict=True):
        if time > until:
            break
        if value != value:
            continue
        if value < active_from:
            rested = worked_at is not None
            continue
        if rested and worked_at is not None:
            rests.append(time - worked_at)
        worked_at, rested = time, False
    rests.sort()
    if rests and rests[-1] > SINGLE_PAUSE_S and (len(rests) < 2 or rests[-2] < rests[-1] / 2):
        rests.pop()
    return rests[-1] if rests else 0.0


def _idle_among_busy(context: Context, node: NodeSnapshot, at: float) -> Iterator[HealthFinding]:
    """Report idle GPUs next to busy ones of the same node: a dead rank, or GPUs never used."""
    rules = context.rules
    start = at - _SINGLE_NODE_FACTOR * rules.idle_after_s
    if len(node.gpus) < 2:
        return
    means: dict[str, float] = {}
    for gpu, series in zip(node.gpus, node.gpu_utilization, strict=True):
        mean = mean_between(series, start, at)
        if (
            mean is not None
            and series.times[0] <= start + rules.idle_after_s / 2
            and series.times[-1] > start
        ):
            means[gpu] = mean
    still = [gpu for gpu, mean in means.items() if mean < rules.idle_below / 2]
    busy = [mean for mean in means.values() if mean >= rules.active_from]
    if not still or not busy:
        return
    since = start
    for gpu, series in zip(node.gpus, node.gpu_utilization, strict=True):
        if gpu in still:
            since = min(
                since, _idle_since_uninterrupted(series, rules.idle_below, rules.active_from) or since
            )
    if len(still) == 1:
        others = "another works" if len(busy) == 1 else f"{len(busy)} others work"
        text = f"{node.name}: GPU {still[0]} idle while {others}"
        short = f"{node.name} GPU {still[0]} idle for {duration(at - since)}"
    else:
        text = f"{node.name}: {len(still)} of {len(node.gpus)} GPUs idle"
        short = f"{node.name} {len(still)} of {len(node.gpus)} GPUs idle for {duration(at - since)}"
    yield finding(FindingKind.GPU_IDLE, "warning", text, short=short, node=node.name, since_s=since)
