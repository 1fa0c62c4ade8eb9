"""``bt-tui job``: Show one job.

``bt-tui jobs``: List jobs, running jobs first.
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
    CommandOutput,
    ExitCode,
    refuse_if,
    unknown_value,
)
from tui.commands.support.session import client_command
from tui.commands.support.tables import Cell, fitting_columns, print_job, print_list, row_facts, table_text
from tui.readers.stored_health import StoredHealth, stored_health
from tui.tables.column import Column, export_table, select_columns
from tui.tables.jobs import JOB_COLUMNS, JOB_LIST_COLUMNS, PROJECT_COLUMNS, PROJECT_LIST_COLUMNS, age_of
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
    "with_health",
    is_flag=True,
    help="Add progress, health, loss and cost; reads the logs of running jobs, which takes seconds.",
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
async def job(client: TrainingClient, output: CommandOutput, job_id: str, with_health: bool) -> None:
    """Show one job.

    The exit code is 0 if the job was found, however it ended: read current_status, or use the exit code
    of "bt-tui logs JOB_ID --follow".
    """
    matching_job = await job_named(client, job_id)
    if with_health:
        refuse_if(recorded_job_id(), "--health reads no recording; see bt-tui health --file")
        _, rows, columns = await _read_health_rows(client, output, [matching_job])
        for row, document in zip(rows, _job_records(columns, rows), strict=True):
            print_job(client, output, row.job, document, row_facts(columns, row))
        return
    recent_health = _recent_health(client, [matching_job])
    facts: list[tuple[str, Cell]] = []
    if recent_health and not recorded_job_id():
        from tui.tables.fleet import HEALTH_COLUMN_IDS, listed_columns

        facts = row_facts(
            select_columns(listed_columns(_cells_by_job(recent_health)), HEALTH_COLUMN_IDS), matching_job
        )
    print_job(client, output, matching_job, None, facts)
    _suggest_command(
        client, output, [matching_job], _health_age_text(recent_health), "summary", matching_job.id
    )


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
    output: CommandOutput,
    project_name: str | None,
    statuses: tuple[str, ...],
    direction: str | None,
    with_health: bool,
) -> None:
    """List jobs: running jobs first, then waiting ones, then the rest, newest first."""
    project_id = await project_id_of(client, project_name)
    chosen_statuses = await _api_statuses(client, statuses, project_id)
    unreadable_reasons: list[str] = []
    found_jobs = await client.jobs.search(
        project_id=project_id, statuses=chosen_statuses or None, unreadable=unreadable_reasons
    )
    if unreadable_reasons:
        output.print_message(left_out_note("job", unreadable_reasons))
    selected_jobs = running_first(
        job for job in found_jobs if not chosen_statuses or job.current_status in chosen_statuses
    )
    if direction is not None:
        selected_jobs = ordered(selected_jobs, lambda job: job.created_at, descending=direction == DESCENDING)
    if with_health and selected_jobs:
        from tui.tables.fleet import health_cells, jobs_table, listed_columns

        fleet, rows, health_columns = await _read_health_rows(client, output, selected_jobs)
        table_columns = listed_columns({row.id: health_cells(fleet, row) for row in rows})
        output.print_result(
            lambda: _job_records(health_columns, rows),
            lambda: table_text(fitting_columns(table_columns, selected_jobs, output), selected_jobs, output),
            lambda: csv_text([jobs_table(health_columns, rows)]),
        )
        return
    recent_health = _recent_health(client, selected_jobs)
    columns: Sequence[Column[TrainingJob]] = JOB_LIST_COLUMNS
    if recent_health and output.format == TABLE:
        from tui.tables.fleet import listed_columns

        columns = fitting_columns(listed_columns(_cells_by_job(recent_health)), selected_jobs, output)
    print_list(output, selected_jobs, columns, JOB_COLUMNS, "no jobs")
    _suggest_command(client, output, selected_jobs, _health_age_text(recent_health), "jobs", "--health")


def _recent_health(client: TrainingClient, jobs: Sequence[TrainingJob]) -> dict[str, StoredHealth]:
    """Return the stored health of the running jobs; once a job has ended, its stored health is outdated."""
    running = [job.id for job in jobs if job.current_status == JobStatus.RUNNING]
    return stored_health(client.remote.api_url, running, client.clock.now().timestamp())


def _cells_by_job(recent_health: Mapping[str, StoredHealth]) -> Mapping[str, HealthCells]:
    return {job_id: health.cells for job_id, health in recent_health.items()}


def _health_age_text(recent_health: Mapping[str, StoredHealth]) -> str:
    if not recent_health:
        return "progress, health and cost"
    oldest = datetime.fromtimestamp(min(health.at_s for health in recent_health.values()), UTC)
    return f"progress, health and cost were read {age_of(oldest)} ago; to update"


async def _read_health_rows(
    client: TrainingClient, output: CommandOutput, jobs: Sequence[TrainingJob]
) -> tuple[FleetSnapshot, list[JobRow], Sequence[Column[JobRow]]]:
    """Return a snapshot of all jobs, the snapshot's rows of ``jobs``, and the health columns."""
    # slow to import; a list without health must be fast
    from tui.commands.jobs.top import read_fleet
    from tui.tables.fleet import health_columns

    fleet = await read_fleet(client, output, [job.id for job in jobs])
    by_id = {row.id: row for row in fleet.jobs}
    return fleet, [by_id[job.id] for job in jobs if job.id in by_id], health_columns(lambda: fleet)


def _job_records(columns: Sequence[Column[JobRow]], rows: Sequence[JobRow]) -> list[dict[str, Any]]:
    """Return the API's fields of each job, plus the values of ``columns``."""
    column_values = records(export_table("", columns, rows))
    return [row.job.model_dump() | values for row, values in zip(rows, column_values, strict=True)]


def _suggest_command(
    client: TrainingClient,
    output: CommandOutput,
    jobs: Iterable[TrainingJob],
    purpose: str,
    *arguments: str,
) -> None:
    """Suggest, on stderr, the command that also reads the logs of running jobs (takes seconds)."""
    has_running_jobs = any(job.current_status == JobStatus.RUNNING for job in jobs)
    if has_running_jobs and output.format == TABLE and not recorded_job_id():
        output.print_message(f"{purpose}: {client.remote.command_line(*arguments)}")


async def _api_statuses(client: TrainingClient, statuses: Sequence[str], project_id: str | None) -> list[str]:
    """Return the API's spelling of each status. Raises CommandFailed for an unknown one.

    Statuses that this version does not know are accepted if a job on the server has them.
    """
    typed_by_short_name = {short_status(full_status(status)): status for status in statuses}
    status_by_short_name = {short_status(status): str(status) for status in JobStatus}
    if not typed_by_short_name.keys() <= status_by_short_name.keys():
        for job in await client.jobs.search(project_id=project_id):
            status_by_short_name.setdefault(short_status(job.current_status), job.current_status)
    for name, status in typed_by_short_name.items():
        if name not in status_by_short_name:
            raise CommandFailed(unknown_value("status", status, status_by_short_name), ExitCode.USAGE)
    return [status_by_short_name[name] for name in typed_by_short_name]


@examples("bt-tui projects", "bt-tui projects -o json | jq -r '.[].name'")
@click.command()
@format_option(TABLE, JSON, CSV)
@client_command
async def projects(client: TrainingClient, output: CommandOutput) -> None:
    """List the projects that your key can access."""
    unreadable_reasons: list[str] = []
    all_projects = await client.projects.list(unreadable=unreadable_reasons)
    if unreadable_reasons:
        output.print_message(left_out_note("project", unreadable_reasons))
    print_list(output, all_projects, PROJECT_LIST_COLUMNS, PROJECT_COLUMNS, "no projects")


@examples(
    "bt-tui view                          projects, then jobs",
    "bt-tui view --project llama-sft      one project: like bt-tui jobs --project",
    "bt-tui view --job-id abc1234         one job: like bt-tui job",
)
@click.command(short_help="Show projects and jobs, as the official CLI's view.")
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

    JSON has the fields of "bt-tui jobs", or of "bt-tui job" with --job-id.
    """
    project_name = selected_project(project, project_id)
    if job_id is not None:
        context.invoke(job, job_argument=job_id, job_option=None, with_health=False)
        return
    output = context.ensure_object(CommandSettings).output
    if project_name is None and output.format == TABLE:
        context.invoke(projects)
        output.write_text("\n")
    context.invoke(
        jobs,
        project_name=project_name,
        statuses=(),
        direction=None,
        with_health=False,
    )
