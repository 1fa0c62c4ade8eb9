"""Detect stalled runs: no output for longer than the run's own pattern allows, whatever the GPUs show."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from api_client.models.logs import NS_PER_S
from tui.analysis.health.context import Context, finding, start_of_condition
from tui.analysis.node_metrics import mean_known
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.series import Series
from tui.text.units import duration, percent

_SURE_S = 900.0
"""A run may evaluate, compile or save for this long without a word, however short its steps are."""
_PINNED = 0.99  # Ranks that wait in a collective keep their GPUs at 100%, without variation.
_SELDOM = 0.2  # A run whose GPUs are often that busy may just work.
_SAMPLE_S, _LEAST_S = 60.0, 120.0


def stall(context: Context) -> Iterator[HealthFinding]:
    """Report a run that is silent, or logs lines but makes no steps, for far longer than usual.

    It is critical once the GPUs are idle as well, or the silence is beyond doubt.
    """
    progress, rules = context.progress, context.rules
    if progress.last_line_at_ns is None:
        return
    line_at = progress.last_line_at_ns / NS_PER_S
    # A restart is a start, also when the log does not mention it. A gap may hide lines and steps.
    gap_at = progress.unread_until_ns / NS_PER_S
    since_at = max(line_at, gap_at, context.attempt_since)
    silent_s = context.now_s - since_at
    if progress.last_step_at_ns is None:
        yield from _unread(context, line_at, silent_s)
        return
    if progress.is_done:
        yield from _after_last_step(context, line_at, silent_s)
        return
    step_at = max(progress.last_step_at_ns / NS_PER_S, gap_at)
    usual_s = progress.step_interval_s or 0.0
    starting = usual_s == 0 or context.training_since is None or context.loads_again
    sign_at = max(step_at, since_at)
    # One step gives no interval: a reinforcement learning step may take a quarter of an hour. Nor do steps
    # that are long over, if a count of other work has come to its end since.
    other_work = (progress.finished_at or 0.0) > step_at + rules.stall_talking_s
    unread_s = rules.stall_unread_s if starting or other_work else 0.0
    pinned = _are_gpus_pinned(context, sign_at)
    allowed_s = max(
        rules.stall_after_s / (2 if pinned else 1),
        rules.stall_steps * usual_s,
        context.pause_allowed_s,
        unread_s,
    )
    usually = f", usually every {duration(max(1.0, usual_s))}" if usual_s else ""
    silent_s = context.now_s - sign_at
    if silent_s > allowed_s:
        text = f"no step and no log line for {duration(silent_s)}{usually}{_busy(context)}"
        short = f"no step, no log line for {duration(silent_s)}"
        sure = silent_s > max(_SURE_S, (1 if _is_idle(context) else 2) * allowed_s)
        yield finding(
            FindingKind.STALLED, "critical" if sure else "warning", text, short=short, since_s=sign_at
        )
        return
    talking_s = max(
        rules.stall_after_s if _are_gpus_pinned(context, step_at) else rules.stall_talking_s,
        rules.stall_talking_steps * usual_s,
        2 * rules.stall_pause_factor * (progress.step_pause_s or 0.0),
        context.pause_allowed_s,
        unread_s,
    )
    # As long as the log shows progress of an evaluation, the run is busy with that.
    busy_at = step_at if progress.run_phase is None else max(step_at, progress.run_phase.newest)
    if usual_s and context.now_s - max(busy_at, context.attempt_since) > talking_s:
        text = f"no step for {duration(context.now_s - step_at)}{usually}, but still logging{_busy(context)}"
        short = f"no step for {duration(context.now_s - step_at)}, still logging"
        yield finding(FindingKind.STALLED, "warning", text, short=short, since_s=step_at)


def _unread(context: Context, line_at: float, silent_s: float) -> Iterator[HealthFinding]:
    """Report silence of a run that logs no steps and logged regularly before, or whose first step hangs."""
    progress, rules = context.progress, context.rules
    if progress.first_line_at_ns is None:
        return
    logged_s = line_at - progress.first_line_at_ns / NS_PER_S
    allowed_s = max(rules.stall_unread_s, 3 * (progress.line_pause_s or 0.0))
    is_regular = logged_s >= rules.stall_unread_s and progress.line_pause_s is not None
    if silent_s > allowed_s and (is_regular or _are_gpus_pinned(context, context.now_s - allowed_s)):
        short = f"no log line for {duration(silent_s)}"
        yield finding(FindingKind.STALLED, "warning", short + _busy(context), short=short, since_s=line_at)


def _after_last_step(context: Context, line_at: float, silent_s: float) -> Iterator[HealthFinding]:
    """Report a job that does not end after its last step while its GPUs are busy: ranks stuck in shutdown."""
    # Idle GPUs have their own finding.
    if silent_s > context.rules.stall_unread_s and not _is_idle(context):
        text = f"all steps done, but no log line for {duration(silent_s)}{_busy(context)}"
        short = f"done, but not exiting for {duration(silent_s)}"
        yield finding(FindingKind.STALLED, "warning", text, short=short, since_s=line_at)


def _is_idle(context: Context) -> bool:
    use = mean_known(node.mean_utilization_now for node in context.metrics.nodes)
    return use is not None and use < context.rules.idle_below


def _are_gpus_pinned(context: Context, since: float) -> bool:
    """Return True if all GPUs have been at 100% since then, without variation, but seldom before."""
    held = context.is_held(FindingKind.STALLED)
    used = [node.mean_utilization for node in context.metrics.nodes if node.mean_utilization.values]
    return bool(used) and all(_is_pinned(series, since + _SAMPLE_S, held=held) for series in used)


def _is_pinned(series: Series, since: float, *, held: bool) -> bool:
    begun = start_of_condition(series, lambda value: value >= _PINNED)
    if begun is None or begun > since + _SAMPLE_S or series.times[-1] < since + _LEAST_S:
        return False
    before = series.values[: bisect_left(series.times, begun)]
    return held or 0 < len(before) * _SELDOM >= sum(value >= _PINNED for value in before)


def _busy(context: Context) -> str:
    """Describe GPU utilization, since a hang in a collective looks like full load."""
    use = mean_known(node.mean_utilization_now for node in context.metrics.nodes)
    return f"; GPUs {percent(use)} busy" if use is not None else ""
