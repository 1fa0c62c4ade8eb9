"""Detect idle GPUs: all of them, those of a node, or some within a busy node."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from api_client.models.logs import NS_PER_S
from tui.analysis.health.context import Context, finding, start_of_condition
from tui.analysis.node_metrics import NodeSnapshot, mean_known
from tui.analysis.progress.phases import SINGLE_PAUSE_S
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.series import Series, mean_between, value_range
from tui.text.units import counted, duration, percent

_LATE_SAMPLES_S = 300.0  # If a node has been silent for longer, there is no telling whether it is idle.
_LOADING_FACTOR = 2.0  # A log that is written to, or that announced it, shows that something still loads …
_MOVING_FACTOR = 4.0  # … and a count that moves shows that it will end.
_GOES_ON_S = 60.0
_SETTLED_S = 300.0
_LONG_FACTOR = 4.0
_PARTS = 3  # Underused GPUs are so in each part of the time.
_BUSY_CPUS = 0.8


def idle_gpus(context: Context) -> Iterator[HealthFinding]:
    """Report GPUs that worked and are now idle: a single finding for the job if all are."""
    metrics, rules = context.metrics, context.rules
    at = metrics.at
    if at is None:
        return
    idle = {
        node.name: since
        for node in metrics.nodes
        if (since := _idle_since(context, node.mean_utilization, at)) is not None
    }
    threshold = f"below {percent(rules.idle_below)}"
    with_gpus = sum(len(node.mean_utilization) > 0 for node in metrics.nodes)
    if idle and len(idle) == with_gpus:
        since = max(idle.values())
        ending_s = rules.stall_aside_s if context.progress.is_done else 0.0
        moving_s = _MOVING_FACTOR * rules.idle_never_s if _is_moving(context) else 0.0
        allowed_s = max(context.pause_allowed_s, ending_s, moving_s)
        if at - since < allowed_s or _has_just_ended(context, since, at):
            return
        how_long = duration(at - since)
        text, short = f"GPUs idle ({threshold}) for {how_long}", f"GPUs idle for {how_long}"
        yield finding(FindingKind.GPU_IDLE, "warning", text, short=short, since_s=since)
        return
    for name, since in idle.items():
        how_long = duration(at - since)
        if at - since < context.pause_allowed_s or _is_resting(context, at, since):
            continue
        text, short = f"{name}: GPUs idle ({threshold}) for {how_long}", f"{name} GPUs idle for {how_long}"
        yield finding(FindingKind.GPU_IDLE, "warning", text, short=short, node=name, since_s=since)
    for node in metrics.nodes:
        if node.name not in idle:
            yield from _idle_among_busy(context, node, at)


def underused_gpus(context: Context) -> Iterator[HealthFinding]:
    """Remark that GPUs are never busy, although the run makes steps: most of all if the CPUs are."""
    rules, progress, at = context.rules, context.progress, context.metrics.at
    if at is None or progress.moving_target or (progress.last_step_at_ns or 0) / NS_PER_S < at - _SETTLED_S:
        return
    held = context.is_held(FindingKind.GPU_UNDERUSED)
    busy_cpus = context.with_hysteresis(_BUSY_CPUS, 0.0, held=held)
    cores = (context.run.job.instance_type.millicpu_limit if context.run.job.instance_type else 0) / 1000
    for window_s, below, cpu_from in (
        (rules.underused_after_s, rules.underused_below, busy_cpus * cores or math.inf),
        (_LONG_FACTOR * rules.underused_after_s, rules.active_from, 0.0),
    ):
        since = at - window_s
        if since < (context.training_since or math.inf) + _SETTLED_S:
            continue
        parts = [(since + n * window_s / _PARTS, since + (n + 1) * window_s / _PARTS) for n in range(_PARTS)]
        uses = _means(parts, [node.mean_utilization for node in context.metrics.nodes])
        cpus = _means(parts, [node.cpu for node in context.metrics.nodes])
        limit = context.with_hysteresis(below, 1.0, held=held)
        if max(uses, default=1.0) < limit and len(uses) == _PARTS and min(cpus, default=0.0) >= cpu_from:
            text = f"GPUs only {percent(sum(uses) / _PARTS)} busy for {duration(window_s)} or longer"
            if cpu_from:
                text += f", CPUs at their limit ({max(cpus):.0f} of {cores:.0f} cores): waiting for data?"
            yield finding(FindingKind.GPU_UNDERUSED, "info", text, since_s=since)
            return


def _means(parts: Iterable[tuple[float, float]], series: Sequence[Series]) -> list[float]:
    """Return the mean of all series in each part that has samples."""
    means = (mean_known(mean_between(one, start, end) for one in series) for start, end in parts)
    return [mean for mean in means if mean is not None]


def _has_just_ended(context: Context, since: float, at: float) -> bool:
    """Return True if the first steps for long are newer than the samples, which do not show them yet."""
    progress = context.progress
    times = progress.step_series.times or progress.loss_series.times
    place = bisect_left(times, since + _GOES_ON_S)
    return place < len(times) and times[place] > at - _GOES_ON_S


def _idle_since(context: Context, utilization: Series, at: float) -> float | None:
    """Return when the GPUs became idle, None if that is too recent; GPUs that never worked need longer."""
    rules = context.rules
    idle_since = _idle_since_uninterrupted(utilization, rules.idle_below, rules.active_from)
    if idle_since is None or at - utilization.times[-1] > _LATE_SAMPLES_S:
        return None
    since = max(idle_since, context.attempt_since)
    worked = _has_worked(utilization, context.attempt_since, since, rules.active_from)
    if not worked and context.training_since is not None:
        # Metrics may cover only the last hour: a run that makes steps has worked, whatever they show.
        since, worked = max(since, context.training_since), True
    allowed_s = rules.idle_after_s
    if not worked:
        held = context.is_held(FindingKind.GPU_IDLE)
        loads = not held and (_is_talking(context) or _is_loading(context, since))
        allowed_s = rules.idle_never_s * (_LOADING_FACTOR if loads else 1)
    elif context.loads_again:
        allowed_s = rules.idle_never_s
    pause_s = rules.stall_pause_factor * _longest_idle_time(utilization, since, rules.active_from)
    return since if at - since >= max(allowed_s, pause_s) else None


def _is_talking(context: Context) -> bool:
    """Return True if the log is written to: the run may download, prepare data, or load a large model."""
    line_ns = context.progress.last_line_at_ns
    return line_ns is not None and context.now_s - line_ns / NS_PER_S < context.rules.idle_after_s


def _is_loading(context: Context, since: float) -> bool:
    """Return True if the log announced loading or compiling shortly before it fell silent."""
    last_s = (context.progress.last_line_at_ns or 0) / NS_PER_S
    return (context.progress.announced_at or 0.0) >= max(since, last_s - context.rules.idle_after_s)


def _is_moving(context: Context) -> bool:
    """Return True if a count other than the steps moves: data is prepared, or the model is uploaded."""
    moved_at, step_ns = context.progress.moved_at or 0.0, context.progress.last_step_at_ns or 0
    return moved_at > max(step_ns / NS_PER_S, context.now_s - context.rules.idle_after_s)


def _is_resting(context: Context, at: float, since: float) -> bool:
    """Return True if the run goes on without a node: in reinforcement learning nodes take turns."""
    progress, rules = context.progress, context.rules
    step_ns = progress.last_step_at_ns
    if step_ns is None or progress.step_interval_s is None:
        return False
    goes_on = progress.moving_target and step_ns / NS_PER_S > since + max(
        _GOES_ON_S, progress.step_interval_s
    )
    within_a_step = at - since < rules.stall_pause_factor * progress.step_interval_s
    return within_a_step or (goes_on and at - since < rules.idle_never_s)


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


def _has_worked(series: Series, since: float, until: float, active_from: float) -> bool:
    times = series.times
    earlier = value_range(series.values[bisect_left(times, since) : bisect_left(times, until)])
    return earlier is not None and earlier[1] >= active_from


def _idle_among_busy(context: Context, node: NodeSnapshot, at: float) -> Iterator[HealthFinding]:
    """Report idle GPUs next to busy ones of the same node: a dead rank, or GPUs never used."""
    rules = context.rules
    start = at - rules.idle_after_s
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
    still = [
        gpu
        for gpu, series in zip(node.gpus, node.gpu_utilization, strict=True)
        if gpu in means
        and means[gpu] < rules.idle_below / 2
        and at - start >= rules.stall_pause_factor * _longest_idle_time(series, start, rules.active_from)
        and (
            _has_worked(series, -math.inf, start, rules.active_from)
            or at - series.times[0] >= rules.idle_never_s
        )
    ]
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
        others = counted(len(busy), "other works", "others work")
        text = f"{node.name}: GPU {still[0]} idle while {others}"
        short = f"{node.name} GPU {still[0]} idle for {duration(at - since)}"
    else:
        gpus = f"{len(still)} of {counted(len(node.gpus), 'GPU')} idle"
        text = f"{node.name}: {gpus}"
        short = f"{node.name} {gpus} for {duration(at - since)}"
    yield finding(FindingKind.GPU_IDLE, "warning", text, short=short, node=node.name, since_s=since)
