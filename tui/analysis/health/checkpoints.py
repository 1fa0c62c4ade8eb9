"""Detect checkpoints that are overdue by the run's own save interval."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from api_client.models.logs import NS_PER_S
from tui.analysis.health.context import Context, finding
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.text.units import duration

_RECENT_CHECKPOINTS = 8  # The newest checkpoints determine the usual interval.
_LISTED_AFTER_S = 900.0  # A large checkpoint may take this long to be written and listed.
_LOST = 2  # A single save may be another kind of file.
_UNKEPT = 2.2  # The announced interval may be counted in other steps, from which the first save may differ.
_LAST_NUMBER = re.compile(r"(\d{1,12})(?!.*\d)")


class _Saved(NamedTuple):
    at_s: float
    step: int | None


def overdue_checkpoint(context: Context) -> Iterator[HealthFinding]:
    """Report a checkpoint that is overdue: by the log's announcements, or by the run's usual interval."""
    yield from list(_never_came(context)) or _late(context)


def _never_came(context: Context) -> Iterator[HealthFinding]:
    """Report saves that the log announced, or its settings, and that did not become checkpoints."""
    told, listed = context.progress, context.run.checkpoints
    newest = max((one.created_at.timestamp() for one in listed or () if one.created_at), default=None)
    if listed is not None and newest is not None:
        # Only where the platform has listed some: others keep their checkpoints elsewhere.
        lost = [at_ns / NS_PER_S for _, at_ns in told.saves if at_ns / NS_PER_S > newest + _LISTED_AFTER_S]
        if len(lost) >= _LOST and context.now_s - lost[_LOST - 1] > _LISTED_AFTER_S:
            ago = duration(context.now_s - newest)
            text = f"{len(lost)} saves announced since the last checkpoint, {ago} ago"
            short = f"{len(lost)} saves announced, none stored"
            yield finding(FindingKind.CHECKPOINT_OVERDUE, "warning", text, short=short, since_s=lost[0])
            return
    since, every = context.training_since, told.save_every
    if not every or since is None or told.step is None or listed or told.saves:
        return
    steps = told.step_series
    due = bisect_left(steps.values, every)
    if told.step >= _UNKEPT * every and due < len(steps.values) and steps.values[0] < every:
        text = f"no checkpoint by step {told.step}, though one was announced every {every} steps"
        short = f"no checkpoint, announced every {every} steps"
        yield finding(FindingKind.CHECKPOINT_OVERDUE, "warning", text, short=short, since_s=steps.times[due])


def _late(context: Context) -> Iterator[HealthFinding]:
    """Report a checkpoint overdue by the run's usual interval, in time and, if known, in steps.

    A slow run saves late by time but not by steps, so both must be exceeded.
    """
    rules, told = context.rules, context.progress
    saved = _saved(context)[-_RECENT_CHECKPOINTS:]
    intervals = [after.at_s - before.at_s for before, after in itertools.pairwise(saved)]
    intervals = [interval for interval in intervals if interval > 0]
    if len(intervals) < rules.checkpoint_intervals:
        return
    last = saved[-1]
    usual_s = max(intervals)
    if max(intervals) > 4 * median(intervals):
        usual_s = sorted(intervals)[-2]  # A single long wait does not make an interval usual.
    since_s = context.now_s - max(last.at_s, context.attempt_since)
    held = context.is_held(FindingKind.CHECKPOINT_OVERDUE)
    factor = context.with_hysteresis(rules.checkpoint_factor, 1.0, held=held)
    if since_s <= max(factor * usual_s, usual_s + rules.checkpoint_grace_s):
        return
    apart = [
        after.step - before.step
        for before, after in itertools.pairwise(saved)
        if before.step is not None and after.step is not None and after.step > before.step
    ]
    if apart and last.step is not None and told.step is not None:
        missed = told.step - last.step
        if missed < (1 + (factor - 1) / 2) * median(apart):
            return
    text = f"no checkpoint for {duration(since_s)}, usually every {duration(median(intervals))}"
    yield finding(FindingKind.CHECKPOINT_OVERDUE, "warning", text, since_s=last.at_s + median(intervals))


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
    found = _LAST_NUMBER.search(name)
    return int(found[1]) if found else None
