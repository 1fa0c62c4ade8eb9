"""Checkpoints that were written while the loss was broken.

A checkpoint is faulty if the loss was not finite or was diverging at its step, or had begun to and did not
recover before the run was restarted. After a restart from an earlier checkpoint, new ones are good again.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise

from api_client.models import Checkpoint
from tui.analysis.health.checks import loss
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules, NoLimits
from tui.analysis.health.watched import Watched
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.checkpoints import CheckpointFault, SavedKey, saved_key, step_of
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import Series
from tui.text.times import time_key

MAX_CHECKED = 200
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
    losses = _Losses(run, run.progress or ProgressSnapshot(), rules)
    faults: dict[SavedKey, CheckpointFault | None] = {}
    before = -math.inf
    for checkpoint in sorted(run.checkpoints, key=lambda each: time_key(each.created_at))[-MAX_CHECKED:]:
        index = losses.index_of(checkpoint)
        if index is not None:
            fault = losses.fault_at(index)
            if fault is not None or losses.times[index] > before:
                faults[saved_key(checkpoint)] = fault
            before = losses.times[index]
    return faults


class _Losses:
    """A run's losses in chronological order, with their steps."""

    def __init__(self, run: RunSnapshot, progress: ProgressSnapshot, rules: HealthRules) -> None:
        self._run, self._progress, self._rules = run, progress, rules
        self.times = progress.loss_series.times
        by_step = progress.loss_by_step
        named = len(by_step) == len(self.times) and len(progress.step_series) > 0
        self._steps = [step for step, _ in by_step] if named else None
        starts = {bisect_right(self.times, time) for time in progress.restarts}
        if self._steps is not None:
            steps = enumerate(pairwise(self._steps), 1)
            starts |= {index for index, (step, following) in steps if following < step}
        self._starts = sorted(index for index in starts if 0 < index < len(self.times))
        self._trouble = cache(self._find_trouble)

    def index_of(self, checkpoint: Checkpoint) -> int | None:
        """Return the index of the newest loss up to the checkpoint's step, in the attempt that wrote it."""
        if not self.times:
            return None
        step, created = step_of(checkpoint.checkpoint_id), checkpoint.created_at
        has_step = step is not None and self._steps is not None
        if created is None and (self._starts or not has_step):
            return None  # The attempt is unknown.
        index = len(self.times) - 1
        if created is not None:
            late_s = SAME_MOMENT_S if has_step else 0.0
            index = bisect_right(self.times, created.timestamp() + late_s) - 1
        if step is not None and self._steps is not None:
            while index >= 0 and self._steps[index] > step:
                index -= 1
        return index if index >= 0 else None

    def fault_at(self, index: int) -> CheckpointFault | None:
        """Return why a checkpoint written at that loss is faulty; None if it is good.

        A divergence shows only after a few more losses, or at the end of the attempt, if it has not ended.
        """
        end = next((start for start in self._starts if start > index), len(self.times))
        for count in (end, index + 1, min(index + 1 + loss.NEWEST, end)):
            trouble = self._trouble(count)
            since = trouble.since.timestamp() if trouble is not None and trouble.since else self.times[index]
            if trouble is not None and since <= self.times[index]:
                return _fault(trouble)
        return None

    def _find_trouble(self, count: int) -> HealthFinding | None:
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
        run.kind = loss.NOT_FINITE.kind
        broken = next(loss.not_finite(run, NoLimits()), None)
        run.kind = loss.DIVERGING.kind
        return broken or loss.worse_loss(run, self._rules.limits(loss.DivergenceLimits))


def _first(series: Series, count: int) -> Series:
    return Series(series.name, series.times[:count], series.values[:count])


def _fault(trouble: HealthFinding) -> CheckpointFault:
    what = trouble.text.replace("diverging", "diverged")
    if trouble.kind.loss == "not finite":
        subject, _, value = trouble.text.partition(" is ")
        what = f"{subject} became {'NaN' if value == 'NaN' else 'infinite'}"
    return CheckpointFault(trouble.kind, f"the {what}", trouble.since)
