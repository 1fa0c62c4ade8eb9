"""``bt-tui top``: Show all jobs as on Home, those that need attention first, without the full screen."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from api_client.client import TrainingClient
from tui.analysis.export import csv_text
from tui.commands.support.options import examples, format_option, project_id_of
from tui.commands.support.output import CSV, JSON, TABLE, CommandFailed, CommandOutput, ExitCode
from tui.commands.support.progress_line import ProgressLine
from tui.commands.support.remotes import run_settings
from tui.commands.support.session import client_command
from tui.readers.session import Session
from tui.tables.column import Column, Span, fill_cell, fitted_columns, select_columns, sized_columns
from tui.tables.fleet import group_headings, header_facts, health_columns, job_columns, jobs_table
from tui.text.sanitize import cell_width, clip, sanitize
from tui.text.units import counted

if TYPE_CHECKING:
    from tui.analysis.fleet.snapshot import FleetSnapshot, JobRow


@examples(
    "bt-tui top                           redraws every 2 s until ctrl-c",
    "bt-tui top --project llama-sft | cat once, when all running jobs have been checked",
    "bt-tui top -o json | jq -r '.[] | select(.lost_usd > 10) | .name'",
)
@click.command()
@click.option("--project", "project_name", metavar="PROJECT", help="Only jobs of this project (id or name).")
@format_option(TABLE, JSON, CSV)
@client_command
async def top(client: TrainingClient, output: CommandOutput, project_name: str | None) -> None:
    """Show jobs as on Home: first the jobs that need attention, by wasted cost, then the others.

    Jobs that ended more than a day ago are left out of the table. On a terminal the table is redrawn until
    ctrl-c; elsewhere, and in JSON and CSV, jobs are printed once, when all running jobs have been checked.
    """
    project_id = await project_id_of(client, project_name)
    session = Session(client.remote, clock=client.clock)

    def rows_of_project(snapshot: FleetSnapshot) -> list[JobRow]:
        return [row for row in snapshot.jobs if project_id in (None, row.project_id)]

    if output.format == TABLE and output.is_terminal:
        async with watched_fleet(client, session) as next_snapshot:
            while True:
                snapshot = await next_snapshot()
                output.clear_screen()
                height = shutil.get_terminal_size().lines
                _print_table(output, snapshot, rows_of_project(snapshot), session.remote_name, height)
                await client.clock.sleep(2.0)
    snapshot = await read_fleet(client, output)
    rows = rows_of_project(snapshot)
    if output.format == TABLE:
        _print_table(output, snapshot, rows, session.remote_name, None)
        return
    table = jobs_table(health_columns(lambda: snapshot), rows)
    records = [dict(zip(table.columns, values, strict=True)) for values in table.rows]
    output.print_result(records, "", lambda: csv_text([table]))


def _print_table(
    output: CommandOutput, snapshot: FleetSnapshot, rows: list[JobRow], remote_name: str, height: int | None
) -> None:
    """Print the header, and each group of jobs below a heading; at most ``height`` lines, None for all."""
    facts, _ = header_facts(
        remote_name, snapshot, rows, marked_count=0, compare_key="", filter_key="", query="", project=""
    )
    since = snapshot.at - timedelta(days=1)
    recent_rows = [
        row for row in rows if not row.job.is_finished or (row.job.updated_at or snapshot.at) > since
    ]
    width = output.width_cells or 160
    column_choice = select_columns(
        job_columns(lambda: snapshot), "need name gpus progress left note lost loss use cost age"
    )
    columns = sized_columns(column_choice, recent_rows, width)
    layout = fitted_columns(columns, width)
    lines = [" ".join(_cell(output, column, cells, [(column.title, "muted")]) for column, cells in layout)]
    lines += [
        " ".join(_cell(output, column, cells, column.cell(row)) for column, cells in layout)
        for row in recent_rows
    ]
    for row_index, heading in reversed(group_headings(recent_rows)):
        lines.insert(row_index + 1, _cell(output, layout[0][0], width, heading))
    lines.insert(
        0,
        _cell(
            output, layout[0][0], width, [span for fact in facts for span in (*fact, (" · ", "muted"))][:-1]
        ),
    )
    if omitted_count := len(rows) - len(recent_rows):
        lines.append(output.paint(f"{omitted_count} ended more than a day ago", "muted"))
    if height is not None and len(lines) >= height:
        lines = [*lines[: height - 2], output.paint(f"{len(lines) - height + 2} more lines", "muted")]
    output.write_text("".join(f"{line.rstrip()}\n" for line in lines))


def _cell(output: CommandOutput, column: Column[JobRow], cells: int, spans: Sequence[Span]) -> str:
    """Return the spans in color, cut or padded to ``cells``."""
    painted_text, cells_left = "", cells
    for text, tone in fill_cell([(sanitize(text), tone) for text, tone in spans], cells):
        clipped_text = clip(text, cells_left)
        painted_text += output.paint(clipped_text, tone)
        cells_left -= cell_width(clipped_text)
    return " " * cells_left + painted_text if column.align == "right" else painted_text + " " * cells_left


@asynccontextmanager
async def watched_fleet(
    client: TrainingClient, session: Session, read_ids: Collection[str] | None = None
) -> AsyncIterator[Callable[[], Awaitable[FleetSnapshot]]]:
    """Watch all jobs as Home does; yields a function that waits for the next snapshot.

    Logs and metrics are read only for the job ids in ``read_ids`` (default: for all jobs).
    """
    from tui.feeds.fleet import FleetFeed

    await client.projects.list()  # raises errors that the feed would retry without end
    snapshots: asyncio.Queue[FleetSnapshot] = asyncio.Queue()

    async def next_snapshot() -> FleetSnapshot:
        snapshot = await snapshots.get()
        while not snapshots.empty():
            snapshot = snapshots.get_nowait()
        return snapshot

    async with session.client, asyncio.TaskGroup() as tasks:
        feed = FleetFeed(session, snapshots.put_nowait, run_settings(), previewed_ids=read_ids)
        task = tasks.create_task(feed.run())
        yield next_snapshot
        task.cancel()


async def read_fleet(
    client: TrainingClient, output: CommandOutput, ids: Collection[str] | None = None, timeout_s: float = 60.0
) -> FleetSnapshot:
    """Return all jobs once the jobs with these ids (default: all) are read, or whatever is read in time."""
    snapshot: FleetSnapshot | None = None
    session = Session(client.remote, clock=client.clock)
    with ProgressLine() as line:
        async with watched_fleet(client, session, ids) as next_snapshot:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    while snapshot is None or not snapshot.is_read:
                        snapshot = await next_snapshot()
                        are_read = [row.preview.log_read for row in snapshot.jobs if row.running]
                        line.show(
                            "checking", note=f"{sum(are_read)} of {counted(len(are_read), 'running job')}"
                        )
    if snapshot is None:
        raise CommandFailed(f"no response within {timeout_s:g} s", ExitCode.UNREACHABLE)
    reasons = {route.service: route.reason for route in session.connection.failing_routes}
    for reason in reasons.values():
        output.print_message(f"some data could not be read: {reason}")
    return snapshot
