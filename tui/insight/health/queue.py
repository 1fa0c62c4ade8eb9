"""A job that waits: for how long, for what, who holds it and who is ahead."""

from __future__ import annotations

from collections.abc import Iterator

from api_client.models import QueueContext
from tui.insight.finding import Finding, FindingKind
from tui.insight.health.context import Context
from tui.insight.text import inert
from tui.insight.units import duration

_NAMED = 2  # names told of those who are ahead or hold the GPUs


def waiting(context: Context) -> Iterator[Finding]:
    """The queue as it was when the job was submitted: that is what the API tells."""
    job = context.run.job
    since = job.created_at
    waited_s = (context.run.at - since).total_seconds() if since is not None else 0.0
    if waited_s < context.rules.queued_after_s:
        return
    gpus = (job.instance_type.gpu_count or 0) * context.run.node_count
    what = f" for {gpus} {inert(job.instance_type.gpu_type or 'GPUs')}" if gpus else ""
    text = f"waiting {duration(waited_s)}{what}"
    if context.run.queue is not None:
        text += _context(context.run.queue)
    yield Finding(FindingKind.QUEUED, "info", text, None, since)


def _context(queue: QueueContext) -> str:
    parts = []
    if queue.active_at_submit:
        held = sum(job.total_gpus for job in queue.active_at_submit)
        biggest = sorted(queue.active_at_submit, key=lambda job: -job.total_gpus)
        names = _names([job.training_job_name or job.training_job_id for job in biggest])
        limit = queue.team_capacity or queue.org_capacity
        of = f" of {limit.max_gpus}" if limit is not None and limit.max_gpus else ""
        parts.append(f"{held}{of} held by {names}")
    if queue.pending_ahead_at_submit:
        ahead = queue.pending_ahead_at_submit
        names = _names([job.training_job_name or job.training_job_id for job in ahead])
        parts.append(f"{len(ahead)} ahead: {names}")
    elif queue.active_at_submit:
        parts.append("next in line")
    return "; " + "; ".join(parts) if parts else ""


def _names(names: list[str]) -> str:
    told = ", ".join(inert(name) for name in names[:_NAMED])
    more = len(names) - _NAMED
    return f"{told} and {more} more" if more > 0 else told
