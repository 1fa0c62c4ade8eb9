"""Describe the wait of a job in the queue: how long, for which GPUs, and behind which jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from api_client.models import QueueContext, TrainingJob
from api_client.models.account import ActiveJobAtSubmit, PendingJobAhead
from api_client.words import listed
from tui.text.sanitize import sanitize
from tui.text.units import duration


def waited(job: TrainingJob, now: datetime) -> float | None:
    """Return how many seconds a job has waited; None if its creation time is unknown."""
    return (now - job.created_at).total_seconds() if job.created_at is not None else None


def waiting_text(
    job: TrainingJob, node_count: int, queue: QueueContext | None, now: datetime
) -> tuple[str, str]:
    """Return a short text about the wait, and a longer text with the queue at the time of submission.

    The API does not report the current queue, so the longer text states how long ago the submission was.
    """
    waited_s = waited(job, now)
    gpus = job.instance_type.gpu_count * node_count
    duration_text = f" {duration(waited_s)}" if waited_s is not None else ""
    gpus_text = f" for {gpus} {sanitize(job.instance_type.gpu_type or 'GPUs')}" if gpus else " for capacity"
    short_text = f"waiting{duration_text}{gpus_text}"
    queue_text = _queue_at_submission(queue) if queue is not None else ""
    return (
        short_text,
        f"{short_text}; at submission{_submitted_ago(queue, waited_s, now)} {queue_text}"
        if queue_text
        else short_text,
    )


def _submitted_ago(queue: QueueContext | None, waited_s: float | None, now: datetime) -> str:
    """Return how long ago the job was submitted, such as `` 2h ago``; empty if it equals the wait time."""
    if queue is None or queue.submitted_at is None:
        return ""
    ago_s = (now - queue.submitted_at).total_seconds()
    return f" {duration(ago_s)} ago" if waited_s is None or abs(ago_s - waited_s) > 60.0 else ""


def _queue_at_submission(queue: QueueContext) -> str:
    parts = []
    if queue.active_at_submit:
        in_use = sum(job.total_gpus for job in queue.active_at_submit)
        largest_jobs = sorted(queue.active_at_submit, key=lambda job: -job.total_gpus)
        names = _job_names(largest_jobs)
        capacity = queue.team_capacity or queue.org_capacity
        limit = capacity.max_gpus if capacity is not None else 0
        limit_text, limit_note = (f" of {limit}", "") if limit else ("", "")
        if limit and in_use > limit:
            limit_text, limit_note = "", f" (the limit of {limit} excludes spot)"
        # CPU jobs hold no GPUs.
        parts.append(
            f"{in_use}{limit_text} in use by {names}{limit_note}" if in_use else f"in use by {names}"
        )
    if queue.pending_ahead_at_submit:
        jobs_ahead = queue.pending_ahead_at_submit
        names = _job_names(jobs_ahead)
        parts.append(f"{len(jobs_ahead)} ahead: {names}")
    elif queue.active_at_submit:
        parts.append("none ahead")
    return "; ".join(parts)


def _job_names(jobs: Sequence[ActiveJobAtSubmit] | Sequence[PendingJobAhead]) -> str:
    return listed([sanitize(job.training_job_name or job.training_job_id) for job in jobs], 2)
