"""More than one restart, according to the platform, the log, or the step numbers."""

from __future__ import annotations

from dataclasses import dataclass

from api_client.models import JobStatus
from tui.analysis.health.check import Check, Example, FindingKind, Findings, Severity, Watched, limit
from tui.text.units import counted, duration

_COUNT_FIELDS = ("retry_count", "restart_count", "retries")
"""Fields that the API may have in the future (the platform counts BT_RETRY_COUNT)."""


@dataclass(frozen=True, slots=True)
class Limits:
    restarts: int = limit(2, "Number of restarts from which they are reported.")
    restarts_within_s: float = limit(21600.0, "Forget restarts when the newest is older than this.")


def find(run: Watched, limits: Limits) -> Findings:
    history = [
        event.created.timestamp()
        for event in run.run.status_history
        if event.status == JobStatus.RUNNING and event.created is not None
    ][1:]
    times = max((history, list(run.progress.restarts)), key=len)
    fields = run.run.job.model_extra or {}
    counts = [count for name in _COUNT_FIELDS if isinstance(count := fields.get(name), int)]
    restarts = max([len(times), *counts])
    newest = max(times, default=None)
    if restarts < limits.restarts or (newest is not None and run.now_s - newest > limits.restarts_within_s):
        return
    last = f", last {duration(run.now_s - newest)} ago" if newest is not None else ""
    text = f"restarted {counted(restarts, 'time')}{last}"
    severity: Severity = "critical" if restarts >= 5 else "warning"
    yield run.finding(severity, text, since_s=min(times, default=None))


CHECK = Check(
    FindingKind("restarts", 140, "restarted"),
    "Restarts",
    "warning; critical from the fifth",
    Limits,
    find,
    needs="the status history, launcher lines in the log, or steps that start over.",
    excused="a single restart, steps that start over with each epoch or round, and ranks that print out of"
    " turn.",
    costs="the steps between the last checkpoint and each restart, and the time to load it",
    examples=(
        Example("two restarts", "restarted 2 times", restarts_s=(3000, 6000)),
        Example("one restart", restarts_s=(3000,)),
    ),
)
