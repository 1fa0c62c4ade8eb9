"""Which checkpoints were written while the loss was broken, by the same rules that find a broken loss.

A checkpoint is faulty if the loss was not finite or was exploding at its step, or had begun to and did not
come back before the run was started again. After a restart from an earlier one, checkpoints are good again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from api_client.models import Checkpoint
from tui.analysis.health.context import Context
from tui.analysis.health.loss import broken_loss, exploding_loss
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import Finding, FindingKind
from tui.analysis.run.saved import Fault, SavedKey, saved_key, step_of
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import Series

MOST_JUDGED = 200
"""The newest checkpoints; judging one may take a few milliseconds."""
SAME_MOMENT_S = 60.0
"""A loss that is printed a little after its checkpoint was created may belong to its step."""


def checkpoint_faults(
    run: RunSnapshot, rules: HealthRules = DEFAULT_RULES
) -> Mapping[SavedKey, Fault | None] | None:
    """The fault of each checkpoint that can be judged, None for those without one.

    None as a whole until all of the log is read. Checkpoints near which the log tells no loss are left out.
    """
    if not run.log_read or run.checkpoints is None:
        return None
    told = run.progress or ProgressSnapshot()
    losses = _Losses(run, told, rules)
    newest = sorted(run.checkpoints, key=lambda one: one.created_at.timestamp() if one.created_at else 0.0)
    found: dict[SavedKey, Fault | None] = {}
    before: float | None = None
    for checkpoint in newest[-MOST_JUDGED:]:
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
    """A stretch of time in which the loss was broken."""

    start: float
    end: float
    fault: Fault


class _Losses:
    """The readings of a run in the order of time, with their steps."""

    def __init__(self, run: RunSnapshot, told: ProgressSnapshot, rules: HealthRules) -> None:
        self._run, self._told, self._rules = run, told, rules
        self.times = told.loss_series.times
        by_step = told.loss_by_step
        named = len(by_step) == len(self.times) and len(told.step_series) > 0
        self._steps = [step for step, _ in by_step] if named else None
        self._starts = self._restarts()
        self._breaks = list(self._lasting_breaks())

    def _restarts(self) -> list[int]:
        """The places of the first reading after each restart."""
        places = {bisect_right(self.times, time) for time in self._told.restarts}
        if self._steps is not None:
            steps = enumerate(pairwise(self._steps), 1)
            places |= {place for place, (step, following) in steps if following < step}
        return sorted(place for place in places if 0 < place < len(self.times))

    def _lasting_breaks(self) -> Iterator[_Break]:
        """What had not come back when the run was started again, or has not until now."""
        for end in (*self._starts, len(self.times)):
            start = max((place for place in self._starts if place < end), default=0)
            found = self._trouble(end)
            if found is not None and found.since is not None:
                since_s = max(found.since.timestamp(), self.times[start])
                last_s = self.times[end] if end < len(self.times) else float("inf")
                yield _Break(since_s, last_s, _fault(found))

    def place_of(self, checkpoint: Checkpoint) -> int | None:
        """The newest reading of the checkpoint's step or before, in the pass of the run that wrote it."""
        if not self.times:
            return None
        step, created = step_of(checkpoint.checkpoint_id), checkpoint.created_at
        if step is None or self._steps is None:
            return (
                None if created is None else self._checked(bisect_right(self.times, created.timestamp()) - 1)
            )
        if created is None and self._starts:
            return None  # of which pass, nobody knows
        place = len(self.times) - 1
        if created is not None:
            place = bisect_right(self.times, created.timestamp() + SAME_MOMENT_S) - 1
        while place >= 0 and self._steps[place] > step:
            place -= 1
        return self._checked(place)

    def _checked(self, place: int) -> int | None:
        return place if place >= 0 else None

    def fault_at(self, place: int) -> Fault | None:
        """Why a checkpoint written at that reading is no good; None if it is."""
        at = self.times[place]
        lasting = next((one for one in self._breaks if one.start <= at < one.end), None)
        if lasting is not None:
            return lasting.fault
        found = self._trouble(place + 1)
        if found is None:  # it takes a few readings until an explosion is seen
            following = next((start for start in self._starts if start > place), len(self.times))
            found = self._trouble(min(place + 1 + self._rules.loss_readings, following))
            if found is not None and (found.since is None or found.since.timestamp() > at):
                found = None
        return _fault(found) if found is not None else None

    def _trouble(self, count: int) -> Finding | None:
        """What was wrong with the loss after so many readings."""
        told, until = self._told, self.times[count - 1] if count else 0.0
        losses = _first(told.loss_series, count)
        norms = told.grad_norm_series
        cut = replace(
            told,
            loss=losses.values[-1] if losses.values else None,
            loss_series=losses,
            grad_norm_series=_first(norms, bisect_right(norms.times, until)),
        )
        context = Context(replace(self._run, progress=cut), self._rules, {})
        for check in (broken_loss, exploding_loss):
            found = next(check(context), None)
            if found is not None and found.severity == "critical":
                return found
        return None


def _first(series: Series, count: int) -> Series:
    if count >= len(series.times):
        return series
    return Series(series.name, series.times[:count], series.values[:count])


def _fault(found: Finding) -> Fault:
    what = found.text.replace("explodes", "exploded").replace("diverges", "diverged")
    if found.kind is FindingKind.LOSS_NOT_FINITE:
        subject, _, value = found.text.partition(" is ")
        what = f"{subject} became {'NaN' if value == 'nan' else 'infinite'}"
    return Fault(found.kind, f"the {what}", found.since)
