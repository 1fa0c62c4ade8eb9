"""Detect checkpoints that are overdue, and those that were written while the loss was broken.

A checkpoint is faulty if the loss was not finite or was exploding at its step, or had begun to and did not
recover before the run was restarted. After a restart from an earlier checkpoint, new ones are good again.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from statistics import median
from typing import NamedTuple

from api_client.models import Checkpoint
from api_client.models.logs import NS_PER_S
from tui.analysis.health.context import Context, finding
from tui.analysis.health.loss import broken_loss, exploding_loss
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.checkpoints import CheckpointFault, SavedKey, saved_key, step_of
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import Series
from tui.text.times import time_key
from tui.text.units import counted, duration

_RECENT_CHECKPOINTS = 8  # The newest checkpoints determine the usual interval.
_LISTED_AFTER_S = 900.0  # A large checkpoint may take this long to be written and listed.
_LOST = 2  # A single save may be another kind of file.
_UNKEPT = 2.2  # The announced interval may be counted in other steps, from which the first save may differ.
_NUMBERS = re.compile(r"\d+")


class _Saved(NamedTuple):
    at_s: float
    step: int | None


def overdue_checkpoint(context: Context) -> Iterator[HealthFinding]:
    """Report a checkpoint that is overdue: by the log's announcements, or by the run's usual interval."""
    yield from list(_never_came(context)) or _late(context)


def _never_came(context: Context) -> Iterator[HealthFinding]:
    """Report saves that the log announced, or its settings, and that did not become checkpoints."""
    progress, listed = context.progress, context.run.checkpoints
    newest = max((one.created_at.timestamp() for one in listed or () if one.created_at), default=None)
    if listed is not None and newest is not None:
        # Only where the platform has listed some: others keep their checkpoints elsewhere.
        lost = [
            at_ns / NS_PER_S for _, at_ns in progress.saves if at_ns / NS_PER_S > newest + _LISTED_AFTER_S
        ]
        if len(lost) >= _LOST and context.now_s - lost[_LOST - 1] > _LISTED_AFTER_S:
            ago = duration(context.now_s - newest)
            text = f"{counted(len(lost), 'save')} announced since the last checkpoint, {ago} ago"
            short = f"{counted(len(lost), 'save')} announced, none stored"
            yield finding(FindingKind.CHECKPOINT_OVERDUE, "warning", text, short=short, since_s=lost[0])
            return
    if listed is not None and not listed and len(progress.saves) >= _LOST:
        since_s = progress.saves[0][1] / NS_PER_S
        if context.now_s - progress.saves[_LOST - 1][1] / NS_PER_S > _LISTED_AFTER_S:
            saves = counted(len(progress.saves), "save")
            text = f"{saves} in the log, none stored: not in $BT_CHECKPOINT_DIR?"
            yield finding(FindingKind.CHECKPOINT_OVERDUE, "info", text, since_s=since_s)
        return
    since, every = context.training_since, progress.save_every
    if not every or since is None or progress.step is None or listed or progress.saves:
        return
    steps = progress.step_series
    due = bisect_left(steps.values, every)
    if progress.step >= _UNKEPT * every and due < len(steps.values) and steps.values[0] < every:
        announced = f"announced every {counted(every, 'step')}"
        text = f"no checkpoint by step {progress.step}, though one was {announced}"
        short = f"no checkpoint, {announced}"
        yield finding(FindingKind.CHECKPOINT_OVERDUE, "warning", text, short=short, since_s=steps.times[due])


def _late(context: Context) -> Iterator[HealthFinding]:
    """Report a checkpoint overdue by the run's usual interval, in time and, if known, in steps.

    A slow run saves late by time but not by steps, so both must be exceeded.
    """
    rules, progress = context.rules, context.progress
    saved = _saved(context)[-_RECENT_CHECKPOINTS:]
    intervals = [after.at_s - before.at_s for before, after in pairwise(saved)]
    intervals = [interval for interval in intervals if interval > 0]
    if len(intervals) < rules.checkpoint_intervals:
        return
    last = saved[-1]
    usual_s = max(intervals)
    if max(intervals) > 4 * median(intervals):
        usual_s = sorted(intervals)[-2]  # A single long wait does not make an interval usual.
    begin_s = max(last.at_s, context.attempt_since)
    since_s = context.now_s - begin_s
    held = context.is_held(FindingKind.CHECKPOINT_OVERDUE)
    factor = context.with_hysteresis(rules.checkpoint_factor, 1.0, held=held)
    if since_s - _longest_pause_s(context, begin_s) <= max(
        factor * usual_s, usual_s + rules.checkpoint_grace_s
    ) or _keeps_best_only(saved, context):
        return
    apart = [
        after.step - before.step
        for before, after in pairwise(saved)
        if before.step is not None and after.step is not None and after.step > before.step
    ]
    if apart and last.step is not None and progress.step is not None:
        missed = progress.step - last.step
        if missed < (1 + (factor - 1) / 2) * median(apart):
            return
    text = f"no checkpoint for {duration(since_s)}, usually every {duration(median(intervals))}"
    yield finding(FindingKind.CHECKPOINT_OVERDUE, "warning", text, since_s=last.at_s + median(intervals))


def _keeps_best_only(saved: Sequence[_Saved], context: Context) -> bool:
    """Return True if saves follow an evaluation loss that is the lowest so far, and none has come since."""
    losses = context.progress.eval_loss_series
    best, best_at = math.inf, []
    for at, loss in zip(losses.times, losses.values, strict=True):
        if loss < best:
            best = loss
            best_at.append(at)
    if not best_at or losses.times[-1] <= saved[-1].at_s:
        return False
    if saved[-1].at_s + SAME_MOMENT_S < best_at[-1] < context.now_s - _LISTED_AFTER_S:
        return False
    return all(any(-SAME_MOMENT_S <= one.at_s - at <= _LISTED_AFTER_S for at in best_at) for one in saved)


def _longest_pause_s(context: Context, begin_s: float) -> float:
    """Return the longest time without a step since then, such as a long evaluation; 0 without steps."""
    times = context.progress.step_series.times
    steps = times[bisect_left(times, begin_s) :]
    pauses = (after - before for before, after in pairwise([begin_s, *steps, context.now_s]))
    return max(pauses) if len(steps) > 0 else 0.0


def _saved(context: Context) -> list[_Saved]:
    listed = [
        _Saved(one.created_at.timestamp(), _step(one.checkpoint_id))
        for one in context.run.checkpoints or ()
        if one.created_at is not None
    ]
    if not listed:
        listed = [_Saved(at_ns / NS_PER_S, _step(name)) for name, at_ns in context.progress.saves]
    return sorted(listed, key=lambda one: one.at_s)


def _step(name: str) -> int | None:
    numbers = _NUMBERS.findall(name)
    return int(numbers[-1][-12:]) if numbers else None


MAX_CHECKED_CHECKPOINTS = 200
"""Check only the newest checkpoints, because each may take a few milliseconds."""
SAME_MOMENT_S = 60.0
"""A loss printed this many seconds after its checkpoint was created may belong to its step."""


def checkpoint_faults(
    run: RunSnapshot, rules: HealthRules = DEFAULT_RULES
) -> Mapping[SavedKey, CheckpointFault | None] | None:
    """Return the fault of each checkpoint that can be checked, None for those without one.

    The result is None until the whole log has been read. Checkpoints without a nearby logged loss are
    left out.
    """
    if not run.log_read or run.checkpoints is None:
        return None
    progress = run.progress or ProgressSnapshot()
    losses = _Losses(run, progress, rules)
    newest = sorted(run.checkpoints, key=lambda one: time_key(one.created_at))
    found: dict[SavedKey, CheckpointFault | None] = {}
    before: float | None = None
    for checkpoint in newest[-MAX_CHECKED_CHECKPOINTS:]:
        at = losses.place_of(checkpoint)
        if at is None:
            continue
        fault = losses.fault_at(at)
        if fault is not None or before is None or losses.times[at] > before:
            found[saved_key(checkpoint)] = fault
        before = losses.times[at]
    return found


@dataclass(frozen=True, slots=True)
class _Break:
    """A time range in which the loss was broken."""

    start: float
    end: float
    fault: CheckpointFault


class _Losses:
    """A run's losses in chronological order, with their steps."""

    def __init__(self, run: RunSnapshot, progress: ProgressSnapshot, rules: HealthRules) -> None:
        self._run, self._progress, self._rules = run, progress, rules
        self.times = progress.loss_series.times
        by_step = progress.loss_by_step
        named = len(by_step) == len(self.times) and len(progress.step_series) > 0
        self._steps = [step for step, _ in by_step] if named else None
        self._starts = self._restarts()
        self._breaks = list(self._persistent_breaks())

    def _restarts(self) -> list[int]:
        places = {bisect_right(self.times, time) for time in self._progress.restarts}
        if self._steps is not None:
            steps = enumerate(pairwise(self._steps), 1)
            places |= {place for place, (step, following) in steps if following < step}
        return sorted(place for place in places if 0 < place < len(self.times))

    def _persistent_breaks(self) -> Iterator[_Break]:
        """Yield the problems that had not ended when the run was restarted, or have not ended yet."""
        for end in (*self._starts, len(self.times)):
            start = max((place for place in self._starts if place < end), default=0)
            found = self._trouble(end)
            if found is not None and found.since is not None:
                since_s = max(found.since.timestamp(), self.times[start])
                last_s = self.times[end] if end < len(self.times) else float("inf")
                yield _Break(since_s, last_s, _fault(found))

    def place_of(self, checkpoint: Checkpoint) -> int | None:
        """Return the index of the newest loss up to the checkpoint's step, in the attempt that wrote it."""
        if not self.times:
            return None
        step, created = step_of(checkpoint.checkpoint_id), checkpoint.created_at
        has_step = step is not None and self._steps is not None
        if created is None and (self._starts or not has_step):
            return None  # The attempt is unknown.
        place = len(self.times) - 1
        if created is not None:
            late_s = SAME_MOMENT_S if has_step else 0.0
            place = bisect_right(self.times, created.timestamp() + late_s) - 1
        if step is not None and self._steps is not None:
            while place >= 0 and self._steps[place] > step:
                place -= 1
        return place if place >= 0 else None

    def fault_at(self, place: int) -> CheckpointFault | None:
        """Return why a checkpoint written at that loss is faulty; None if it is good."""
        at = self.times[place]
        lasting = next((one for one in self._breaks if one.start <= at < one.end), None)
        if lasting is not None:
            return lasting.fault
        found = self._trouble(place + 1)
        if found is None:  # An explosion shows only after a few more values.
            following = next((start for start in self._starts if start > place), len(self.times))
            found = self._trouble(min(place + 1 + self._rules.loss_readings, following))
            if found is not None and (found.since is None or found.since.timestamp() > at):
                found = None
        return _fault(found) if found is not None else None

    def _trouble(self, count: int) -> HealthFinding | None:
        progress, until = self._progress, self.times[count - 1] if count else 0.0
        losses = _first(progress.loss_series, count)
        norms = progress.grad_norm_series
        cut = replace(
            progress,
            loss=losses.values[-1] if losses.values else None,
            loss_series=losses,
            grad_norm_series=_first(norms, bisect_right(norms.times, until)),
            restarts=tuple(time for time in progress.restarts if time <= until),
        )
        context = Context(replace(self._run, progress=cut), self._rules, {})
        return next(chain(broken_loss(context), exploding_loss(context)), None)


def _first(series: Series, count: int) -> Series:
    if count >= len(series.times):
        return series
    return Series(series.name, series.times[:count], series.values[:count])


def _fault(found: HealthFinding) -> CheckpointFault:
    what = found.text.replace("diverging", "diverged")
    if found.kind is FindingKind.LOSS_NOT_FINITE:
        subject, _, value = found.text.partition(" is ")
        what = f"{subject} became {'NaN' if value == 'NaN' else 'infinite'}"
    return CheckpointFault(found.kind, f"the {what}", found.since)
