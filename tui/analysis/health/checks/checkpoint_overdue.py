"""Checkpoints that are overdue: by the log's announcements, or by the run's usual interval."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import MINUTE_S, Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.health.windows import values_between
from tui.text.units import counted, duration

_LISTED_AFTER_S = 15 * MINUTE_S  # A large checkpoint may take this long to be written and listed.

Saved = tuple[float, str]
"""The time of a save (epoch s) and its name."""


@dataclass(frozen=True, slots=True)
class Limits:
    checkpoint_factor: float = limit(
        1.5, "A checkpoint is overdue after this many times the longest usual interval."
    )


def find(run: Watched, limits: Limits) -> Findings:
    logged = [(at_ns / NS_PER_S, name) for name, at_ns in run.progress.saves]
    yield from list(_never_came(run, logged)) or _late(run, limits, run.stored or logged)


def _never_came(run: Watched, logged: Sequence[Saved]) -> Findings:
    """Report saves that the log announced, or its settings, and that did not become checkpoints."""
    progress, steps = run.progress, run.progress.step_series
    newest = run.stored[-1][0] if run.stored else -math.inf
    lost = [at_s for at_s, _ in logged if at_s > newest + _LISTED_AFTER_S]
    # A single save may be another kind of file, and some runs keep their checkpoints elsewhere.
    if run.run.checkpoints is not None and len(lost) > 1 and run.now_s - lost[1] > _LISTED_AFTER_S:
        count = counted(len(lost), "save")
        if run.stored:
            text = f"{count} announced since the last checkpoint, {duration(run.now_s - newest)} ago"
            yield run.finding("warning", text, short=f"{count} announced, none stored", since_s=lost[0])
        else:
            text = f"{count} in the log, none stored: not in $BT_CHECKPOINT_DIR?"
            yield run.finding("info", text, since_s=lost[0])
    every, due = progress.save_every or 0, bisect_left(steps.values, progress.save_every or 0)
    # The announced interval may be counted in other steps, from which the first save may differ.
    is_due = 0 < due < len(steps) and (progress.step or 0) >= 2.2 * every
    if is_due and run.training_since is not None and not run.stored and not logged:
        announced = f"announced every {counted(every, 'step')}"
        text = f"no checkpoint by step {progress.step}, though one was {announced}"
        yield run.finding("warning", text, short=f"no checkpoint, {announced}", since_s=steps.times[due])


def _late(run: Watched, limits: Limits, saved: Sequence[Saved]) -> Findings:
    """Report a checkpoint overdue by the longest of the newest intervals, in time and, if known, in steps.

    A run that is slower, pauses or loads makes fewer steps, and so has less to save.
    """
    times = [at for at, _ in saved[-8:]]
    intervals = [later - at for at, later in pairwise(times) if later > at]
    if len(intervals) < 2:
        return
    factor = run.eased(limits.checkpoint_factor, 1.0, held=run.is_held())
    allowed_s = max(factor * max(intervals), max(intervals) + 5 * MINUTE_S)
    begin_s = max(times[-1], run.attempt_since)
    since_s = run.now_s - begin_s
    allowed_steps = factor * max(_steps_between(run, *interval) for interval in pairwise(times))
    is_due = since_s > allowed_s and _steps_between(run, begin_s, run.now_s) >= allowed_steps
    if is_due and not _keeps_best_only(times, run):
        usual_s = median(intervals)
        text = f"no checkpoint for {duration(since_s)}, usually every {duration(usual_s)}"
        yield run.finding("warning", text, since_s=times[-1] + usual_s)


def _steps_between(run: Watched, start: float, end: float) -> float:
    """Return the steps made from one time to another; 0 if unknown."""
    steps = values_between(run.steps, start, end)
    return max(0.0, steps[-1] - steps[0]) if steps else 0.0


def _keeps_best_only(saved: Sequence[float], run: Watched) -> bool:
    """Return True if saves follow an evaluation loss that is the lowest so far, and none has come since."""
    losses = run.progress.eval_loss_series
    lowest = [math.inf, *accumulate(losses.values, min)]
    best_at = [
        at for at, loss, least in zip(losses.times, losses.values, lowest, strict=False) if loss < least
    ]
    if not best_at or losses.times[-1] <= saved[-1]:
        return False
    if saved[-1] + MINUTE_S < best_at[-1] < run.now_s - _LISTED_AFTER_S:
        return False
    return all(any(-MINUTE_S <= save - at <= _LISTED_AFTER_S for at in best_at) for save in saved)


CHECK = Check(
    FindingKind("checkpoint-overdue", 120, "checkpoint overdue", saves_no_more=True),
    "Overdue checkpoint",
    "warning; info if no save of the log was ever stored",
    Limits,
    find,
    needs="no checkpoint for `checkpoint_factor` times the longest of the newest intervals, in time and in"
    " steps; or two saves that the log announces and that are not stored; or none at twice the interval of"
    " the settings.",
    excused="a run that is slower, paused or stalled, and saves that follow the best evaluation.",
    ends="with the next checkpoint",
    costs="nothing until the run fails, then the work since the last checkpoint",
    covered_by=frozenset({"stalled"}),
    examples=(
        Example("saves that end", "no checkpoint for", saved_s=(1200, 2400, 3600)),
        Example("saves that continue", saved_s=(1200, 2400, 3600, 4800, 6000)),
    ),
)
