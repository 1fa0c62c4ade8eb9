"""``bt-tui job``: Show one job.

``bt-tui jobs``: List jobs, running ones first.
``bt-tui projects``: List the projects that your key can access.
``bt-tui view`` (hidden)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from api_client.client import TrainingClient
from api_client.models import JobStatus, TrainingJob, full_status, short_status
from tui.analysis.export import csv_text, records
from tui.analysis.ordering import ordered
from tui.analysis.status import status_view
from tui.commands.support.options import (
    ASCENDING,
    DESCENDING,
    CommandSettings,
    examples,
    format_option,
    job_argument,
    job_named,
    project_id_of,
    recorded_job_id,
    recording_option,
    remote_option,
    selected_project,
)
from tui.commands.support.output import (
    CSV,
    JSON,
    TABLE,
    CommandFailed,
    ExitCode,
    Output,
    refuse,
    unknown_value,
)
from tui.commands.support.session import client_command
from tui.commands.support.tables import Cell, facts_in, fitting, print_job, print_list, table_of
from tui.readers.stored_health import StoredHealth, stored_health
from tui.tables.column import Column, export_table, select_columns
from tui.tables.jobs import JOB_COLUMNS, LISTED_JOBS, LISTED_PROJECTS, PROJECT_COLUMNS, age_of
from tui.text.failures import left_out_note
from tui.text.times import time_key

if TYPE_CHECKING:
    from tui.analysis.fleet.snapshot import FleetSnapshot, JobRow
    from tui.tables.fleet import HealthCells


def running_first(jobs: Iterable[TrainingJob]) -> list[TrainingJob]:
    """Sort jobs: running, about to run, waiting, then ended; newest first within each group."""
    newest_first = sorted(jobs, key=lambda job: time_key(job.created_at), reverse=True)
    return sorted(newest_first, key=lambda job: status_view(job.current_status).order)


health_option = click.option(
    "--health",
    "checks",
    is_flag=True,
    help="With progress, health, loss and cost: reads the logs of running jobs, which takes seconds.",
)


@examples(
    "bt-tui job abc1234",
    "bt-tui job abc1234 --health",
    "bt-tui job abc1234 -o json | jq -r .current_status",
)
@click.command()
@recording_option
@job_argument
@health_option
@format_option(TABLE, JSON)
@client_command
async def job(client: TrainingClient, output: Output, job_id: str, checks: bool) -> None:
    """Show one job.

    The exit code is 0 if the job was found, however it ended: read current_status, or use the exit code
    of "bt-tui logs JOB_ID --follow".
    """
    match = await job_named(client, job_id)
    if checks:
        refuse(recorded_job_id(), "--health reads no recording; see bt-tui health --file")
        _, rows, columns = await _checked(client, output, [match])
        for row, document in zip(rows, _documents(columns, rows), strict=True):
            print_job(client, output, row.job, document, facts_in(columns, row))
        return
    kept = _kept_health(client, [match])
    facts: list[tuple[str, Cell]] = []
    if kept and not recorded_job_id():
        from tui.tables.fleet import HEALTH_COLUMN_IDS, listed_columns

        facts = facts_in(select_columns(listed_columns(_cells(kept)), HEALTH_COLUMN_IDS), match)
    print_job(client, output, match, None, facts)
    _point_to(client, output, [match], _when_read(kept), "summary", match.id)


@examples(
    "bt-tui jobs",
    "bt-tui jobs --project llama-sft --status running --status pending",
    "bt-tui jobs --health                 with progress, health, loss and cost",
    "bt-tui jobs -o csv > jobs.csv",
    "bt-tui jobs -o json | jq -r '.[] | select(.error_message) | .id'",
)
@click.command()
@click.option("--project", "project_name", metavar="PROJECT", help="Only jobs of this project (id or name).")
@click.option(
    "--status",
    "statuses",
    metavar="STATUS",
    multiple=True,
    help="Only jobs with this status, e.g. running or TRAINING_JOB_RUNNING; repeatable.",
)
@click.option(
    "--direction",
    type=click.Choice((ASCENDING, DESCENDING)),
    help="Sort by creation only; desc: newest first.",
)
@health_option
@format_option(TABLE, JSON, CSV)
@client_command
async def jobs(
    client: TrainingClient,
    output: Output,
    project_name: str | None,
    statuses: tuple[str, ...],
    direction: str | None,
    checks: bool,
) -> None:
    """List jobs: running jobs first, then waiting ones, then the rest, newest first."""
    project_id = await project_id_of(client, project_name)
    chosen_statuses = await _wanted_statuses(client, statuses, project_id)
    unreadable: list[str] = []
    listed = await client.jobs.search(
        project_id=project_id, statuses=chosen_statuses or None, unreadable=unreadable
    )
    if unreadable:
        output.remark(left_out_note("job", unreadable))
    shown = running_first(
        job for job in listed if not chosen_statuses or job.current_status in chosen_statuses
    )
    if direction is not None:
        shown = ordered(shown, lambda job: job.created_at, descending=direction == DESCENDING)
    if checks and shown:
        from tui.tables.fleet import health_cells, jobs_table, listed_columns

        fleet, rows, of_health = await _checked(client, output, shown)
        listed_with = listed_columns({row.id: health_cells(fleet, row) for row in rows})
        output.answer(
            lambda: _documents(of_health, rows),
            lambda: table_of(fitting(listed_with, shown, output), shown, output),
            lambda: csv_text([jobs_table(of_health, rows)]),
        )
        return
    kept = _kept_health(client, shown)
    columns: Sequence[Column[TrainingJob]] = LISTED_JOBS
    if kept and output.format == TABLE:
        from tui.tables.fleet import listed_columns

        columns = fitting(listed_columns(_cells(kept)), shown, output)
    print_list(output, shown, columns, JOB_COLUMNS, "no jobs")
    _point_to(client, output, shown, _when_read(kept), "jobs", "--health")


def _kept_health(client: TrainingClient, jobs: Sequence[TrainingJob]) -> dict[str, StoredHealth]:
    """Return what Home knew lately of those that still run; of a job that has ended, its end is missing."""
    running = [job.id for job in jobs if job.current_status == JobStatus.RUNNING]
    return stored_health(client.remote.api_url, running, client.clock.now().timestamp())


def _cells(kept: Mapping[str, StoredHealth]) -> Mapping[str, HealthCells]:
    return {job_id: health.cells for job_id, health in kept.items()}


def _when_read(kept: Mapping[str, StoredHealth]) -> str:
    if not kept:
        return "progress, health and cost"
    oldest = datetime.fromtimestamp(min(health.at_s for health in kept.values()), UTC)
    return f"progress, health and cost were read {age_of(oldest)} ago; now"


async def _checked(
    client: TrainingClient, output: Output, jobs: Sequence[TrainingJob]
) -> tuple[FleetSnapshot, list[JobRow], Sequence[Column[JobRow]]]:
    """Return all jobs as Home knows them, the chosen ones, and the columns that it adds to a job."""
    # not for a list that reads no log, which is to be fast
    from tui.commands.jobs.top import read_fleet
    from tui.tables.fleet import health_columns

    fleet = await read_fleet(client, output, [job.id for job in jobs])
    by_id = {row.id: row for row in fleet.jobs}
    return fleet, [by_id[job.id] for job in jobs if job.id in by_id], health_columns(lambda: fleet)


def _documents(columns: Sequence[Column[JobRow]], rows: Sequence[JobRow]) -> list[dict[str, Any]]:
    """Return the jobs as the API describes them, and with the values of these columns."""
    known = records(export_table("", columns, rows))
    return [row.job.model_dump() | values for row, values in zip(rows, known, strict=True)]


def _point_to(
    client: TrainingClient,
    output: Output,
    shown: Iterable[TrainingJob],
    purpose: str,
    *words: str,
) -> None:
    """Name the command that reads the logs of running jobs, too, which takes seconds."""
    runs = any(job.current_status == JobStatus.RUNNING for job in shown)
    if runs and output.format == TABLE and not recorded_job_id():
        output.remark(f"{purpose}: {client.remote.command_line(*words)}")


async def _wanted_statuses(
    client: TrainingClient, statuses: Sequence[str], project_id: str | None
) -> list[str]:
    """Return the API's spelling of each status. Raises CommandFailed for an unknown one.

    Statuses that this version does not know are accepted if a job on the server has them.
    """
    typed = {short_status(full_status(status)): status for status in statuses}
    by_short_name = {short_status(status): str(status) for status in JobStatus}
    if not typed.keys() <= by_short_name.keys():
        for job in await client.jobs.search(project_id=project_id):
            by_short_name.setdefault(short_status(job.current_status), job.current_status)
    for name, status in typed.items():
        if name not in by_short_name:
            raise CommandFailed(unknown_value("status", status, by_short_name), ExitCode.USAGE)
    return [by_short_name[name] for name in typed]


@examples("bt-tui projects", "bt-tui projects -o json | jq -r '.[].name'")
@click.command()
@format_option(TABLE, JSON, CSV)
@client_command
async def projects(client: TrainingClient, output: Output) -> None:
    """List the projects that your key can access."""
    unreadable: list[str] = []
    listed = await client.projects.list(unreadable=unreadable)
    if unreadable:
        output.remark(left_out_note("project", unreadable))
    print_list(output, listed, LISTED_PROJECTS, PROJECT_COLUMNS, "no projects")


@examples(
    "bt-tui view                          projects, then jobs",
    "bt-tui view --project llama-sft      one project: like bt-tui jobs --project",
    "bt-tui view --job-id abc1234         one job: like bt-tui job",
)
@click.command(short_help="The official word for projects, jobs and job.")
@click.option("--project-id", metavar="ID", help="Jobs of this project.")
@click.option("--project", metavar="NAME", help="Jobs of this project, by name or id.")
@click.option("--job-id", metavar="JOB_ID", help="Only this job.")
@format_option(TABLE, JSON)
@remote_option
@click.pass_context
def view(
    context: click.Context,
    project_id: str | None,
    project: str | None,
    job_id: str | None,
) -> None:
    """Show projects and jobs, the jobs of a project, or one job.

    JSON is that of "bt-tui jobs"; with --job-id, that of "bt-tui job".
    """
    project_name = selected_project(project, project_id)
    if job_id is not None:
        context.invoke(job, job_argument=job_id, job_option=None, checks=False)
        return
    output = context.ensure_object(CommandSettings).output
    if project_name is None and output.format == TABLE:
        context.invoke(projects)
        output.data("\n")
    context.invoke(
        jobs,
        project_name=project_name,
        statuses=(),
        direction=None,
        checks=False,
    )
