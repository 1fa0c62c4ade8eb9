"""A job that waits for GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from tui.analysis.health.check import Check, Example, FindingKind, Findings, HealthFinding, Watched, limit
from tui.analysis.run.waiting import waited, waiting_text


@dataclass(frozen=True, slots=True)
class Limits:
    queued_after_s: float = limit(60.0, "Minimum queue time before a job is reported as waiting.")


def find(run: Watched, limits: Limits) -> Findings:
    waited_s = waited(run.run.job, run.run.at)
    if waited_s is not None and waited_s >= limits.queued_after_s:
        short, text = waiting_text(run.run.job, run.run.node_count, run.run.queue, run.run.at)
        yield HealthFinding(run.kind, "info", text, None, run.run.job.created_at, short)


CHECK = Check(
    FindingKind("queued", 180, "", states_duration=True),
    "Waiting in the queue",
    "info",
    Limits,
    find,
    needs="the status, and for administrators the queue at the time the job was submitted: who was ahead,"
    " and who held the GPUs. The API does not report the current queue.",
    costs="nothing: the queue is not billed",
    of_waiting=True,
    examples=(Example("a job that waits", "waiting 25m for 2 H100", minutes=25, waits=True),),
)
