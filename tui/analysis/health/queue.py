"""Report a waiting job: for how long, for which GPUs, which jobs hold them, and which are ahead."""

from __future__ import annotations

from collections.abc import Iterator

from api_client.models import QueueContext
from tui.analysis.health.context import Context
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.text.sanitize import sanitize
from tui.text.units import duration

_NAMED = 2  # Maximum number of jobs ahead, or holding the GPUs, to list by name.
_SAME_MOMENT_S = 60.0


def waiting(context: Context) -> Iterator[HealthFinding]:
    """Report the wait time, and the queue as it was at submission, which is all that the API provides.

    The queue is described in the past tense, with its time, because it has moved since.
    """
    job = context.run.job
    since = job.created_at
    waited_s = (context.run.at - since).total_seconds() if since is not None else 0.0
    if waited_s < context.rules.queued_after_s:
        return
    gpus = (job.instance_type.gpu_count or 0) * context.run.node_count
    what = f" for {gpus} {sanitize(job.instance_type.gpu_type or 'GPUs')}" if gpus else ""
    short = f"waiting {duration(waited_s)}{what}"
    then = _at_submission(context.run.queue) if context.run.queue is not None else ""
    text = f"{short}; at submission{_ago(context, waited_s)} {then}" if then else short
    yield HealthFinding(FindingKind.QUEUED, "info", text, None, since, short)


def _ago(context: Context, waited_s: float) -> str:
    """Return how long ago the job was submitted, empty if that equals the wait time."""
    submitted = context.run.queue.submitted_at if context.run.queue is not None else None
    ago_s = (context.run.at - submitted).total_seconds() if submitted is not None else waited_s
    return f" {duration(ago_s)} ago" if abs(ago_s - waited_s) > _SAME_MOMENT_S else ""


def _at_submission(queue: QueueContext) -> str:
    parts = []
    if queue.active_at_submit:
        held = sum(job.total_gpus for job in queue.active_at_submit)
        biggest = sorted(queue.active_at_submit, key=lambda job: -job.total_gpus)
        names = _names([job.training_job_name or job.training_job_id for job in biggest])
        limit = queue.team_capacity or queue.org_capacity
        of = f" of {limit.max_gpus}" if limit is not None and limit.max_gpus else ""
        parts.append(f"{held}{of} in use by {names}")
    if queue.pending_ahead_at_submit:
        ahead = queue.pending_ahead_at_submit
        names = _names([job.training_job_name or job.training_job_id for job in ahead])
        parts.append(f"{len(ahead)} ahead: {names}")
    elif queue.active_at_submit:
        parts.append("none ahead")
    return "; ".join(parts)


def _names(names: list[str]) -> str:
    told = ", ".join(sanitize(name) for name in names[:_NAMED])
    more = len(names) - _NAMED
    return f"{told} and {more} more" if more > 0 else told
