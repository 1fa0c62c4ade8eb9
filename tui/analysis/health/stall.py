"""Detect stalled runs: no output for longer than the run's own pattern allows, whatever the GPUs show."""

from __future__ import annotations

from collections.abc import Iterator

from api_client.models.logs import NS_PER_S
from tui.analysis.health.context import Context, finding
from tui.analysis.node_metrics import mean_known
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.text.units import duration, percent

_JUST_BEFORE_S = 60.0  # The timestamp of a listed checkpoint may precede its step's log line by this much.


def stall(context: Context) -> Iterator[HealthFinding]:
    """Report a run that is silent, or logs lines but makes no steps, for far longer than usual.

    A run's pauses (evaluations, checkpoints) are learned: a pause may be a little longer than the longest
    so far. The first one that the log announces may take ``stall_aside_s``.
    """
    told, rules = context.progress, context.rules
    if told.last_line_at_ns is None:
        return
    line_s = told.last_line_at_ns / NS_PER_S
    silent_s = context.now_s - line_s
    if told.last_step_at_ns is None:
        yield from _unread(context, line_s, silent_s)
        return
    if told.total_steps is not None and told.step is not None and told.step >= told.total_steps:
        yield from _after_last_step(context, line_s, silent_s)
        return
    step_s = told.last_step_at_ns / NS_PER_S
    usual_s = told.step_interval_s or 0.0
    sign_s = max(step_s, line_s)
    allowed_s = max(
        rules.stall_after_s,
        rules.stall_steps * usual_s,
        rules.stall_pause_factor * (told.line_pause_s or 0.0),
        # One step gives no interval: a reinforcement learning step may take a quarter of an hour.
        rules.stall_unread_s if told.step is not None and not usual_s else 0.0,
        # The first evaluation or save has no earlier one to compare with.
        rules.stall_aside_s if _first_phase(context, step_s) else 0.0,
    )
    usually = f", usually every {duration(max(1.0, usual_s))}" if usual_s else ""
    if context.now_s - sign_s > allowed_s:
        text = f"no step and no log line for {duration(context.now_s - sign_s)}{usually}{_busy(context)}"
        short = f"no step, no log line for {duration(context.now_s - sign_s)}"
        yield finding(FindingKind.STALLED, "critical", text, short=short, since_s=sign_s)
        return
    talking_s = max(
        rules.stall_talking_s,
        rules.stall_talking_steps * usual_s,
        2 * rules.stall_pause_factor * (told.step_pause_s or 0.0),
    )
    # As long as the log shows progress of an evaluation, the run is busy with that.
    busy_s = step_s if told.run_phase is None else max(step_s, told.run_phase.newest)
    if usual_s and context.now_s - busy_s > talking_s:
        text = f"no step for {duration(context.now_s - step_s)}{usually}, but still logging{_busy(context)}"
        short = f"no step for {duration(context.now_s - step_s)}, still logging"
        yield finding(FindingKind.STALLED, "warning", text, short=short, since_s=step_s)


def _first_phase(context: Context, step_s: float) -> bool:
    """Return True if the log announced a first evaluation or save, or a first checkpoint is listed."""
    run_phase = context.progress.run_phase
    saved = [
        one.created_at.timestamp() for one in context.run.checkpoints or () if one.created_at is not None
    ]
    return (run_phase is not None and run_phase.first) or (
        bool(saved) and min(saved) >= step_s - _JUST_BEFORE_S
    )


def _unread(context: Context, line_s: float, silent_s: float) -> Iterator[HealthFinding]:
    """Report silence of a run that logs no steps and logged regularly before."""
    told, rules = context.progress, context.rules
    if told.first_line_at_ns is None or told.line_pause_s is None:
        return
    logged_s = line_s - told.first_line_at_ns / NS_PER_S
    allowed_s = max(rules.stall_unread_s, 3 * told.line_pause_s)
    if logged_s >= rules.stall_unread_s and silent_s > allowed_s:
        short = f"no log line for {duration(silent_s)}"
        yield finding(FindingKind.STALLED, "warning", short + _busy(context), short=short, since_s=line_s)


def _after_last_step(context: Context, line_s: float, silent_s: float) -> Iterator[HealthFinding]:
    """Report a job that does not end after its last step while its GPUs are busy: ranks stuck in shutdown."""
    use = mean_known(node.mean_utilization_now for node in context.metrics.nodes)
    idle = use is not None and use < context.rules.idle_below  # Idle GPUs have their own finding.
    if silent_s > context.rules.stall_unread_s and not idle:
        text = f"all steps done, but no log line for {duration(silent_s)}{_busy(context)}"
        short = f"done, but not exiting for {duration(silent_s)}"
        yield finding(FindingKind.STALLED, "warning", text, short=short, since_s=line_s)


def _busy(context: Context) -> str:
    """Describe GPU utilization, since a hang in a collective looks like full load."""
    use = mean_known(node.mean_utilization_now for node in context.metrics.nodes)
    return f"; GPUs {percent(use)} busy" if use is not None else ""
