"""``bt-tui wait``: Wait until jobs end; the exit code is their result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from api_client.client import TrainingClient
from api_client.models import TrainingJob
from api_client.models.jobs import JobStatus, short_status
from tui.commands.support.exit_codes import ExitCode, outcome_exit_code
from tui.commands.support.options import JSON, NDJSON, TABLE, Duration, examples, format_option
from tui.commands.support.output import Output, ascii_json
from tui.commands.support.session import client_command
from tui.commands.support.tables import table_of
from tui.tables.jobs import LISTED_JOBS

RUNNING, FINISHED = "running", "finished"
FROM_BEST_TO_WORST = (ExitCode.OK, ExitCode.JOB_STOPPED, ExitCode.DEPLOY_FAILED, ExitCode.JOB_FAILED)

INTERVAL_S, SHORTEST_INTERVAL_S, LONGEST_INTERVAL_S = 5.0, 0.01, 3600.0
JOBS_AT_FULL_PACE = 10
"""Maximum number of jobs polled at the full rate; more are polled less often to limit requests."""


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
    type=click.FloatRange(SHORTEST_INTERVAL_S, LONGEST_INTERVAL_S),
    default=INTERVAL_S,
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
    ids = list(dict.fromkeys(job_ids))

    jobs = [await client.jobs.find(job_id) for job_id in ids]
    report = _Report(output, output_format, jobs)
    pace_s = interval_s * max(1.0, len(jobs) / JOBS_AT_FULL_PACE)

    async def follow(job: TrainingJob) -> None:
        async for seen in client.jobs.watch(job.project_id, job.id, interval_s=pace_s):
            report.seen(seen)
            if _is_over(seen, until):
                report.done(seen)
                return

    try:
        async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(follow(job))
    except TimeoutError:
        report.finish()
        output.remark(f"timed out; still waiting for: {report.left()}")
        return ExitCode.TIMED_OUT
    except ExceptionGroup as several:
        # A job that cannot be waited for (deleted, forbidden) ends the wait for all, as it would on its
        # own.
        raise several.exceptions[0] from None
    report.finish()
    return worst(_outcome(job) for job in report.ended)


def worst(outcomes: Any) -> ExitCode:
    return max(outcomes, key=FROM_BEST_TO_WORST.index, default=ExitCode.OK)


def _outcome(job: TrainingJob) -> ExitCode:
    return outcome_exit_code(job.current_status) if job.is_finished else ExitCode.OK


def _is_over(job: TrainingJob, until: str) -> bool:
    return job.is_finished or (until == RUNNING and job.current_status == JobStatus.RUNNING)


class _Report:
    """Prints a line as soon as a job is done, or the array at the end."""

    def __init__(self, output: Output, output_format: str, jobs: Sequence[TrainingJob]) -> None:
        self._output = output
        self._format = output_format
        self._latest = {job.id: job for job in jobs}
        self.ended: list[TrainingJob] = []

    def seen(self, job: TrainingJob) -> None:
        before = self._latest[job.id]
        self._latest[job.id] = job
        if before.current_status != job.current_status and not job.is_finished:
            self._output.remark(f"{job.id} is {short_status(job.current_status)}")

    def done(self, job: TrainingJob) -> None:
        self.ended.append(job)
        if self._format == NDJSON:
            self._output.data(ascii_json(job.model_dump(mode="json")) + "\n")
        elif self._format == TABLE:
            self._print_row(job)

    def finish(self) -> None:
        if self._format == JSON:
            self._output.json(list(self._latest.values()))

    def left(self) -> str:
        ended = {job.id for job in self.ended}
        return ", ".join(job_id for job_id in self._latest if job_id not in ended)

    def _print_row(self, job: TrainingJob) -> None:
        """Print a row of the job table, aligned with later rows; the header precedes the first."""
        # The other jobs' rows are rendered only for their column widths.
        table = table_of(LISTED_JOBS, [job, *self._latest.values()], self._output)
        header, row = table.splitlines(keepends=True)[:2]
        self._output.data(header + row if len(self.ended) == 1 else row)
