"""``bt-tui stop``: Stop jobs.

``bt-tui delete``: Delete jobs, or a project with its jobs.
``bt-tui update``: Change the priority or capacity of a queued job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import click

from api_client.client import TrainingClient
from api_client.clock import SystemClock
from api_client.errors import RequestError
from api_client.models import TrainingJob
from tui.analysis.fleet.batches import ProjectDeletion, Verb, batch_of
from tui.commands.support.exit_codes import CommandFailed, ExitCode, explain
from tui.commands.support.lookups import active_jobs, job_named, project_named
from tui.commands.support.options import (
    JSON,
    TABLE,
    examples,
    format_option,
    job_argument,
    selected_project,
    yes_option,
)
from tui.commands.support.output import Output
from tui.commands.support.session import client_command
from tui.commands.support.tables import print_job
from tui.commands.support.terminal import can_ask, confirm
from tui.readers.stopping import next_checkpoint, read_unsaved_words
from tui.text.names import listed
from tui.text.units import counted


@examples("bt-tui stop abc1234", "bt-tui stop --all --yes", "bt-tui stop --project llama-sft --all")
@click.command()
@click.argument("job_ids", metavar="[JOB_ID]...", nargs=-1)
@click.option("--job-id", "named_ids", metavar="JOB_ID", multiple=True, help="Same as the argument.")
@click.option("--project", metavar="PROJECT", help="Only jobs of this project (id or name).")
@click.option("--project-id", metavar="ID", help="Same, by id.")
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
    output: Output,
    job_ids: tuple[str, ...],
    named_ids: tuple[str, ...],
    project: str | None,
    project_id: str | None,
    stop_all: bool,
    after_checkpoint: bool,
    assume_yes: bool,
    output_format: str,
) -> ExitCode:
    """Stop the given jobs, immediately or --after-checkpoint.

    It shows what is lost, and asks on a terminal; elsewhere, given jobs are stopped at once. Without an id,
    the only active job is stopped, after confirmation; --all stops all active jobs, after confirmation;
    --project limits them to one project. Jobs that have already ended are skipped.
    """
    ids = dict.fromkeys([*job_ids, *named_ids])
    of_project = selected_project(project, project_id)
    if ids and stop_all:
        raise CommandFailed("--all takes no job ids", ExitCode.USAGE)
    if ids and of_project is not None:
        raise CommandFailed("job ids need no project; omit it", ExitCode.USAGE)
    client.check_may_change("stopping jobs")
    if ids:
        jobs = [await job_named(client, job_id, parts=False) for job_id in ids]
        running = [] if after_checkpoint else [job for job in jobs if not job.is_finished]
        for job in running:
            if lost := await read_unsaved_words(client, job):
                output.remark(f"{_name(job)}: {lost}")
        if running and can_ask() and not assume_yes:
            confirm(f"stop {_names(running)}?", assume_yes=False)
    else:
        jobs = await _active_jobs(client, of_project, stop_all=stop_all)
        confirm(f"stop {_names(jobs)}?", assume_yes=assume_yes)
    if after_checkpoint:
        jobs = [await _after_checkpoint(client, output, jobs)]
    ended = [job for job in jobs if job.is_finished]
    for job in ended:
        output.remark(f"job {job.id} has already ended")
    changes = {
        f"job {_name(job)}": partial(client.jobs.stop, job.project_id, job.id)
        for job in jobs
        if not job.is_finished
    }
    answers, code = await _carry_out(output, "stopped", changes)
    stopped = {job.id: job for job in (*ended, *answers)}
    _print_ids(output, output_format, [stopped[job.id] for job in jobs if job.id in stopped])
    return code


async def _active_jobs(client: TrainingClient, project: str | None, *, stop_all: bool) -> list[TrainingJob]:
    """Return the active jobs. Raises CommandFailed if there are none, or several without `stop_all`."""
    active = await active_jobs(client, project)
    if not active:
        raise CommandFailed("no active jobs", ExitCode.NOT_FOUND)
    if len(active) > 1 and not stop_all:
        jobs = counted(len(active), "job is", "jobs are")
        raise CommandFailed(f"{jobs} active: {_names(active)}; name one or give --all", ExitCode.USAGE)
    return active


async def _after_checkpoint(
    client: TrainingClient, output: Output, jobs: Sequence[TrainingJob]
) -> TrainingJob:
    """Wait for the job's next checkpoint and return the job as it is then."""
    if len(jobs) != 1:
        raise CommandFailed("--after-checkpoint takes one job", ExitCode.USAGE)
    (job,) = jobs
    if job.is_finished:
        return job
    output.remark(f"waiting for the next checkpoint of {_name(job)}; ctrl-c leaves the job running")
    if lost := await read_unsaved_words(client, job):
        output.remark(lost)
    saved, job = await next_checkpoint(
        client, job, SystemClock(), on_trouble=lambda error, _delay_s: output.remark(f"{error}; retrying")
    )
    if saved is not None:
        output.remark(f"stored {saved.checkpoint_id}")
    return job


@examples(
    "bt-tui delete abc1234",
    "bt-tui delete abc1234 def5678 --yes",
    "bt-tui delete --project llama-sft      the project with its jobs and its cache",
)
@click.command()
@click.argument("job_ids", metavar="[JOB_ID]...", nargs=-1)
@click.option("--job-id", "named_ids", metavar="JOB_ID", multiple=True, help="Same as the argument.")
@click.option("--project", metavar="PROJECT", help="Delete this project (id or name).")
@click.option("--project-id", metavar="ID", help="Same, by id.")
@yes_option
@format_option(TABLE, JSON)
@client_command
async def delete(
    client: TrainingClient,
    output: Output,
    job_ids: tuple[str, ...],
    named_ids: tuple[str, ...],
    project: str | None,
    project_id: str | None,
    assume_yes: bool,
    output_format: str,
) -> ExitCode:
    """Delete jobs that have ended, with their logs and the checkpoints that are not deployed.

    --project deletes a whole project, its jobs and its cache. Asks for confirmation; nothing of it can be
    undone. Jobs that are still active are not deleted: stop them first.
    """
    ids = dict.fromkeys([*job_ids, *named_ids])
    of_project = selected_project(project, project_id)
    if bool(ids) is bool(of_project):
        raise click.UsageError("what? Give either JOB_ID or --project PROJECT")
    client.check_may_change("deleting")
    changes: dict[str, Callable[[], Awaitable[Any]]]
    if of_project is not None:
        owner = await project_named(client, of_project)
        deletion = ProjectDeletion(owner.id, owner.name, tuple(await client.jobs.list(owner.id)))
        if deletion.refusal:
            raise CommandFailed(deletion.refusal, ExitCode.USAGE)
        question, consequence, skips = deletion.question, deletion.consequence, False
        changes = {f"project {owner.name}": partial(client.projects.delete, owner.id)}
    else:
        batch = batch_of(Verb.DELETE, [await job_named(client, job_id, parts=False) for job_id in ids])
        if not batch.jobs:
            raise CommandFailed(batch.nothing_fits, ExitCode.USAGE)
        question, consequence, skips = batch.question, batch.consequence, bool(batch.unfit)
        changes = {
            f"job {_name(job)}": partial(client.jobs.delete, job.project_id, job.id) for job in batch.jobs
        }
    for line in consequence.splitlines():
        output.remark(line)
    confirm(question, assume_yes=assume_yes)
    deleted, code = await _carry_out(output, "deleted", changes)
    _print_ids(output, output_format, deleted)
    return ExitCode.USAGE if skips else code


async def _carry_out(
    output: Output, done: str, changes: Mapping[str, Callable[[], Awaitable[Any]]]
) -> tuple[list[Any], ExitCode]:
    """Make the changes one by one; a failure does not keep the others from being made.

    Returns the server's answers, and the exit code of the first failure.
    """
    answers = []
    code = ExitCode.OK
    for what, change in changes.items():
        try:
            answers.append(await change())
        except RequestError as error:
            code = code or remark_failure(output, error, what, done)
        else:
            output.remark(f"{done} {what}")
    return answers, code


def remark_failure(output: Output, error: RequestError, what: str, done: str) -> ExitCode:
    """Report that ``what`` was not, or may not have been ``done``; return the error's exit code."""
    message, code = explain(error)
    output.remark(f"{what} {'may not have been' if error.may_have_happened else 'was not'} {done}: {message}")
    return code


def _print_ids(output: Output, output_format: str, changed: Sequence[Any]) -> None:
    output.answer(output_format, changed, "".join(f"{item.id}\n" for item in changed))


def _names(jobs: Sequence[TrainingJob]) -> str:
    return listed([_name(job) for job in jobs], 10)


def _name(job: TrainingJob) -> str:
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
    output: Output,
    job_id: str,
    priority: int | None,
    availability_model: str | None,
    output_format: str,
) -> None:
    """Change a queued job; the server refuses changes once the job has GPUs."""
    if priority is None and availability_model is None:
        raise click.UsageError("nothing to change: give --priority or --availability-model")

    job = await job_named(client, job_id, parts=False)
    changed = await client.jobs.update(
        job.project_id, job.id, priority=priority, availability_model=availability_model
    )
    print_job(client, output, changed, output_format)
