"""``bt-tui wait``: Wait until jobs end; the exit code is their result."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import click

from api_client.client import TrainingClient
from api_client.models import TrainingJob
from api_client.models.jobs import JobStatus, short_status
from tui.commands.support.exit_codes import ExitCode, outcome_exit_code, worst
from tui.commands.support.lookups import job_named
from tui.commands.support.options import JSON, NDJSON, TABLE, Duration, examples, format_option
from tui.commands.support.output import Output, ascii_json
from tui.commands.support.session import client_command
from tui.commands.support.tables import table_of
from tui.tables.jobs import LISTED_JOBS

RUNNING, FINISHED = "running", "finished"


@examples(
    "bt-tui wait def5678 && bt-tui deploy_checkpoints --job-id def5678 --config deploy.py",
    "bt-tui wait abc1234 def5678 --timeout 2h -o json",
    "bt-tui wait abc1234 --until running && bt-tui ssh abc1234",
)
@click.command()
@click.argument("job_ids", metavar="JOB_ID...", nargs=-1, required=True)
@click.option(
    "--until",
    type=click.Choice((FINISHED, RUNNING)),
    default=FINISHED,
    show_default=True,
    help="State to wait for; a job that has ended always counts.",
)
@click.option(
    "--timeout", "timeout_s", type=Duration(), metavar="SPAN", help="Maximum time to wait: 2h, 90m, 45s."
)
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(0.01, 3600.0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between polls.",
)
@format_option(TABLE, JSON, NDJSON)
@client_command
async def wait(
    client: TrainingClient,
    output: Output,
    job_ids: tuple[str, ...],
    until: str,
    timeout_s: float | None,
    interval_s: float,
    output_format: str,
) -> ExitCode:
    """Wait until the jobs have ended or are running.

    Each job is printed once it reaches that state (with -o json, all at the end as an array). The exit code
    is that of the worst outcome: 0 completed, 4 stopped, preempted or expired, 5 deploy failed, 3 failed; 9
    if the timeout expired first. Server outages do not end the wait.
    """
    named = [await job_named(client, job_id) for job_id in dict.fromkeys(job_ids)]
    jobs = {job.id: job for job in named}
    ended: dict[str, TrainingJob] = {}
    # more than ten jobs are polled less often, to limit requests
    pace_s = interval_s * max(1.0, len(jobs) / 10)

    async def follow(job_id: str) -> None:
        project_id, status = jobs[job_id].project_id, jobs[job_id].current_status
        async for job in client.jobs.watch(project_id, job_id, interval_s=pace_s):
            jobs[job_id] = job
            if job.is_finished or (until == RUNNING and job.current_status == JobStatus.RUNNING):
                ended[job_id] = job
                _print_ended(output, output_format, job, jobs.values(), is_first=len(ended) == 1)
                return
            if job.current_status != status:
                status = job.current_status
                output.remark(f"{job.id} is {short_status(status)}")

    code = None
    try:
        async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
            for job_id in jobs:
                group.create_task(follow(job_id))
    except TimeoutError:
        code = ExitCode.TIMED_OUT
    except ExceptionGroup as several:
        # A job that cannot be waited for (deleted, forbidden) ends the wait for all, as it would on its
        # own.
        raise several.exceptions[0] from None
    if output_format == JSON:
        output.json(list(jobs.values()))
    if code is not None:
        left = ", ".join(job_id for job_id in jobs if job_id not in ended)
        output.remark(f"timed out; still waiting for: {left}")
        return code
    return worst(outcome_exit_code(job.current_status) for job in ended.values() if job.is_finished)


def _print_ended(
    output: Output, output_format: str, job: TrainingJob, jobs: Iterable[TrainingJob], *, is_first: bool
) -> None:
    """Print a line of ndjson, or a row aligned with later ones; the header precedes the first."""
    if output_format == NDJSON:
        output.data(ascii_json(job.model_dump(mode="json")) + "\n")
    elif output_format == TABLE:
        # The other jobs' rows are rendered only for their column widths.
        header, row = table_of(LISTED_JOBS, [job, *jobs], output).splitlines(keepends=True)[:2]
        output.data(header + row if is_first else row)
