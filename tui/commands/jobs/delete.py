"""``bt-tui delete``: Delete jobs, or a project with its jobs."""

from __future__ import annotations

import click

from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.models import JobTombstone
from tui.analysis.fleet.batches import ProjectDeletion, Verb, batch_of, name_of
from tui.commands.jobs.stop import remark_failure
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.lookups import project_named
from tui.commands.support.options import JSON, TABLE, examples, format_option, selected_project, yes_option
from tui.commands.support.output import Output
from tui.commands.support.session import client_command
from tui.commands.support.terminal import confirm


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
    ids = list(dict.fromkeys([*job_ids, *named_ids]))
    of_project = selected_project(project, project_id)
    if bool(ids) is bool(of_project):
        raise click.UsageError("what? Give either JOB_ID or --project PROJECT")
    client.check_may_change("deleting")
    if of_project is not None:
        return await _delete_project(client, output, of_project, assume_yes, output_format)
    return await _delete_jobs(client, output, ids, assume_yes, output_format)


async def _delete_jobs(
    client: TrainingClient, output: Output, job_ids: list[str], assume_yes: bool, output_format: str
) -> ExitCode:
    """Delete the jobs one by one; a failure does not keep the others from being deleted."""
    batch = batch_of(Verb.DELETE, [await client.jobs.find(job_id) for job_id in job_ids])
    if not batch.jobs:
        raise CommandFailed(batch.nothing_fits, ExitCode.USAGE)
    for line in batch.consequence.splitlines():
        output.remark(line)
    confirm(batch.question, assume_yes=assume_yes)
    code = ExitCode.USAGE if batch.unfit else ExitCode.OK
    deleted: list[JobTombstone] = []
    for job in batch.jobs:
        try:
            deleted.append(await client.jobs.delete(job.project_id, job.id))
        except RequestError as error:
            code = code or remark_failure(output, error, f"job {job.id}", "deleted")
        else:
            output.remark(f"deleted job {job.id} ({name_of(job)})")
    if output_format == JSON:
        output.json(deleted)
    else:
        output.data("".join(f"{tombstone.id}\n" for tombstone in deleted))
    return code


async def _delete_project(
    client: TrainingClient, output: Output, name_or_id: str, assume_yes: bool, output_format: str
) -> ExitCode:
    doomed = await project_named(client, name_or_id)
    project = ProjectDeletion(doomed.id, doomed.name, tuple(await client.jobs.list(doomed.id)))
    if project.refusal:
        raise CommandFailed(project.refusal, ExitCode.USAGE)
    output.remark(project.consequence)
    confirm(project.question, assume_yes=assume_yes)
    try:
        deleted = await client.projects.delete(doomed.id)
    except RequestError as error:
        return remark_failure(output, error, f"project {doomed.name}", "deleted")
    output.remark(f"deleted project {doomed.name}")
    if output_format == JSON:
        output.json([deleted])
    else:
        output.data(f"{deleted.id}\n")
    return ExitCode.OK
