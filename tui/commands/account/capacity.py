"""``bt-tui capacity``: Show GPU limits, use and the queue."""

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
from tui.commands.support.output import CSV, JSON, TABLE, Output
from tui.commands.support.session import client_command
from tui.commands.support.tables import rows_of
from tui.tables.capacity import GPU_COLUMNS, QUEUE_COLUMNS, CapacityLine, capacity_table, queue_table
from tui.tables.column import select_columns


class ViewGroup(click.Group):
    """A group that runs ``view`` when no command is named, so that ``view``'s options work on the group."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Insert ``view`` if there are no arguments or if the first is an option other than ``--help``."""
        asks_for_help = bool(set(arguments[:1]) & set(context.help_option_names))
        if not arguments or (arguments[0].startswith("-") and not asks_for_help):
            arguments = ["view", *arguments]
        return super().parse_args(context, arguments)


@examples("bt-tui capacity", "bt-tui capacity -o csv", "bt-tui capacity update --help")
@click.group(cls=ViewGroup)
def capacity() -> None:
    """Show GPU capacity for training: limits, use and queue. Runs view if no command is given."""


@examples(
    "bt-tui capacity view",
    "bt-tui capacity view -o csv",
    "bt-tui capacity view -o json | jq '.gpu_capacities[] | .limit - .usage_count'",
)
@capacity.command(short_help="Show GPU limits, use and the queue.")
@listing_format_option
@client_command
async def view(client: TrainingClient, output: Output) -> None:
    """Show GPU limits and use of the organization and its teams, and the jobs that wait for GPUs.

    JSON is the API's response plus "jobs": the queued jobs in queue order, and the jobs that hold GPUs.
    CSV has only the limits: scope, team, gpu_type, baseline, limit, on_demand, spot, in_use, free.
    """
    answer = await client.capacity.get()
    rows = fold_capacity(answer)
    if output.format == CSV:
        output.data(csv_text([capacity_table(rows)]))
        return
    waiting, holding = await _holders(client, output)
    seen = CapacityView("known", rows, waiting, holding)
    if not rows:
        output.remark("no GPU limits for training")
    document = answer.model_dump(mode="json") | {"jobs": records(queue_table(seen))}
    output.answer(document, _tables(output, seen))


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
    output: Output,
    team: str,
    gpu_type: str,
    max_gpus: int,
    assume_yes: bool,
) -> None:
    """Set how many GPUs of a type a team may use at once. Running jobs are not affected."""
    # the official command does not ask either; accept --yes so that scripts can pass it everywhere
    del assume_yes

    own_team = await team_named(client, team)
    changed = await client.capacity.update(team_id=own_team.id, gpu_type=gpu_type, max_gpus=max_gpus)
    name = changed.team_name or own_team.name
    output.answer(changed, f"Updated {name}'s {changed.gpu_type} capacity to {changed.limit}.\n")


async def _holders(
    client: TrainingClient, output: Output
) -> tuple[tuple[GpuAllocation, ...], tuple[GpuAllocation, ...]]:
    """Return the queued jobs and those that hold GPUs; both are empty if the server has no search route."""
    try:
        jobs = await active_jobs(client)
    except NotFound:
        output.remark("this server cannot search jobs; the queue is unknown")
        return (), ()
    return gpu_allocations(jobs, datetime.now(UTC))


def _tables(output: Output, seen: CapacityView) -> str:
    figures = "baseline limit on_demand spot free share"
    own = [CapacityLine(row) for row in seen.shown_rows if not row.team]
    teams = [CapacityLine(row) for row in seen.shown_rows if row.team]
    queue = select_columns(QUEUE_COLUMNS, "status gpus type age priority id name project")
    tables = (
        rows_of(select_columns(GPU_COLUMNS, f"gpu {figures}"), own, output),
        rows_of(select_columns(GPU_COLUMNS, f"team gpu {figures}"), teams, output),
        rows_of(queue, [*seen.waiting, *seen.holding], output),
    )
    return "\n".join(filter(None, tables))
