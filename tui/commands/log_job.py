"""Which job's log is wanted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from api_client.errors import ErrorAnswer, InvalidAnswer, RequestError, TimedOut
from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.official_options import check_project, given_project, project_named
from tui.commands.output import Output

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.models import TrainingJob
    from tui.commands.log_options import LogRequest

T = TypeVar("T")

ROUNDS = 4
"""A server that answers, if badly, is asked so often; each time with the client's own retries."""


async def job_of(client: TrainingClient, request: LogRequest, output: Output) -> TrainingJob:
    """The job that the request names, or the newest one of its project, or of all.

    Raises RequestError, and CommandFailed where there is none.
    """
    job_id = request.job_id
    name = given_project(request.project, request.project_id)
    if job_id is not None:
        job = await _insisting(lambda: client.jobs.find(job_id))
        check_project(job, name)
        return job
    project_id = (await _insisting(lambda: project_named(client, name))).id if name is not None else None
    found = await _insisting(lambda: client.jobs.search(project_id=project_id))
    if not found:
        raise CommandFailed("there is no job", ExitCode.NOT_FOUND)
    newest = max(found, key=lambda job: job.created_at or datetime.min.replace(tzinfo=UTC))
    output.remark(f"the log of the newest job, {newest.id}" + (f" ({newest.name})" if newest.name else ""))
    return newest


async def _insisting(call: Callable[[], Awaitable[T]]) -> T:
    """The call's result, called again after answers that a moment later may be better ones."""
    for _ in range(ROUNDS - 1):
        try:
            return await call()
        except RequestError as error:
            is_answer = isinstance(error, ErrorAnswer) and error.retryable
            if not is_answer and not isinstance(error, InvalidAnswer | TimedOut):
                raise
    return await call()
