"""Runs that continue another job, which is recognized by its name: ``llama-r2`` continues ``llama``.

The curves of both jobs are joined as those of one run that restarted, without the steps that were lost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from api_client.models import TrainingJob
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.series import EMPTY, Series
from tui.text.times import time_key


def next_name(job: TrainingJob) -> str:
    """Return the name for a job that resumes ``job``: ``llama-r2`` for ``llama``, then ``llama-r3``."""
    base, number = job.name or job.id, 1
    if match := re.fullmatch(r"(.+)-r(\d{1,4})", base):
        base, number = match[1], int(match[2])
    return f"{base}-r{number + 1}"


def predecessor(job: TrainingJob, jobs: Iterable[TrainingJob]) -> TrainingJob | None:
    """Return the job that ``job`` resumed, if it is among ``jobs``."""
    candidates = [
        candidate
        for candidate in jobs
        if next_name(candidate) == job.name
        and (candidate.project_id, candidate.is_finished) == (job.project_id, True)
        and time_key(candidate.created_at) < time_key(job.created_at)
    ]
    return max(candidates, key=lambda candidate: time_key(candidate.created_at), default=None)


def joined(before: ProgressSnapshot, after: ProgressSnapshot) -> ProgressSnapshot:
    """Return the progress of a resumed run (``after``), with the curves of the run before it prepended.

    Steps of the earlier run that the resumed run repeats are left out, because they were lost. A resumed run
    that counts from the beginning, because its trainer loaded only the weights, repeats no steps.
    """
    steps = before.step_series
    resumed_at = next(iter(after.step_series.values), math.inf)
    repeated_times = (
        time for time, step in zip(steps.times, steps.values, strict=True) if step >= resumed_at
    )
    lost_from = next(repeated_times, math.inf)
    if lost_from in steps.times[:1]:
        lost_from = math.inf
    restart_time = after.step_series.times[:1] or after.loss_series.times[:1]
    first_step = after.loss_by_step[0][0] if after.loss_by_step else 0
    curves: dict[str, Any] = {
        field.name: _joined(getattr(before, field.name), getattr(after, field.name), lost_from)
        for field in fields(ProgressSnapshot)
        if field.name.endswith("_series")
    }
    metrics = {
        name: _joined(before.metrics.get(name, EMPTY), after.metrics.get(name, EMPTY), lost_from)
        for name in (*before.metrics, *after.metrics)
    }
    losses = (*(item for item in before.loss_by_step if item[0] < first_step), *after.loss_by_step)
    restarts = (*before.restarts, *restart_time, *after.restarts)
    return replace(after, **curves, metrics=metrics, loss_by_step=losses, restarts=restarts)


def _joined(before: Series, after: Series, end: float) -> Series:
    kept_count = sum(time < end for time in before.times)
    times, values = before.times[:kept_count], before.values[:kept_count]
    return Series(after.name or before.name, times + after.times, values + after.values)
