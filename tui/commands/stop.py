"""``bt-tui stop``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tui.commands.confirmation import confirm
from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed, explain
from tui.commands.official_options import given_project, project_named
from tui.commands.options import JSON, TABLE, Settings, examples, format_option, remote_option, yes_option
from tui.commands.output import Output
from tui.commands.session import run_on_remote

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.models import TrainingJob

NAMES_SHOWN = 10


@click.command(
    short_help="Stop jobs.",
    epilog=examples(
        "bt-tui stop abc1234",
        "bt-tui stop --all --yes",
        "bt-tui stop --project llama-sft --all",
    ),
)
@click.argument("job_ids", metavar="[JOB_ID]...", nargs=-1)
@click.option("--job-id", "named_ids", metavar="JOB_ID", multiple=True, help="The same, as an option.")
@click.option("--project", metavar="PROJECT", help="Only jobs of this project (id or name).")
@click.option("--project-id", metavar="ID", help="The same, by id.")
@click.option("--all", "stop_all", is_flag=True, help="Every job that you can see and that has not ended.")
@yes_option
@format_option(TABLE, JSON)
@remote_option
@click.pass_obj
def stop(
    settings: Settings,
    job_ids: tuple[str, ...],
    named_ids: tuple[str, ...],
    project: str | None,
    project_id: str | None,
    stop_all: bool,
    assume_yes: bool,
    output_format: str,
) -> ExitCode:
    """Stop the given jobs, at once and without asking.

    Without an id the only job that has not ended is stopped, after asking; --all stops all of them, after
    asking; --project means those of it. A job that has ended already is left alone.
    """
    wanted = list(dict.fromkeys([*job_ids, *named_ids]))
    if wanted and stop_all:
        raise CommandFailed("--all stops every job: give no ids with it", ExitCode.USAGE)
    if wanted and (project or project_id):
        raise CommandFailed("jobs are named by their ids: leave the project out", ExitCode.USAGE)

    async def act(client: TrainingClient, output: Output) -> ExitCode:
        client.check_may_change("stopping jobs")
        if wanted:
            chosen = [await client.jobs.find(job_id) for job_id in wanted]
        else:
            chosen = await _active_jobs(client, given_project(project, project_id), stop_all=stop_all)
            confirm(_question(chosen), assume_yes=assume_yes)
        return await _stop(client, output, chosen, output_format)

    return run_on_remote(settings, act)


async def _active_jobs(client: TrainingClient, project: str | None, *, stop_all: bool) -> list[TrainingJob]:
    """The jobs that have not ended; raises CommandFailed if there is none, or no telling which."""
    from api_client.models.status import RUNNABLE_STATUSES

    project_id = (await project_named(client, project)).id if project else None
    found = await client.jobs.search(project_id=project_id, statuses=sorted(RUNNABLE_STATUSES))
    active = [job for job in found if not job.is_finished]
    if not active:
        raise CommandFailed("there is no job that has not ended", ExitCode.NOT_FOUND)
    if len(active) > 1 and not stop_all:
        raise CommandFailed(
            f"{len(active)} jobs have not ended: {_names(active)}; say which, or --all", ExitCode.USAGE
        )
    return active


async def _stop(
    client: TrainingClient, output: Output, jobs: Sequence[TrainingJob], output_format: str
) -> ExitCode:
    """Stop them one by one; one that cannot be stopped does not keep the others running."""
    from api_client.errors import RequestError

    code = ExitCode.OK
    stopped = []
    for job in jobs:
        if job.is_finished:
            output.remark(f"job {job.id} has ended already")
            stopped.append(job)
            continue
        try:
            stopped.append(await client.jobs.stop(job.project_id, job.id))
        except RequestError as error:
            message, failure = explain(error)
            unclear = error.may_have_happened
            said = f"perhaps job {job.id} was not stopped" if unclear else f"job {job.id} was not stopped"
            output.remark(f"{said}: {message}")
            code = code or failure
        else:
            output.remark(f"stopped job {_name(job)}")
    if output_format == JSON:
        output.json([job.model_dump(mode="json") for job in stopped])
    else:
        output.data("".join(f"{job.id}\n" for job in stopped))
    return code


def _question(jobs: Sequence[TrainingJob]) -> str:
    return f"stop {_names(jobs)}?" if len(jobs) == 1 else f"stop {len(jobs)} jobs: {_names(jobs)}?"


def _names(jobs: Sequence[TrainingJob]) -> str:
    more = f" and {len(jobs) - NAMES_SHOWN} more" if len(jobs) > NAMES_SHOWN else ""
    return ", ".join(_name(job) for job in jobs[:NAMES_SHOWN]) + more


def _name(job: TrainingJob) -> str:
    return f"{job.id} ({job.name})" if job.name else job.id
