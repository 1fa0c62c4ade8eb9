"""More than one restart, according to the platform, the log, or the step numbers."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from api_client.models import JobStatus
from tui.analysis.health.check import Check, Example, FindingKind, Findings, Watched, limit
from tui.text.units import counted, duration


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
    times = [at for at in max((history, list(run.progress.restarts)), key=len) if _loses_steps(run, at)]
    newest = max(times, default=0.0)
    if len(times) >= limits.restarts and run.now_s - newest <= limits.restarts_within_s:
        text = f"restarted {counted(len(times), 'time')}, last {duration(run.now_s - newest)} ago"
        yield run.finding("critical" if len(times) >= 5 else "warning", text, since_s=min(times))


def _loses_steps(run: Watched, at: float) -> bool:
    """Return False if steps continue where they were: a run that saves first starts again by design."""
    marks = run.progress.step_series
    index = bisect_left(marks.times, at)
    return not 0 < index < len(marks.times) or marks.values[index] <= marks.values[index - 1]


CHECK = Check(
    FindingKind("restarts", 140, "restarted"),
    "Restarts",
    "warning; critical from the fifth",
    Limits,
    find,
    needs="the status history, launcher lines in the log, or steps that start over.",
    excused="a single restart, those after which steps continue where they were, steps that start over with"
    " each epoch or round, and ranks that print out of turn.",
    costs="the steps between the last checkpoint and each restart, and the time to load it",
    examples=(
        Example(
            "two restarts while it starts",
            "restarted 2 times",
            minutes=60,
            stops_s=0,
            restarts_s=(1500, 3000),
        ),
        Example("two restarts that lose no step", restarts_s=(3000, 6000)),
        Example("one restart", restarts_s=(3000,)),
    ),
)
