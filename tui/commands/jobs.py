"""``bt-tui jobs``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.known_names import unknown_value
from tui.commands.official_options import project_named
from tui.commands.options import CSV, JSON, TABLE, Settings, examples, format_option, remote_option
from tui.commands.output import Output
from tui.commands.session import run_on_remote

if TYPE_CHECKING:
    from api_client.client import TrainingClient


@click.command(
    short_help="List jobs, running ones first.",
    epilog=examples(
        "bt-tui jobs",
        "bt-tui jobs --project llama-sft --status running --status pending",
        "bt-tui jobs -o csv > jobs.csv",
        "bt-tui jobs -o json | jq -r '.[] | select(.error_message) | .id'",
    ),
)
@click.option("--project", "project_name", metavar="PROJECT", help="Only of this project (id or name).")
@click.option(
    "--status",
    "statuses",
    metavar="STATUS",
    multiple=True,
    help="Only with this status, as running or TRAINING_JOB_RUNNING; repeatable.",
)
@format_option(TABLE, JSON, CSV)
@remote_option
@click.pass_obj
def jobs(
    settings: Settings, project_name: str | None, statuses: tuple[str, ...], output_format: str
) -> ExitCode:
    """List jobs: running ones first, then waiting ones, then the rest, the newest first."""

    async def show(client: TrainingClient, output: Output) -> ExitCode:
        from tui.insight.fleet.order import running_first

        project_id = (await project_named(client, project_name)).id if project_name is not None else None
        wanted = await _wanted_statuses(client, statuses, project_id)
        found = await client.jobs.search(project_id=project_id, statuses=wanted or None)
        kept = running_first(job for job in found if not wanted or job.current_status in wanted)
        if output_format == JSON:
            output.models(kept)
            return ExitCode.OK
        if output_format == CSV:
            from tui.commands.listing_csv import jobs_csv

            output.data(jobs_csv(kept))
            return ExitCode.OK
        from tui.commands.rows import JOB_COLUMNS, job_row
        from tui.commands.tables import render_table

        if not kept:
            output.remark("no jobs")
        rows = [job_row(job) for job in kept]
        output.data(render_table(JOB_COLUMNS, rows, width_cells=output.width_cells, paint=output.paint))
        return ExitCode.OK

    return run_on_remote(settings, show)


async def _wanted_statuses(
    client: TrainingClient, statuses: Sequence[str], project_id: str | None
) -> list[str]:
    """Return the API's spelling of each status. Raises CommandFailed for one that nobody knows.

    The server may have statuses that this version does not know: those that its jobs have are known, too.
    """
    from api_client.models.status import JobStatus, full_status, short_status

    typed = {short_status(full_status(status)): status for status in statuses}
    known = {short_status(status): str(status) for status in JobStatus}
    if not typed.keys() <= known.keys():
        for job in await client.jobs.search(project_id=project_id):
            known.setdefault(short_status(job.current_status), job.current_status)
    for name, status in typed.items():
        if name not in known:
            raise CommandFailed(unknown_value("status", status, known), ExitCode.USAGE)
    return [known[name] for name in typed]
