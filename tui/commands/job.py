"""``bt-tui job``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.options import JSON, TABLE, Settings, examples, format_option, remote_option
from tui.commands.output import Output
from tui.commands.session import run_on_remote

if TYPE_CHECKING:
    from api_client.client import TrainingClient


@click.command(
    epilog=examples(
        "bt-tui job abc1234",
        "bt-tui job abc1234 -o json | jq -r .current_status",
    ),
)
@click.argument("job_id", metavar="JOB_ID")
@format_option(TABLE, JSON)
@remote_option
@click.pass_obj
def job(settings: Settings, job_id: str, output_format: str) -> ExitCode:
    """Show one job.

    The exit code is 0 whenever the job was found, however it ended: read current_status, or use
    "bt-tui logs JOB_ID --follow", whose exit code tells.
    """

    async def show(client: TrainingClient, output: Output) -> ExitCode:
        found = await client.jobs.find(job_id)
        if output_format == JSON:
            output.json(found.model_dump(mode="json"))
            return ExitCode.OK
        from tui.commands.rows import job_facts
        from tui.commands.tables import render_facts

        facts = job_facts(found, link=client.job_link(found.project_id, found.id))
        output.data(render_facts(facts, paint=output.paint))
        return ExitCode.OK

    return run_on_remote(settings, show)
