"""``bt-tui stop``: Stop jobs.

``bt-tui delete``: Delete jobs, or a project with its jobs.
``bt-tui update``: Change the priority or capacity of a queued job.
``bt-tui wait``: Wait until jobs end; the exit code is their result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import click

from api_client import RequestError, TrainingClient
from api_client.models import JobStatus, TrainingJob, short_status
from api_client.words import listed
from tui.analysis.fleet.batches import ProjectDeletion, Verb, batch_of
from tui.commands.support.options import (
    Duration,
    active_jobs,
    combined,
    examples,
    format_option,
    job_argument,
    job_named,
    project_named,
    selected_project,
    yes_option,
)
from tui.commands.support.output import (
    JSON,
    NDJSON,
    TABLE,
    CommandFailed,
    CommandOutput,
    ExitCode,
    ascii_json,
    explain,
    outcome_exit_code,
    refuse_if,
    worst_code,
)
from tui.commands.support.session import client_command
from tui.commands.support.tables import print_job, table_text
from tui.commands.support.terminal import can_ask, confirm
from tui.readers.stopping import next_checkpoint, read_unsaved_words
from tui.tables.jobs import JOB_LIST_COLUMNS
from tui.text.units import counted

_ids_argument = combined(
    "ids",
    lambda job_ids, named_ids: dict.fromkeys([*job_ids, *named_ids]),
    click.argument("job_ids", metavar="[JOB_ID]...", nargs=-1),
    click.option("--job-id", "named_ids", metavar="JOB_ID", multiple=True, help="Same as the argument."),
)


@examples("bt-tui stop abc1234", "bt-tui stop --all --yes", "bt-tui stop --project llama-sft --all")
@click.command()
@_ids_argument
@click.option("--project", metavar="PROJECT", help="Only jobs of this project (id or name).")
@click.option("--project-id", metavar="ID", help="Same as --project, by id.")
@click.option(
    "--after-checkpoint",
    is_flag=True,
    help="Wait until the job has stored its next checkpoint, then stop it; ctrl-c leaves it running.",
)
@click.option("--all", "stop_all", is_flag=True, help="Stop every active job that you can see.")
@yes_option
@format_option(TABLE, JSON)
@client_command
async def stop(
    client: TrainingClient,
    output: CommandOutput,
    ids: Collection[str],
    project: str | None,
    project_id: str | None,
    stop_all: bool,
    after_checkpoint: bool,
    assume_yes: bool,
) -> ExitCode:
    """Stop the given jobs, immediately or --after-checkpoint.

    Shows the work that would be lost, and asks on a terminal; without a terminal, given jobs are stopped at
    once. Without an id, the only active job is stopped, after confirmation; --all stops all active jobs,
    after confirmation; --project limits them to one project. Jobs that have already ended are skipped.
    """
    name_or_id = selected_project(project, project_id)
    refuse_if(ids and stop_all, "--all takes no job ids")
    refuse_if(ids and name_or_id is not None, "job ids need no project; omit it")
    client.check_may_change("stopping jobs")
    if ids:
        jobs = [await job_named(client, job_id, substring=False) for job_id in ids]
        running_jobs = [] if after_checkpoint else [job for job in jobs if not job.is_finished]
        for job in running_jobs:
            if unsaved_words := await read_unsaved_words(client, job):
                output.print_message(f"{_job_name(job)}: {unsaved_words}")
        if running_jobs and can_ask() and not assume_yes:
            confirm(f"stop {_job_names(running_jobs)}?", assume_yes=False)
    else:
        jobs = await _active_jobs(client, name_or_id, stop_all=stop_all)
        confirm(f"stop {_job_names(jobs)}?", assume_yes=assume_yes)
    if after_checkpoint:
        jobs = [await _wait_for_checkpoint(client, output, jobs)]
    for job in jobs:
        if job.is_finished:
            output.print_message(f"job {job.id} has already ended")
    changes = {
        f"job {_job_name(job)}": partial(client.jobs.stop, job.project_id, job.id)
        for job in jobs
        if not job.is_finished
    }
    stopped, code = await _carry_out(output, "stopped", changes)
    _print_ids(output, stopped)
    return code


async def _active_jobs(client: TrainingClient, project: str | None, *, stop_all: bool) -> list[TrainingJob]:
    """Return the active jobs. Raises CommandFailed if there are none, or several without `stop_all`."""
    active = await active_jobs(client, project)
    if not active:
        raise CommandFailed("no active jobs", ExitCode.NOT_FOUND)
    if len(active) > 1 and not stop_all:
        jobs = counted(len(active), "job is", "jobs are")
        raise CommandFailed(f"{jobs} active: {_job_names(active)}; name a job or give --all", ExitCode.USAGE)
    return active


async def _wait_for_checkpoint(
    client: TrainingClient, output: CommandOutput, jobs: Sequence[TrainingJob]
) -> TrainingJob:
    """Wait for the job's next checkpoint, then return the job with its new status."""
    refuse_if(len(jobs) != 1, "--after-checkpoint takes one job")
    (job,) = jobs
    if job.is_finished:
        return job
    output.print_message(
        f"waiting for the next checkpoint of {_job_name(job)}; ctrl-c leaves the job running"
    )
    if unsaved_words := await read_unsaved_words(client, job):
        output.print_message(unsaved_words)
    stored_checkpoint, job = await next_checkpoint(
        client, job, on_error=lambda error, _delay_s: output.print_message(f"{error}; retrying")
    )
    if stored_checkpoint is not None:
        output.print_message(f"stored {stored_checkpoint.checkpoint_id}")
    return job


@examples(
    "bt-tui delete abc1234",
    "bt-tui delete abc1234 def5678 --yes",
    "bt-tui delete --project llama-sft      the project with its jobs and its cache",
)
@click.command()
@_ids_argument
@click.option("--project", metavar="PROJECT", help="Delete this project (id or name).")
@click.option("--project-id", metavar="ID", help="Same as --project, by id.")
@yes_option
@format_option(TABLE, JSON)
@client_command
async def delete(
    client: TrainingClient,
    output: CommandOutput,
    ids: Collection[str],
    project: str | None,
    project_id: str | None,
    assume_yes: bool,
) -> ExitCode:
    """Delete jobs that have ended, with their logs and the checkpoints that are not deployed.

    --project deletes a whole project, its jobs and its cache. Asks for confirmation; deletion cannot be
    undone. Jobs that are still active are not deleted: stop them first.
    """
    name_or_id = selected_project(project, project_id)
    refuse_if(bool(ids) is bool(name_or_id), "delete what? Give either JOB_ID or --project PROJECT")
    client.check_may_change("deleting")
    changes: dict[str, Callable[[], Awaitable[Any]]]
    if name_or_id is not None:
        owning_project = await project_named(client, name_or_id)
        deletion = ProjectDeletion(
            owning_project.id, owning_project.name, tuple(await client.jobs.list(owning_project.id))
        )
        if deletion.refusal:
            raise CommandFailed(deletion.refusal, ExitCode.USAGE)
        question, consequence, has_skipped_jobs = deletion.question, deletion.consequence, False
        changes = {f"project {owning_project.name}": partial(client.projects.delete, owning_project.id)}
    else:
        batch = batch_of(Verb.DELETE, [await job_named(client, job_id, substring=False) for job_id in ids])
        if not batch.jobs:
            raise CommandFailed(batch.nothing_fits, ExitCode.USAGE)
        question, consequence, has_skipped_jobs = batch.question, batch.consequence, bool(batch.unfit)
        changes = {
            f"job {_job_name(job)}": partial(client.jobs.delete, job.project_id, job.id) for job in batch.jobs
        }
    for line in consequence.splitlines():
        output.print_message(line)
    confirm(question, assume_yes=assume_yes)
    deleted, code = await _carry_out(output, "deleted", changes)
    _print_ids(output, deleted)
    return ExitCode.USAGE if has_skipped_jobs else code


async def _carry_out(
    output: CommandOutput, past_verb: str, changes: Mapping[str, Callable[[], Awaitable[Any]]]
) -> tuple[list[Any], ExitCode]:
    """Make the changes one by one; after a failure, continue with the next change.

    ``past_verb`` is the verb of messages: "stopped". Returns the server's responses, and the exit code of the
    first failure.
    """
    responses = []
    code = ExitCode.OK
    for description, change in changes.items():
        try:
            responses.append(await change())
        except RequestError as error:
            code = code or print_failure(output, error, description, past_verb)
        else:
            output.print_message(f"{past_verb} {description}")
    return responses, code


def print_failure(output: CommandOutput, error: RequestError, description: str, past_verb: str) -> ExitCode:
    """Print that a change failed or may have failed, as in ``job abc was not stopped``; return the exit code.

    ``description`` names the object of the change, ``past_verb`` is the verb ("stopped").
    """
    message, code = explain(error)
    certainty = "may not have been" if error.may_have_happened else "was not"
    output.print_message(f"{description} {certainty} {past_verb}: {message}")
    return code


def _print_ids(output: CommandOutput, changed: Sequence[Any]) -> None:
    output.print_result(changed, "".join(f"{item.id}\n" for item in changed))


def _job_names(jobs: Sequence[TrainingJob]) -> str:
    return listed([_job_name(job) for job in jobs], 10)


def _job_name(job: TrainingJob) -> str:
    return f"{job.id} ({job.name})" if job.name else job.id


@examples("bt-tui update abc1234 --priority 10", "bt-tui update --job-id abc1234 --availability-model spot")
@click.command()
@job_argument
@click.option("--priority", type=int, metavar="N", help="Queue priority; higher goes first.")
@click.option(
    "--availability-model",
    type=click.Choice(("dedicated", "spot"), case_sensitive=False),
    help="Capacity to wait for.",
)
@format_option(TABLE, JSON)
@client_command
async def update(
    client: TrainingClient,
    output: CommandOutput,
    job_id: str,
    priority: int | None,
    availability_model: str | None,
) -> None:
    """Change a queued job; the server refuses changes once the job has GPUs."""
    refuse_if(
        priority is None and availability_model is None,
        "nothing to change: give --priority or --availability-model",
    )

    job = await job_named(client, job_id, substring=False)
    changed = await client.jobs.update(
        job.project_id, job.id, priority=priority, availability_model=availability_model
    )
    print_job(client, output, changed)


@examples(
    "bt-tui wait def5678 && bt-tui deploy_checkpoints --job-id def5678 --config deploy.py",
    "bt-tui wait abc1234 def5678 --timeout 2h -o json",
    "bt-tui wait abc1234 --until running && bt-tui ssh abc1234",
)
@click.command()
@click.argument("job_ids", metavar="JOB_ID...", nargs=-1, required=True)
@click.option(
    "--until",
    type=click.Choice(("finished", "running")),
    default="finished",
    show_default=True,
    help="State to wait for; a job that has ended counts as both.",
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
    output: CommandOutput,
    job_ids: tuple[str, ...],
    until: str,
    timeout_s: float | None,
    interval_s: float,
) -> ExitCode:
    """Wait until the jobs have ended or are running.

    Each job is printed once it reaches that state (with -o json, all at the end as an array). The exit code
    is that of the worst outcome: 0 completed, 4 stopped, preempted or expired, 5 deploy failed, 3 failed; 9
    if the timeout expired first. Server outages do not end the wait.
    """
    requested_jobs = [await job_named(client, job_id) for job_id in dict.fromkeys(job_ids)]
    jobs = {job.id: job for job in requested_jobs}
    done_jobs: dict[str, TrainingJob] = {}
    # more than ten jobs are polled less often, to limit the rate of requests
    poll_interval_s = interval_s * max(1.0, len(jobs) / 10)

    async def wait_for_job(job_id: str) -> None:
        project_id, status = jobs[job_id].project_id, jobs[job_id].current_status
        async for job in client.jobs.watch(project_id, job_id, interval_s=poll_interval_s):
            jobs[job_id] = job
            if job.is_finished or (until == "running" and job.current_status == JobStatus.RUNNING):
                done_jobs[job_id] = job
                _print_done_job(output, job, jobs.values(), is_first=len(done_jobs) == 1)
                return
            if job.current_status != status:
                status = job.current_status
                output.print_message(f"{job.id} is {short_status(status)}")

    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
                for job_id in jobs:
                    group.create_task(wait_for_job(job_id))
    except ExceptionGroup as error_group:
        # A job that cannot be watched (deleted, forbidden) ends the wait for all jobs.
        raise error_group.exceptions[0] from None
    if output.format == JSON:
        output.print_json(list(jobs.values()))
    if unfinished_ids := [job_id for job_id in jobs if job_id not in done_jobs]:
        output.print_message(f"timed out; still waiting for: {', '.join(unfinished_ids)}")
        return ExitCode.TIMED_OUT
    return worst_code(outcome_exit_code(job.current_status) for job in done_jobs.values() if job.is_finished)


def _print_done_job(
    output: CommandOutput, job: TrainingJob, jobs: Iterable[TrainingJob], *, is_first: bool
) -> None:
    """Print a line of ndjson, or a row aligned with later rows; the header precedes the first row."""
    if output.format == NDJSON:
        output.write_text(ascii_json(job.model_dump(mode="json")) + "\n")
    elif output.format == TABLE:
        # The other jobs' rows are rendered only for their column widths.
        header, row = table_text(JOB_LIST_COLUMNS, [job, *jobs], output).splitlines(keepends=True)[:2]
        output.write_text(header + row if is_first else row)
