"""``bt-tui projects``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.options import CSV, JSON, TABLE, Settings, examples, format_option, remote_option
from tui.commands.output import Output
from tui.commands.session import run_on_remote

if TYPE_CHECKING:
    from api_client.client import TrainingClient


@click.command(
    epilog=examples(
        "bt-tui projects",
        "bt-tui projects -o json | jq -r '.[].name'",
    ),
)
@format_option(TABLE, JSON, CSV)
@remote_option
@click.pass_obj
def projects(settings: Settings, output_format: str) -> ExitCode:
    """List the projects that your key can see."""

    async def show(client: TrainingClient, output: Output) -> ExitCode:
        found = await client.projects.list()
        if output_format == JSON:
            output.models(found)
            return ExitCode.OK
        if output_format == CSV:
            from tui.commands.listing_csv import projects_csv

            output.data(projects_csv(found))
            return ExitCode.OK
        from tui.commands.rows import PROJECT_COLUMNS, project_row
        from tui.commands.tables import render_table

        if not found:
            output.remark("no projects")
        rows = [project_row(project) for project in found]
        output.data(render_table(PROJECT_COLUMNS, rows, width_cells=output.width_cells, paint=output.paint))
        return ExitCode.OK

    return run_on_remote(settings, show)
