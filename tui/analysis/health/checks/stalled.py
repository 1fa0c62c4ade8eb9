"""A run that makes no steps: no output for longer than its own pattern allows, whatever the GPUs show."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, pstdev

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import (
    HOUR_S,
    MINUTE_S,
    WORKING,
    Check,
    Example,
    FindingKind,
    Findings,
    Severity,
    Watched,
    limit,
)
from tui.analysis.health.windows import lowest_since, values_between
from tui.analysis.series import mean_between
from tui.text.units import duration, percent

_FULL = 0.99  # Ranks that wait in a collective keep their GPUs busy, without variation.
_TALKING, _UNREAD = 1.5, 3.0  # A run that logs on, or shows no steps, is given this many times as long.


@dataclass(frozen=True, slots=True)
class Limits:
    stall_after_s: float = limit(
        600.0, "Minimum time without a step or a log line; half as long again if lines continue."
    )


def find(run: Watched, limits: Limits) -> Findings:
    progress = run.progress
    if progress.last_line_at_ns is None:
        return
    line_s = progress.last_line_at_ns / NS_PER_S
    gap_s = max((end_s for _, end_s in progress.gaps), default=0.0)
    unread_s = _UNREAD * limits.stall_after_s
    # A restart is a start, also when the log does not mention it. A gap may hide lines and steps.
    quiet_since = max(line_s, gap_s, run.attempt_since)
    step_s = run.last_step_s
    if step_s is None:
        yield from _without_steps(run, line_s, run.now_s - quiet_since, unread_s)
        return
    if progress.is_done:
        if run.now_s - quiet_since > unread_s and not run.are_gpus_idle:
            lasts = duration(run.now_s - quiet_since)
            text, short = f"all steps done, but no log line for {lasts}", f"done, but not exiting for {lasts}"
            yield run.finding("warning", text + _gpu_use(run), short=short, since_s=line_s)
        return
    step_s = max(step_s, gap_s)
    usual_s = progress.step_interval_s or 0.0
    usually = f", usually every {duration(max(1.0, usual_s))}" if usual_s else ""
    # One step gives no interval: a reinforcement learning step may take a quarter of an hour. Nor do steps
    # that are long over, if a count of other work has come to its end since.
    starting = not usual_s or run.training_since is None or run.loads_again
    other_work = (progress.finished_at or 0.0) > step_s + _TALKING * limits.stall_after_s
    least_s = max(run.pause_allowed_s(1.25), unread_s if starting or other_work else 0.0)
    silent_since = max(step_s, quiet_since)
    silent_s = run.now_s - silent_since
    after_s = limits.stall_after_s * _patience(run, silent_since)
    allowed_s = max(after_s, 5 * usual_s, least_s)
    if silent_s > allowed_s:
        text = f"no step and no log line for {duration(silent_s)}{usually}{_gpu_use(run)}"
        # A run may evaluate, compile or save for this long without a word.
        sure = silent_s > max((15 * MINUTE_S), (1 if run.are_gpus_idle else 2) * allowed_s)
        short = f"no step, no log line for {duration(silent_s)}"
        severity: Severity = "critical" if sure else "warning"
        yield run.finding(severity, text, short=short, since_s=silent_since)
        return
    allowed_s = max(after_s, _TALKING * limits.stall_after_s, 20 * usual_s, least_s)
    # As long as the log shows progress of an evaluation, the run is busy with that.
    busy_at = max(step_s, progress.run_phase.newest if progress.run_phase is not None else 0.0)
    if usual_s and run.now_s - max(busy_at, run.attempt_since) > allowed_s:
        lasts = duration(run.now_s - step_s)
        text = f"no step for {lasts}{usually}, but still logging{_gpu_use(run)}"
        yield run.finding("warning", text, short=f"no step for {lasts}, still logging", since_s=step_s)


def _without_steps(run: Watched, line_s: float, silent_s: float, unread_s: float) -> Findings:
    """Report silence of a run that logs no steps and logged regularly before, or whose first step hangs."""
    first_ns, pause_s = run.progress.first_line_at_ns, run.progress.line_pause_s
    allowed_s = max(unread_s, 3 * (pause_s or 0.0))
    if first_ns is None or silent_s <= allowed_s:
        return
    is_regular = line_s - first_ns / NS_PER_S >= unread_s and pause_s is not None
    if is_regular or _patience(run, run.now_s - allowed_s) < 1:
        short = f"no log line for {duration(silent_s)}"
        yield run.finding("warning", short + _gpu_use(run), short=short, since_s=line_s)


def _patience(run: Watched, since: float) -> float:
    """Return how many times the usual patience the GPUs suggest: a hang leaves them at 0% or 100%.

    Half if all have been fully busy since then, unlike before; twice if some work, but less than before, as
    in an evaluation, or go up and down as before: a hang is flat.
    """
    nodes = [node.mean_utilization for node in run.metrics.nodes]
    begin = max(since - HOUR_S, min(run.works_since, since))
    before = [(use, mean_between(use, begin, since)) for use in nodes]
    compared = [(use, usual) for use, usual in before if usual is not None]
    if compared and all(
        usual < _FULL - 0.02 and (lowest_since(use, since + 2 * MINUTE_S) or 0.0) >= _FULL
        for use, usual in compared
    ):
        return 0.5
    for use, usual in compared:
        spans = ((begin, since), (since + MINUTE_S, run.now_s))
        earlier, now = (values_between(use, *span) or [0.0] for span in spans)
        varies = pstdev(now) > pstdev(earlier) / 2
        if WORKING <= fmean(now) < (_FULL - 0.02 if varies else 0.9 * usual):
            return 2.0
    return 1.0


def _gpu_use(run: Watched) -> str:
    """Describe GPU utilization, since a hang in a collective looks like full load."""
    return f"; GPUs {percent(run.gpu_use)} busy" if run.gpu_use is not None else ""


CHECK = Check(
    FindingKind(
        "stalled",
        10,
        "stalled{since}",
        states_duration=True,
        halts=True,
        saves_no_more=True,
        wastes_all=True,
        lines="quiet",
        figures=("GPU use",),
    ),
    "Stalled",
    "warning; critical after 15 minutes, and twice what the run may pause unless the GPUs are idle as well",
    Limits,
    find,
    needs="steps in the log: no step and no log line for longer than the run's usual intervals allow, even"
    " if the GPUs look busy (ranks that wait in a collective spin at 100%; if they began to, half the time"
    " is enough). A run that still logs but makes no steps is a warning, and so is long silence of a run"
    " without steps.",
    excused="start-up, pauses that the run has recovered from, a first evaluation or save that the log"
    " announces (twice as long while GPUs work) or that begins at a round step or the end of an epoch, a"
    " count of other work that moves, and, for twice the time, GPUs that work less than before, or go up and"
    " down like before.",
    ends="with the next step or log line",
    costs="all GPUs of the run",
    examples=(
        Example("steps stop while the GPUs look busy", "no step, no log line for", stops_s=5450),
        Example("a line each 25 minutes", step_s=1500.0, stops_s=6500),
        Example("a start of 20 minutes", minutes=20, stops_s=0),
        Example(
            "a first evaluation of more than half an hour that is announced, while the GPUs work",
            minutes=95,
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
