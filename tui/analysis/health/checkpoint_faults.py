"""Checkpoints that were written while the loss was broken.

A checkpoint is faulty if the loss was not finite or was diverging at its step, or had begun to and did not
recover before the run was restarted. After a restart from an earlier checkpoint, new ones are good again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from api_client.models import Checkpoint
from tui.analysis.health.checks import loss_exploding, loss_not_finite
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules, NoLimits
from tui.analysis.health.watched import Watched
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.checkpoints import CheckpointFault, SavedKey, saved_key, step_of
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import Series
from tui.text.times import time_key

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
            found = self._trouble(min(place + 1 + loss_exploding.NEWEST, following))
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
        run = Watched(replace(self._run, progress=cut), self._rules)
        run.kind = loss_not_finite.CHECK.kind
        broken = next(loss_not_finite.find(run, NoLimits()), None)
        run.kind = loss_exploding.CHECK.kind
        return broken or loss_exploding.worse_loss(run, self._rules.limits(loss_exploding.Limits))


def _first(series: Series, count: int) -> Series:
    if count >= len(series.times):
        return series
    return Series(series.name, series.times[:count], series.values[:count])


def _fault(found: HealthFinding) -> CheckpointFault:
    what = found.text.replace("diverging", "diverged")
    if found.kind.loss == "not finite":
        subject, _, value = found.text.partition(" is ")
        what = f"{subject} became {'NaN' if value == 'NaN' else 'infinite'}"
    return CheckpointFault(found.kind, f"the {what}", found.since)
