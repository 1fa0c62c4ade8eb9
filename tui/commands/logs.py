"""``bt-tui logs``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from tui.commands.exit_codes import ExitCode, is_known_outcome, outcome_exit_code
from tui.commands.failures import CommandFailed
from tui.commands.options import NDJSON, TEXT, Settings, examples, format_option, remote_option
from tui.commands.output import Output
from tui.commands.session import run_on_remote

if TYPE_CHECKING:
    from collections.abc import Callable

    from api_client.client import TrainingClient
    from api_client.models import TrainingJob
    from api_client.streams.records import LogBatch, LogEntry

CLOCK_MARGIN = timedelta(minutes=5)
"""How far the server's clock may be off ours without a line being missed."""

LOG_LIFE = timedelta(days=7)
"""Where to begin with a job whose creation time the server does not tell: the widest window it serves."""


@click.command(
    short_help="Print a job's log; --follow waits for its end.",
    epilog=examples(
        "bt-tui logs abc1234 | less",
        "bt-tui logs abc1234 --follow -o ndjson | jq -r 'select(.level == \"ERROR\") | .message'",
    ),
)
@click.argument("job_id", metavar="JOB_ID")
@click.option("-f", "--follow", "--tail", is_flag=True, help="Go on until the job ends; exit as it did.")
@format_option(TEXT, NDJSON)
@remote_option
@click.pass_obj
def logs(settings: Settings, job_id: str, follow: bool, output_format: str) -> ExitCode:
    """Print a job's whole log, oldest line first, all nodes in one time order.

    With --follow the command waits for more until the job ends, and its exit code tells how: 0 completed,
    3 failed, 4 stopped or preempted, 5 deploy failed.

    As ndjson every line is an object with timestamp (ns, a string), time, replica, level and message, and
    "late": true if it arrived after younger lines. A stretch that could not be read is {"gap": {"start",
    "end", "reason"}}.
    """

    async def show(client: TrainingClient, output: Output) -> ExitCode:
        job = await client.jobs.find(job_id)
        render = line_renderer(output, output_format)
        if follow:
            return await follow_log(client, job, output, render)
        return await _print_history(client, job, output, render)

    return run_on_remote(settings, show)


@asynccontextmanager
async def closing_stream(stream: AsyncIterator[object]) -> AsyncIterator[None]:
    """End the stream's own tasks when the block is left early, and before the client is closed."""
    try:
        yield
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def line_renderer(output: Output, output_format: str) -> Callable[[LogEntry], str]:
    """What turns an entry into the text or JSON of its line, ended."""
    from tui.commands.log_lines import TextLines, ndjson_line

    return ndjson_line if output_format == NDJSON else TextLines(output).render


def _print(batch: LogBatch, output: Output, render: Callable[[LogEntry], str]) -> None:
    if batch.entries:
        output.data("".join([render(entry) for entry in batch.entries]))


async def _print_history(
    client: TrainingClient, job: TrainingJob, output: Output, render: Callable[[LogEntry], str]
) -> ExitCode:
    """Everything there is now, as it arrives."""
    now = datetime.now(UTC)
    start = job.created_at - CLOCK_MARGIN if job.created_at else now - LOG_LIFE
    batches = client.logs.history(job.project_id, job.id, start=start, end=now + CLOCK_MARGIN)
    async with closing_stream(batches):
        async for batch in batches:
            _print(batch, output, render)
    return ExitCode.OK


async def follow_log(
    client: TrainingClient, job: TrainingJob, output: Output, render: Callable[[LogEntry], str]
) -> ExitCode:
    """Print everything there is and will be until the job ends; returns the code that tells how it did."""
    from api_client.streams.records import LogEnd

    stream = client.logs.follow(job.project_id, job.id)
    async with closing_stream(stream):
        async for item in stream:
            if isinstance(item, LogEnd):
                return _tell_outcome(item.job, output)
            _print(item, output, render)
    raise CommandFailed(f"the log of job {job.id} stopped before the job did", ExitCode.UNEXPECTED)


def _tell_outcome(job: TrainingJob, output: Output) -> ExitCode:
    """Remark how the job ended and give the exit code that says the same."""
    from api_client.models import short_status

    code = outcome_exit_code(job.current_status)
    reason = f": {job.error_message}" if job.error_message and code is not ExitCode.OK else ""
    output.remark(f"job {job.id} ended: {short_status(job.current_status)}{reason}")
    if not is_known_outcome(job.current_status):
        output.remark(f"this version does not know that status; exit code {int(code)} stands for it")
    return code
