"""``bt-tui capacity``: Show GPU limits, usage and the queue."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from api_client import NotFound, TrainingClient
from tui.analysis.export import csv_text, records
from tui.analysis.fleet.capacity import CapacityView, GpuAllocation, fold_capacity, gpu_allocations
from tui.commands.support.options import (
    active_jobs,
    examples,
    format_option,
    listing_format_option,
    team_named,
    yes_option,
)
from tui.commands.support.output import CSV, JSON, TABLE, CommandOutput
from tui.commands.support.session import client_command
from tui.commands.support.tables import table_text_if_any
from tui.tables.capacity import GPU_COLUMNS, QUEUE_COLUMNS, CapacityLine, capacity_table, queue_table
from tui.tables.column import select_columns


class GroupWithDefaultView(click.Group):
    """A command group whose default is ``view``: ``capacity -o csv`` means ``capacity view -o csv``."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Insert ``view`` if there are no arguments or if the first is an option other than ``--help``."""
        asks_for_help = bool(set(arguments[:1]) & set(context.help_option_names))
        if not arguments or (arguments[0].startswith("-") and not asks_for_help):
            arguments = ["view", *arguments]
        return super().parse_args(context, arguments)


@examples("bt-tui capacity", "bt-tui capacity -o csv", "bt-tui capacity update --help")
@click.group(cls=GroupWithDefaultView)
def capacity() -> None:
    """Show GPU capacity for training: limits, usage and queue. Runs view if no command is given."""


@examples(
    "bt-tui capacity view",
    "bt-tui capacity view -o csv",
    "bt-tui capacity view -o json | jq '.gpu_capacities[] | .limit - .usage_count'",
)
@capacity.command(short_help="Show GPU limits, usage and the queue.")
@listing_format_option
@client_command
async def view(client: TrainingClient, output: CommandOutput) -> None:
    """Show GPU limits and usage of the organization and its teams, and the jobs that wait for GPUs.

    JSON is the API's response plus "jobs": the queued jobs in queue order, and the jobs that hold GPUs.
    CSV has only the limits: scope, team, gpu_type, baseline, limit, on_demand, spot, in_use, free.
    """
    response = await client.capacity.get()
    rows = fold_capacity(response)
    if output.format == CSV:
        output.write_text(csv_text([capacity_table(rows)]))
        return
    queued, holding = await _read_allocations(client, output)
    capacity_view = CapacityView("known", rows, queued, holding)
    if not rows:
        output.print_message("no GPU limits for training")
    document = response.model_dump(mode="json") | {"jobs": records(queue_table(capacity_view))}
    output.print_result(document, _tables(output, capacity_view))


@examples("bt-tui capacity update --team Research --gpu-type H100 --capacity 64")
@capacity.command(short_help="Set how many GPUs of a type a team may use (org admins).")
@click.option("--team", required=True, metavar="TEAM", help="Team (id or name).")
@click.option("--gpu-type", required=True, metavar="TYPE", help="GPU type as in capacity view, e.g. H100.")
@click.option(
    "--capacity",
    "--max-gpus",
    "max_gpus",
    required=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Maximum number of GPUs.",
)
@yes_option
@format_option(TABLE, JSON)
@client_command
async def update(
    client: TrainingClient,
    output: CommandOutput,
    team: str,
    gpu_type: str,
    max_gpus: int,
    assume_yes: bool,
) -> None:
    """Set how many GPUs of a type a team may use at once. Running jobs are not affected."""
    # Like the official command, this one never asks. Scripts can still pass --yes to every command.
    del assume_yes

    target_team = await team_named(client, team)
    updated = await client.capacity.update(team_id=target_team.id, gpu_type=gpu_type, max_gpus=max_gpus)
    name = updated.team_name or target_team.name
    output.print_result(updated, f"Updated {name}'s {updated.gpu_type} capacity to {updated.limit}.\n")


async def _read_allocations(
    client: TrainingClient, output: CommandOutput
) -> tuple[tuple[GpuAllocation, ...], tuple[GpuAllocation, ...]]:
    """Return the queued jobs and the jobs that hold GPUs; both are empty if the server cannot search jobs."""
    try:
        jobs = await active_jobs(client)
    except NotFound:
        output.print_message("this server cannot search jobs; the queue is unknown")
        return (), ()
    return gpu_allocations(jobs, datetime.now(UTC))


def _tables(output: CommandOutput, capacity_view: CapacityView) -> str:
    quantity_column_ids = "baseline limit on_demand spot free share"
    organization_rows = [CapacityLine(row) for row in capacity_view.shown_rows if not row.team]
    team_rows = [CapacityLine(row) for row in capacity_view.shown_rows if row.team]
    queue_columns = select_columns(QUEUE_COLUMNS, "status gpus type age priority id name project")
    tables = (
        table_text_if_any(
            select_columns(GPU_COLUMNS, f"gpu {quantity_column_ids}"), organization_rows, output
        ),
        table_text_if_any(select_columns(GPU_COLUMNS, f"team gpu {quantity_column_ids}"), team_rows, output),
        table_text_if_any(queue_columns, [*capacity_view.waiting, *capacity_view.holding], output),
    )
    return "\n".join(filter(None, tables))
