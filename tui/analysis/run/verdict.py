"""The verdict on a run's health, which is "healthy" only once the log and the metrics have been checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from api_client.models.logs import NS_PER_S
from tui.analysis.connection import LOG, METRICS, STATUS
from tui.analysis.run.snapshot import RunSnapshot
from tui.text.units import age, duration

REQUIRED_SOURCES = frozenset({LOG, METRICS})
"""The data that a verdict requires."""

MIN_METRICS_S = 300.0
"""Seconds of metrics that the verdict on a run that makes steps requires."""


State = Literal["findings", "checking", "stale", "unknown", "healthy"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The health of a run; ``words`` is the text to display, empty if there are findings above ``info``."""

    state: State
    words: str = ""


def is_all_checked(run: RunSnapshot) -> bool:
    """Return True if every required source has been checked, or could not be read."""
    # a log that is not read to its end yet has not been checked
    checked = run.checked_sources if run.log_read else run.checked_sources - {LOG}
    return checked | run.failing >= REQUIRED_SOURCES


def is_starting(run: RunSnapshot) -> bool:
    """Return True if the metrics cover too short a time to judge the run."""
    metrics, progress = run.health_metrics, run.progress
    if metrics is None or metrics.at is None or metrics.began is None:
        return False
    makes_steps = progress is not None and (progress.loss is not None or progress.step_interval_s is not None)
    # a run without steps may still be loading, so wait longer
    return metrics.at - metrics.began < (MIN_METRICS_S if makes_steps else 1500.0)


def _reason_for_checking(run: RunSnapshot) -> str:
    if run.running_time.seconds <= MIN_METRICS_S:
        return ": just started"
    return ": no steps seen yet" if run.progress is None or run.progress.step is None else ""


def verdict(run: RunSnapshot) -> Verdict:
    if any(finding.severity != "info" for finding in run.findings):
        return Verdict("findings")
    if not is_all_checked(run):
        return Verdict("checking", "checking health…")
    unseen_s = (run.at - run.seen_at).total_seconds()
    if STATUS in run.failing or unseen_s > run.stale_after_s:
        return Verdict("stale", f"no problems when last seen, {age(unseen_s)} ago")
    if run.failing >= REQUIRED_SOURCES:
        return Verdict("unknown", "health unknown: can't read the log or the metrics")
    if LOG in run.failing:
        return Verdict("unknown", "no problems in the metrics; can't read the log")
    if METRICS in run.failing:
        return Verdict("unknown", "no problems in the log; can't read the metrics")
    if run.health_metrics is None or run.health_metrics.at is None:
        return Verdict("unknown", "no problems in the log, no metrics yet")
    if run.health_metrics_at is not None and (run.at - run.health_metrics_at).total_seconds() > 90.0:
        return Verdict("checking", "checking health…")
    if is_starting(run):
        return Verdict("checking", f"checking health{_reason_for_checking(run)}…")
    if run.compares_nodes:
        return Verdict("checking", "checking health: comparing nodes…")
    return Verdict("healthy", "healthy")


def side_activity(run: RunSnapshot) -> str:
    """Return ``evaluating for 3m``, or ``saving for 3m``, if that delays the next step; else empty."""
    progress = run.progress
    if run.job.is_finished or progress is None or progress.run_phase is None:
        return ""
    word = {"evaluation": "evaluating", "checkpoint": "saving"}.get(progress.run_phase.kind)
    if word is None or progress.last_step_at_ns is None:
        return ""
    now_s = run.server_now.timestamp()
    paused_s = now_s - progress.last_step_at_ns / NS_PER_S
    # report a side activity only if it takes longer than usual steps
    if paused_s < max(30.0, 3 * (progress.step_interval_s or 0.0)):
        return ""
    return f"{word} for {duration(now_s - progress.run_phase.since)}"
