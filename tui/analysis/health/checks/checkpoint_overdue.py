"""Overdue checkpoints: compared with the saves that the log announces, or with the run's usual interval."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import (
    HOUR_S,
    MINUTE_S,
    Check,
    Example,
    FindingKind,
    Findings,
    Severity,
    Watched,
    limit,
)
from tui.analysis.series import values_between
from tui.text.units import counted, duration

_LISTED_AFTER_S = 15 * MINUTE_S  # A large checkpoint may take this long to be written and listed.

Saved = tuple[float, str]
"""The time of a save (epoch s) and the checkpoint's name."""


@dataclass(frozen=True, slots=True)
class Limits:
    checkpoint_factor: float = limit(
        1.5, "A checkpoint is overdue after this many times the longest usual interval."
    )


def find(run: Watched, limits: Limits) -> Findings:
    logged = [(at_ns / NS_PER_S, name) for name, at_ns in run.progress.saves]
    yield from list(_unstored_saves(run, logged)) or _overdue(run, limits, run.stored or logged)


def _unstored_saves(run: Watched, logged: Sequence[Saved]) -> Findings:
    """Report saves that the log reports, or its settings announce, but that became no checkpoints."""
    progress, steps = run.progress, run.progress.step_series
    newest = run.stored[-1][0] if run.stored else -math.inf
    lost = [at_s for at_s, _ in logged if at_s > newest + _LISTED_AFTER_S]
    # A single logged save may be another kind of file. Only info if no save was ever stored: some runs store
    # their checkpoints elsewhere.
    if run.run.checkpoints is not None and len(lost) > 1 and run.now_s - lost[1] > _LISTED_AFTER_S:
        count = counted(len(lost), "save")
        if run.stored:
            text = f"{count} announced since the last checkpoint, {duration(run.now_s - newest)} ago"
            yield run.finding("warning", text, short=f"{count} announced, none stored", since_s=lost[0])
        else:
            text = f"{count} in the log, none stored: not in $BT_CHECKPOINT_DIR?"
            yield run.finding("info", text, since_s=lost[0])
    interval = progress.save_every or 0
    due_index = bisect_left(steps.values, interval)
    # The announced interval may be in another kind of steps, or a time may apply instead: wait for three.
    is_due = 0 < due_index < len(steps) and (progress.step or 0) >= 3 * interval
    has_saved = run.stored or logged
    if is_due and not has_saved and run.now_s - (run.training_since or math.inf) >= HOUR_S:
        announced = f"announced every {counted(interval, 'step')}"
        text = f"no checkpoint by step {progress.step}, though one was {announced}"
        yield run.finding(
            "warning", text, short=f"no checkpoint, {announced}", since_s=steps.times[due_index]
        )


def _overdue(run: Watched, limits: Limits, saved: Sequence[Saved]) -> Findings:
    """Report an overdue checkpoint: later than the newest intervals allow, in time and, if known, in steps.

    Steps count because a run that is slower, pauses or loads reaches its next save later. If an interval was
    up to twice as long as the one before, say, the current interval may be twice as long, too.
    """
    times = [saved_s for saved_s, _ in saved[-8:]]
    if len(times) == 2 and run.training_since is not None and run.training_since < times[0]:
        times = [run.training_since, *times]  # the start of training serves as the first save
    intervals = [later - earlier for earlier, later in pairwise(times) if later > earlier]
    if len(intervals) < 2:
        return
    factor = run.eased(limits.checkpoint_factor, 1.0, held=run.is_held())
    begin_s = max(times[-1], run.attempt_since)
    since_s = run.now_s - begin_s
    allowed_s = max(factor * max(intervals), max(intervals) + 5 * MINUTE_S)
    steps_per_interval = [run.steps_between(*pair) for pair in pairwise(times)]
    steps_since = run.steps_between(begin_s)
    max_steps = max(steps_per_interval)
    if not max_steps:
        return  # without steps, saves may be of results, which take any time; or the log is not read yet
    regular = [steps for steps in steps_per_interval if 10 * steps >= max_steps]  # omit two saves at once
    varies_by = max((max(pair) / min(pair) for pair in pairwise(regular)), default=1.0)
    if since_s > allowed_s and steps_since >= factor * varies_by * max_steps:
        usual_s = median(intervals)
        losses = run.progress.eval_loss_series
        before, after = values_between(losses, end=times[-1]), values_between(losses, times[-1])
        # If no evaluation was better since, the run may save only its best checkpoint.
        severity: Severity = "info" if before and after and min(after) >= min(before) else "warning"
        text = f"no checkpoint for {duration(since_s)}, usually every {duration(usual_s)}"
        yield run.finding(severity, text, since_s=times[-1] + usual_s)


CHECK = Check(
    FindingKind("checkpoint-overdue", 120, "checkpoint overdue", may_never_save_again=True),
    "Overdue checkpoint",
    "warning; info if no save of the log was ever stored",
    Limits,
    find,
    needs="no checkpoint for `checkpoint_factor` times the longest of the newest intervals, in time and in"
    " steps, or longer if these vary; or two saves that the log announces"
    " and that are not stored; or, an hour after the first step, none at three times the interval of the"
    " settings.",
    excused="a run that is slower, paused or stalled, counts no steps, or whose loss is broken. Reported as"
    " info if no later evaluation was better, since only the best may be saved.",
    ends="with the next checkpoint",
    costs="nothing until the run fails, then the work since the last checkpoint",
    covered_by=frozenset({"stalled", "loss-not-finite", "loss-exploding"}),
    examples=(
        Example("saves that end", "no checkpoint for", saved_s=(1200, 2400, 3600)),
        Example(
            "saves that end, of a best and a last checkpoint at once",
            "no checkpoint for",
            minutes=180,
            saved_s=(1200, 1210, 2400, 2410, 3600, 3610),
        ),
        Example("two saves that end", "no checkpoint for", saved_s=(1200, 2400)),
        Example(
            "a second training, which counts its steps",
            line="{{'loss': {loss:.4f}, 'epoch': 0.5}}",
            stops_s=3700,
            saved_s=(1200, 2400, 3600),
            others=tuple((at, f"step {at // 50 - 75}/9000 loss=2.0") for at in range(3800, 7200, 50)),
        ),
        Example(
            "saves of trials, which end at any time",
            line="trial pruned",
            saved_s=(1200, 1800, 3300, 3900, 4100),
        ),
        Example(
            "results of a search without steps",
            line="fold {step} is scored",
            saved_s=(1200, 2400, 3600),
        ),
        Example("saves that continue", saved_s=(1200, 2400, 3600, 4800, 6000)),
    ),
)
