"""Checkpoints that are overdue: by the log's announcements, or by the run's usual interval."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median
from typing import NamedTuple

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import MINUTE_S, Check, Example, FindingKind, Findings, Watched, limit
from tui.text.sanitize import LONGEST_SHOWN
from tui.text.units import counted, duration

_LISTED_AFTER_S = 15 * MINUTE_S  # A large checkpoint may take this long to be written and listed.


@dataclass(frozen=True, slots=True)
class Limits:
    checkpoint_factor: float = limit(
        1.5, "A checkpoint is overdue after this many times the longest usual interval."
    )


class _Saved(NamedTuple):
    at_s: float
    step: int | None


def find(run: Watched, limits: Limits) -> Findings:
    yield from list(_never_came(run)) or _late(run, limits)


def _never_came(run: Watched) -> Findings:
    """Report saves that the log announced, or its settings, and that did not become checkpoints."""
    progress, listed = run.progress, run.run.checkpoints
    newest = max((c.created_at.timestamp() for c in listed or () if c.created_at), default=None)
    saves = [at_ns / NS_PER_S for _, at_ns in progress.saves]
    # Only where the platform has listed some: others keep their checkpoints elsewhere.
    lost = (
        [at for at in saves if newest is None or at > newest + _LISTED_AFTER_S] if listed is not None else []
    )
    # A single save may be another kind of file.
    if len(lost) > 1 and run.now_s - lost[1] > _LISTED_AFTER_S:
        count = counted(len(lost), "save")
        if newest is not None:
            text = f"{count} announced since the last checkpoint, {duration(run.now_s - newest)} ago"
            yield run.finding("warning", text, short=f"{count} announced, none stored", since_s=lost[0])
        elif not listed:
            text = f"{count} in the log, none stored: not in $BT_CHECKPOINT_DIR?"
            yield run.finding("info", text, since_s=lost[0])
    every, steps = progress.save_every, progress.step_series
    if not every or run.training_since is None or progress.step is None or listed or saves:
        return
    due = bisect_left(steps.values, every)
    # The announced interval may be counted in other steps, from which the first save may differ.
    if progress.step >= 2.2 * every and due < len(steps.values) and steps.values[0] < every:
        announced = f"announced every {counted(every, 'step')}"
        text = f"no checkpoint by step {progress.step}, though one was {announced}"
        short = f"no checkpoint, {announced}"
        yield run.finding("warning", text, short=short, since_s=steps.times[due])


def _late(run: Watched, limits: Limits) -> Findings:
    """Report a checkpoint overdue by the run's usual interval, in time and, if known, in steps.

    A slow run saves late by time but not by steps, so both must be exceeded.
    """
    # The newest checkpoints determine the usual interval.
    saved = _saved(run)[-8:]
    intervals = sorted(b.at_s - a.at_s for a, b in pairwise(saved) if b.at_s > a.at_s)
    if len(intervals) < 2:
        return
    usual_s, last = intervals[-1], saved[-1]
    begin_s = max(last.at_s, run.attempt_since)
    factor = run.eased(limits.checkpoint_factor, 1.0, held=run.is_held())
    allowed_s = max(factor * usual_s, usual_s + 5 * MINUTE_S)
    since_s = run.now_s - begin_s
    if since_s - _longest_pause_s(run, begin_s) <= allowed_s or _keeps_best_only(saved, run):
        return
    apart = [b.step - a.step for a, b in pairwise(saved) if a.step is not None and b.step is not None]
    apart = [steps for steps in apart if steps > 0]
    step, last_step = run.progress.step, last.step
    if apart and step is not None and last_step is not None:
        missed = (step - last_step) / median(apart)
        if missed < 1 + (factor - 1) / 2:
            return
    text = f"no checkpoint for {duration(since_s)}, usually every {duration(median(intervals))}"
    yield run.finding("warning", text, since_s=last.at_s + median(intervals))


def _keeps_best_only(saved: Sequence[_Saved], run: Watched) -> bool:
    """Return True if saves follow an evaluation loss that is the lowest so far, and none has come since."""
    losses = run.progress.eval_loss_series
    lowest = [float("inf"), *accumulate(losses.values, min)]
    best_at = [
        at for at, loss, least in zip(losses.times, losses.values, lowest, strict=False) if loss < least
    ]
    if not best_at or losses.times[-1] <= saved[-1].at_s:
        return False
    if saved[-1].at_s + MINUTE_S < best_at[-1] < run.now_s - _LISTED_AFTER_S:
        return False
    return all(any(-MINUTE_S <= save.at_s - at <= _LISTED_AFTER_S for at in best_at) for save in saved)


def _longest_pause_s(run: Watched, begin_s: float) -> float:
    """Return the longest time without a step since then, such as a long evaluation; 0 without steps."""
    times = run.progress.step_series.times
    steps = times[bisect_left(times, begin_s) :]
    return max(b - a for a, b in pairwise([begin_s, *steps, run.now_s])) if steps else 0.0


def _saved(run: Watched) -> list[_Saved]:
    listed = [
        _Saved(c.created_at.timestamp(), _step(c.checkpoint_id))
        for c in run.run.checkpoints or ()
        if c.created_at is not None
    ]
    logged = [_Saved(at_ns / NS_PER_S, _step(name)) for name, at_ns in run.progress.saves]
    return sorted(listed or logged, key=lambda each: each.at_s)


def _step(name: str) -> int | None:
    numbers = re.findall(r"\d+", name[-LONGEST_SHOWN:])
    return int(numbers[-1][-12:]) if numbers else None


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
