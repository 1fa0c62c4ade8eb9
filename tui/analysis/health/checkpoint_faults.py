"""Checkpoints that were written while the loss was broken.

A checkpoint is faulty if the loss was not finite or was diverging at its step, or had begun to and did not
recover before the run was restarted. After a restart from an earlier checkpoint, new ones are good again.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

from api_client.models import Checkpoint
from tui.analysis.health.registry import CHECKS
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules
from tui.analysis.health.watched import Watched
from tui.analysis.health.worse import NEWEST
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.checkpoints import CheckpointFault, SavedKey, saved_key, step_of
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.text.times import time_key
from tui.text.units import MINUTE_S


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
    times = progress.loss_series.times
    troubles = cache(partial(_trouble, run, progress, rules))
    faults: dict[SavedKey, CheckpointFault | None] = {}
    before = 0
    # Each may take a few milliseconds.
    for checkpoint in sorted(run.checkpoints, key=lambda each: time_key(each.created_at))[-200:]:
        written_s = _written_s(progress, checkpoint)
        count = 0 if written_s is None else bisect_right(times, written_s)
        if not count or written_s is None:
            continue
        restart = next((time for time in progress.restarts if time > written_s), math.inf)
        end = bisect_left(times, restart)
        # A divergence shows only after a few more losses, or at the end of the attempt, if it has not ended.
        fault = next(
            (
                _fault(trouble)
                for seen in (end, count, min(count + NEWEST, end))
                if (trouble := troubles(times[seen - 1])) is not None
                and trouble.since is not None
                and trouble.since.timestamp() <= times[count - 1]
            ),
            None,
        )
        if fault is not None or count > before:
            faults[saved_key(checkpoint)] = fault
        before = count
    return faults


def _written_s(progress: ProgressSnapshot, checkpoint: Checkpoint) -> float | None:
    """Return the time of the step in a checkpoint's name, in the attempt that wrote it; or its own time."""
    step, created, marks = step_of(checkpoint.checkpoint_id), checkpoint.created_at, progress.step_series
    if created is None:
        return None
    if step is None or not marks.times:
        return created.timestamp()
    # A loss that is printed a minute after its checkpoint was created may belong to its step.
    index = bisect_right(marks.times, created.timestamp() + MINUTE_S) - 1
    while index >= 0 and marks.values[index] > step:
        index -= 1
    return marks.times[index] if index >= 0 else None


def _trouble(
    run: RunSnapshot, progress: ProgressSnapshot, rules: HealthRules, until: float
) -> HealthFinding | None:
    """Return what was wrong with the loss at the time of one that was logged."""
    losses = progress.loss_series.until(until)
    cut = replace(
        progress,
        loss=losses.values[-1],
        loss_series=losses,
        grad_norm_series=progress.grad_norm_series.until(until),
        restarts=tuple(time for time in progress.restarts if time <= until),
    )
    watched = Watched(replace(run, progress=cut), rules)
    findings = (finding for check in CHECKS if check.kind.loss for finding in check.findings(watched))
    return next(findings, None)


def _fault(trouble: HealthFinding) -> CheckpointFault:
    what = trouble.text.replace("diverging", "diverged")
    if trouble.kind.loss == "not finite":
        subject, _, value = trouble.text.partition(" is ")
        what = f"{subject} became {'NaN' if value == 'NaN' else 'infinite'}"
    return CheckpointFault(trouble.kind, f"the {what}", trouble.since)
