"""A stalled run: no steps or log lines for longer than its usual pauses allow, however busy the GPUs are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, pstdev

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import (
    ASIDE_S,
    HOUR_S,
    LONGER,
    MINUTE_S,
    WORKING,
    Check,
    Example,
    FindingKind,
    Findings,
    Watched,
    limit,
)
from tui.analysis.node_metrics import mean_known
from tui.analysis.series import values_between
from tui.text.sanitize import sanitize
from tui.text.units import duration, percent

_FULL = 0.99  # Ranks that wait in a collective keep their GPUs busy, without variation.


@dataclass(frozen=True, slots=True)
class Limits:
    stall_after_s: float = limit(
        600.0, "Minimum time without a step or a log line; half as long again if lines continue."
    )


def find(run: Watched, limits: Limits) -> Findings:
    progress, step_s, usual_s = run.progress, run.last_step_s, run.progress.step_interval_s or 0.0
    if not run.last_line_s:
        return
    gap_s = max((end_s for _, end_s in progress.gaps), default=0.0)
    # Count from a restart, too, even if the log does not mention it, and from the end of a gap in the log,
    # which may hide lines and steps.
    silent_since = max(run.last_line_s, gap_s, run.attempt_since, step_s or 0.0)
    silent_s = run.now_s - silent_since
    no_step_since = max(step_s or 0.0, gap_s)
    if run.now_s - max(no_step_since, run.attempt_since) < limits.stall_after_s / 2:
        return  # by far the most common case
    base_s = ASIDE_S if run.is_aside else limits.stall_after_s
    after_s = base_s * _patience(run, silent_since)
    what, allowed_s = "no step or log line", max(after_s, 5 * usual_s, run.survived_pause_s)
    if step_s is None:
        what, allowed_s = "no log line", _allowed_without_steps_s(run)
    elif progress.is_done:
        what = "all steps done but no log line"
    is_running = step_s is not None and not progress.is_done
    usually = f", usually every {duration(max(1.0, usual_s))}" if usual_s and is_running else ""
    # Ranks that hang in a collective look fully busy.
    utilization = mean_known(node.mean_utilization_now for node in run.metrics.nodes)
    details = f"; GPUs {percent(utilization)} busy" if utilization is not None else ""
    reason = ""
    if run.unsurvived_error is not None:  # explains more than the utilization
        details = reason = f"; error: {sanitize(run.unsurvived_error.text)}"
    if silent_s > allowed_s:
        lasts = f"{what} for {duration(silent_s)}"
        # A run may evaluate, compile or save for this long without a log line.
        is_sure = is_running and silent_s > max(15 * MINUTE_S, 2 * allowed_s)
        yield run.finding(
            "critical" if is_sure else "warning",
            f"{lasts}{usually}{details}",
            short=lasts + reason,
            since_s=silent_since,
        )
        return
    # A run that still logs may take half as long again.
    after_s = max(base_s * _patience(run, no_step_since), 1.5 * limits.stall_after_s)
    allowed_s = max(after_s, 20 * usual_s, run.survived_pause_s, LONGER * (progress.step_pause_s or 0.0))
    # While a count of an evaluation or save rises, the run is busy with that, up to a maximum if it is known.
    phase, busy_at = progress.run_phase, no_step_since
    max_phase_s = max(ASIDE_S, 4 * (progress.step_pause_s or 0.0))
    if phase is not None and (phase.first or run.now_s - phase.since < max_phase_s):
        busy_at = max(busy_at, phase.newest)
    if usual_s and is_running and run.now_s - max(busy_at, run.attempt_since) > allowed_s:
        lasts = duration(run.now_s - no_step_since)
        text = f"no step for {lasts}{usually}, but still logging{details}"
        yield run.finding(
            "warning", text, short=f"no step for {lasts}, still logging{reason}", since_s=no_step_since
        )


def _allowed_without_steps_s(run: Watched) -> float:
    """Return how many seconds a run without steps may be silent; infinite unless it logs regularly."""
    first_s, pause_s = (run.progress.first_line_at_ns or 0) / NS_PER_S, run.progress.line_pause_s
    is_regular = pause_s is not None and run.last_line_s - first_s >= ASIDE_S
    return max(HOUR_S, 3 * (pause_s or 0.0)) if is_regular else math.inf


def _patience(run: Watched, since: float) -> float:
    """Return a factor for the time that a pause may take, from the GPUs: a hang leaves them at 0% or 100%.

    0.5 if all GPUs have been fully busy since ``since``, unlike before; 2 if some GPU works, but less than
    before, as in an evaluation, or its utilization varies as before: in a hang, it is constant.
    """
    begin = max(since - HOUR_S, min(run.works_since, since))
    compared = [
        (then, values_between(node.mean_utilization, since + MINUTE_S, run.now_s) or [0.0])
        for node in run.metrics.nodes
        if (then := values_between(node.mean_utilization, begin, since))
    ]
    if compared and all(
        fmean(then) < _FULL - 0.02 and min(now[1:] or [0.0]) >= _FULL for then, now in compared
    ):
        return 0.5
    # The mean of a node hides a hang that leaves some of its GPUs at 0% and the others at 100%.
    for gpu in (gpu for node in run.metrics.nodes for gpu in node.gpu_utilization):
        then, now = values_between(gpu, begin, since), values_between(gpu, since + MINUTE_S, run.now_s)
        if not then or not now:
            continue
        varies = pstdev(now) > pstdev(then) / 2
        if WORKING <= fmean(now) < (_FULL - 0.02 if varies else 0.9 * fmean(then)):
            return 2.0
    return 1.0


CHECK = Check(
    FindingKind(
        "stalled",
        10,
        "stalled{since}",
        states_duration=True,
        halts=True,
        may_never_save_again=True,
        wastes_all=True,
        lines="quiet",
        figures=("GPU use",),
    ),
    "Stalled",
    "warning; critical after 15 minutes, and twice what the run may pause",
    Limits,
    find,
    needs="steps in the log: no step or log line for longer than the run's usual intervals allow, even"
    " if the GPUs look busy (ranks that wait in a collective spin at 100%; if they began to, half the time"
    " is enough). A run that still logs but makes no steps is a warning, and so is long silence of a run"
    " without steps.",
    excused="pauses that the run has survived before, and a quarter more; for half an hour, work that it has"
    " not done before: start-up, loading, what comes after the last step, and, unless an error came first, a"
    " first evaluation or save that the log announces or that begins at a round step, or whatever else"
    " follows words that it has never logged and that are no warning; for half an hour, or four times its"
    " longest pause, a moving count of work that it has done before; and, for twice the time, GPUs that"
    " work less than before, or go up and down like before.",
    ends="with the next step or log line",
    costs="all GPUs of the run",
    examples=(
        Example("steps stop while the GPUs look busy", "no step or log line for", stops_s=5450),
        Example(
            "a run that has died of an error",
            "no step or log line for",
            stops_s=5450,
            others=((5452, "RuntimeError: DataLoader worker (pid 5102) is killed by signal: Killed."),),
        ),
        Example(
            "an evaluation that takes much longer than the one before",
            "no step or log line for",
            stops_s=5401,
            others=(
                (3002, "***** Running Evaluation *****"),
                (5402, "***** Running Evaluation *****"),
                (5405, "Gathering the predictions of all ranks"),
            ),
        ),
        Example(
            "an evaluation whose count moves for far longer than the one before",
            "no step for",
            minutes=135,
            stops_s=5401,
            others=(
                (3002, "***** Running Evaluation *****"),
                (5402, "***** Running Evaluation *****"),
                *((at, f"Evaluating: {at // 60 - 90}/9600") for at in range(5460, 8100, 60)),
            ),
        ),
        Example("a line each 25 minutes", step_s=1500.0, stops_s=6500),
        Example("a start of 20 minutes", minutes=20, stops_s=0),
        Example(
            "a first evaluation of 25 minutes that is announced",
            minutes=85,
            stops_s=3605,
            others=((3602, "***** Running Evaluation *****"),),
        ),
        Example(
            "an evaluation as long as the last one, although less is logged",
            step_s=lambda at: 1300.0 if 1995 <= at < 2005 else 10.0,
            others=(
                (2003, "***** Running Evaluation *****"),
                (2400, "wandb: Network error"),
                (2800, "wandb: Network error"),
                (6423, "***** Running Evaluation *****"),
            ),
            stops_s=6420,
        ),
    ),
)
