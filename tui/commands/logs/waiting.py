"""Report what a followed job waits for until it runs: a line for each change, on stderr."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.models import (
    RUNNABLE_STATUSES,
    WAITING_STATUSES,
    JobStatus,
    QueueContext,
    TrainingJob,
    short_status,
)
from tui.analysis.run.waiting import waited, waiting_text
from tui.commands.support.output import Output
from tui.readers.run import history_of
from tui.text.units import duration

INTERVAL_S = 5.0
_STARTING = RUNNABLE_STATUSES - {JobStatus.RUNNING}


def is_starting(job: TrainingJob) -> bool:
    return job.current_status in _STARTING


async def report_waiting(client: TrainingClient, job: TrainingJob, output: Output) -> None:
    """Report the wait, the server's hint and each new status of a job that has not started, until it has."""
    seen: tuple[str, str | None] | None = None
    queue = await history_of(client, job)
    with suppress(RequestError):  # following the log reports it
        async for now in client.jobs.watch(job.project_id, job.id, interval_s=INTERVAL_S):
            if (now.current_status, now.error_message) != seen and not now.is_finished:
                output.remark(f"job {job.id} {_state(now, queue)}")
            seen = now.current_status, now.error_message
            if not is_starting(now):
                return


def _state(job: TrainingJob, queue: QueueContext | None) -> str:
    at = datetime.now(UTC)
    if job.current_status in WAITING_STATUSES:
        _, waiting_for = waiting_text(job, job.node_count or 1, queue, at)
        return f"is {waiting_for}" + (f" · {job.error_message}" if job.error_message else "")
    waited_s = waited(job, at)
    after = f" after {duration(waited_s)}" if waited_s is not None else ""
    return f"is {short_status(job.current_status)}{after}"
