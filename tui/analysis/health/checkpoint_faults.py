"""Checkpoints that were written while the loss was broken.

A checkpoint is faulty if the loss was not finite or was diverging at its step, or had begun to
diverge and did not recover before the run was restarted. After a restart from an earlier checkpoint, new
checkpoints are good again.
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
    """Return the fault of each checkpoint that can be checked; the value is None for a sound checkpoint.

    The result is None until the whole log has been read. A checkpoint is omitted if no loss was logged
    since the checkpoint before it, and nothing else shows a fault.
    """
    if not run.log_read or run.checkpoints is None:
        return None
    progress = run.progress or ProgressSnapshot()
    times = progress.loss_series.times
    finding_at = cache(partial(_loss_finding_at, run, progress, rules))
    faults: dict[SavedKey, CheckpointFault | None] = {}
    previous_count = 0
    # Only the newest 200, since each may take a few milliseconds.
    for checkpoint in sorted(run.checkpoints, key=lambda each: time_key(each.created_at))[-200:]:
        written_s = _written_s(progress, checkpoint)
        count = 0 if written_s is None else bisect_right(times, written_s)
        if not count or written_s is None:
            continue
        restart = next((time for time in progress.restarts if time > written_s), math.inf)
        end = bisect_left(times, restart)
        # A divergence that began before the checkpoint may show only a few losses later, or at the end of the
        # attempt; one that has recovered by then shows only earlier.
        fault = next(
            (
                _fault(finding)
                for loss_count in (end, count, min(count + NEWEST, end))
                if (finding := finding_at(times[loss_count - 1])) is not None
                and finding.since is not None
                and finding.since.timestamp() <= times[count - 1]
            ),
            None,
        )
        if fault is not None or count > previous_count:
            faults[saved_key(checkpoint)] = fault
        previous_count = count
    return faults


def _written_s(progress: ProgressSnapshot, checkpoint: Checkpoint) -> float | None:
    """Return when the attempt that wrote a checkpoint reached the step in its name (epoch s).

    If the name or the log has no step, return the checkpoint's creation time; None if that is unknown, or if
    no such step was logged before it.
    """
    step, created, steps = step_of(checkpoint.checkpoint_id), checkpoint.created_at, progress.step_series
    if created is None:
        return None
    if step is None or not steps.times:
        return created.timestamp()
    # The line of a step may be logged up to a minute after the step's checkpoint was created.
    index = bisect_right(steps.times, created.timestamp() + MINUTE_S) - 1
    while index >= 0 and steps.values[index] > step:
        index -= 1
    return steps.times[index] if index >= 0 else None


def _loss_finding_at(
    run: RunSnapshot, progress: ProgressSnapshot, rules: HealthRules, loss_s: float
) -> HealthFinding | None:
    """Run the loss checks on the data up to a logged loss (epoch s); return the first finding, if any."""
    losses = progress.loss_series.until(loss_s)
    progress_then = replace(
        progress,
        loss=losses.values[-1],
        loss_series=losses,
        grad_norm_series=progress.grad_norm_series.until(loss_s),
        restarts=tuple(time for time in progress.restarts if time <= loss_s),
    )
    watched = Watched(replace(run, progress=progress_then), rules)
    findings = (finding for check in CHECKS if check.kind.loss for finding in check.findings(watched))
    return next(findings, None)


def _fault(finding: HealthFinding) -> CheckpointFault:
    event = finding.text.replace("diverging", "diverged")
    if finding.kind.loss == "not finite":
        subject, _, value = finding.text.partition(" is ")
        event = f"{subject} became {'NaN' if value == 'NaN' else 'infinite'}"
    return CheckpointFault(finding.kind, f"the {event}", finding.since)
