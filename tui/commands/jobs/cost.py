"""``bt-tui cost``: Show what jobs cost: billed and estimated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import click

from api_client.client import TrainingClient
from api_client.models import JobStatus, TrainingJob
from tui.analysis.cost import (
    Bill,
    Billed,
    Cost,
    billed_text,
    cost_of,
    is_all_billed,
    price_of,
    running_time,
    total_billed,
)
from tui.commands.support.options import (
    examples,
    format_option,
    job_named,
    project_id_of,
    resolve_since,
    since_option,
)
from tui.commands.support.output import CSV, JSON, TABLE, CommandOutput, refuse_if
from tui.commands.support.remotes import run_settings
from tui.commands.support.session import client_command
from tui.commands.support.tables import print_list
from tui.readers.billing import read_bill
from tui.readers.session import listed_prices, read_status_changes
from tui.tables.column import Column, select_columns, text_cell
from tui.tables.jobs import JOB_COLUMNS
from tui.text.units import UNKNOWN, count, money, significant


@dataclass(frozen=True, slots=True)
class JobCost:
    job: TrainingJob
    cost: Cost

    @property
    def estimated_usd(self) -> float | None:
        """Estimated cost that is not billed yet; the whole cost if the job has no bill."""
        return self.cost.usd if self.cost.billed is None else self.cost.unbilled_usd

    @property
    def total_usd(self) -> float:
        """Billed plus estimated cost; an unknown cost counts as 0."""
        return (self.cost.billed.usd if self.cost.billed is not None else 0) + (self.estimated_usd or 0)


@examples(
    "bt-tui cost",
    "bt-tui cost --project llama-sft --since 7d -o csv > cost.csv",
    "bt-tui cost abc1234 -o json | jq '.[].billed_usd'",
)
@click.command()
@click.argument("job_ids", metavar="[JOB_ID]...", nargs=-1)
@click.option("--project", metavar="PROJECT", help="Only jobs of this project (id or name).")
@since_option("Only unfinished jobs, and jobs created since this time (default: 30d).")
@format_option(TABLE, JSON, CSV)
@client_command
async def cost(
    client: TrainingClient,
    output: CommandOutput,
    job_ids: tuple[str, ...],
    project: str | None,
    since: str | None,
) -> None:
    """Show what jobs cost, the most expensive first: billed dollars and minutes, and estimates of the rest.

    Only organization admins can read the bill; for others the whole cost is estimated: list price × nodes ×
    running time. The bill is updated hourly, so the cost since the last update is estimated, too. Nothing is
    counted twice; a cost that cannot be estimated is left out.
    """
    refuse_if(job_ids and (project or since), "job ids need neither --project nor --since; omit them")
    now = datetime.now(UTC)
    jobs = (
        [await job_named(client, job_id) for job_id in dict.fromkeys(job_ids)]
        if job_ids
        else await _recent_jobs(client, project, resolve_since(since, now) or now - timedelta(days=30))
    )
    oldest_created_at = min((job.created_at for job in jobs if job.created_at is not None), default=now)
    bill = await read_bill(client, oldest_created_at, now)
    rows = sorted(await _job_costs(client, jobs, bill, now), key=lambda row: row.total_usd, reverse=True)
    print_list(output, rows, LISTED_COST_COLUMNS, COLUMNS)
    total = _total_text(rows, bill)
    if output.format == TABLE:
        output.write_text(f"\n{total}\n")
    else:
        output.print_message(total)
    if bill.deleted.minutes and not (job_ids or project):
        output.print_message(
            f"since {bill.since:%Y-%m-%d} also billed for deleted jobs: {billed_text(bill.deleted)}"
        )


async def _recent_jobs(client: TrainingClient, project: str | None, since: datetime) -> list[TrainingJob]:
    project_id = await project_id_of(client, project)
    all_jobs = await client.jobs.search(project_id=project_id)
    return [
        job
        for job in all_jobs
        if not job.is_finished or (job.created_at is not None and job.created_at >= since)
    ]


async def _job_costs(
    client: TrainingClient, jobs: Sequence[TrainingJob], bill: Bill, now: datetime
) -> list[JobCost]:
    prices = await listed_prices(client, run_settings().prices)
    request_semaphore = asyncio.Semaphore(8)

    async def cost_of_job(job: TrainingJob) -> JobCost:
        billed, is_fully_billed = bill.of(job), is_all_billed(job, now)
        if not job.is_finished and job.current_status != JobStatus.RUNNING:
            return JobCost(job, Cost())
        async with request_semaphore:
            # The status history shows the running time, which is not needed once everything is billed.
            queue_context = (
                await read_status_changes(client, job) if billed is None or not is_fully_billed else None
            )
        elapsed = running_time(job, queue_context.events if queue_context is not None else (), now)
        node_count, price = job.node_count or 1, price_of(job, prices)
        return JobCost(
            job,
            cost_of(
                job,
                elapsed,
                node_count=node_count,
                price_per_minute=price,
                billed=billed,
                all_billed=is_fully_billed,
            ),
        )

    return list(await asyncio.gather(*map(cost_of_job, jobs)))


def _total_text(rows: Sequence[JobCost], bill: Bill) -> str:
    billed = total_billed(row.cost.billed for row in rows if row.cost.billed is not None)
    estimates = [row.estimated_usd for row in rows if row.estimated_usd is not None]
    estimate = f"≈ {money(sum(estimates))}"
    if bill.unreadable_reason:
        return f"total: {estimate}, an estimate: {bill.unreadable_reason}"
    return f"total: {billed_text(billed)} billed, and {estimate} estimated for what is not billed yet"


def _estimate_text(row: JobCost) -> str:
    if row.estimated_usd is None:
        return UNKNOWN
    return f"≈ {money(row.estimated_usd)}" if row.estimated_usd else ""


def _billed_text(row: JobCost, format_bill: Callable[[Billed], str]) -> str:
    return format_bill(row.cost.billed) if row.cost.billed is not None else UNKNOWN


COLUMNS: tuple[Column[JobCost], ...] = (
    *(
        column.for_rows(lambda row: row.job)
        for column in select_columns(JOB_COLUMNS, "id name project status")
    ),
    Column(
        "gpu_hours",
        "gpu·h",
        text_cell(lambda row: significant(row.cost.gpu_hours) if row.cost.gpu_hours is not None else UNKNOWN),
        align="right",
        export=lambda row: row.cost.gpu_hours,
    ),
    Column(
        "billed_usd",
        "billed",
        text_cell(lambda row: _billed_text(row, lambda billed: money(billed.usd))),
        align="right",
        export=lambda row: row.cost.billed.usd if row.cost.billed is not None else None,
    ),
    Column(
        "billed_minutes",
        "minutes",
        text_cell(lambda row: _billed_text(row, lambda billed: count(billed.minutes))),
        align="right",
        export=lambda row: row.cost.billed.minutes if row.cost.billed is not None else None,
    ),
    Column(
        "estimated_usd",
        "not billed yet",
        text_cell(_estimate_text, "muted"),
        align="right",
        export=lambda row: row.estimated_usd,
    ),
    Column("estimate_of", export=lambda row: row.cost.basis if row.estimated_usd is not None else None),
)
"""Columns in the order of the CSV and JSON output."""

LISTED_COST_COLUMNS = select_columns(
    COLUMNS, "status id name project gpu_hours billed_usd billed_minutes estimated_usd"
)
