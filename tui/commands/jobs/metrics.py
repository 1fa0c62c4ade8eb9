"""``bt-tui metrics``: Show GPU, CPU, memory and disk use of a job's nodes, or list its trainer's metrics."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

import click

from api_client.client import TrainingClient
from api_client.clock import epoch_ms
from api_client.errors import BadRequest
from api_client.models import JobMetrics, TrainingJob
from tui.analysis.node_metrics import LEADER
from tui.analysis.progress.metrics import curves_of
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.commands.jobs.curves import print_names
from tui.commands.jobs.metrics_report import CHART, UNIT_OF_METRIC, SampleReport, TableReport, report_of
from tui.commands.logs.printing import NodeChooser
from tui.commands.support.exit_codes import ExitCode, outcome_exit_code
from tui.commands.support.lookups import JobChoice
from tui.commands.support.options import (
    CSV,
    JSON,
    TABLE,
    examples,
    format_option,
    job_options,
    recording_option,
)
from tui.commands.support.output import Output
from tui.commands.support.run_options import read_with_line, resolve_since, since_option
from tui.commands.support.session import client_command
from tui.text.units import counted

NOW_SPAN = timedelta(minutes=15)
"""Time range for a table of current values: older samples would not change it."""
AFTER_THE_END = timedelta(minutes=5)
REFRESH_S = 30.0
"""Polling interval of --follow, the same as in the official command."""


@examples(
    "bt-tui metrics abc1234                       current values of each node",
    "bt-tui metrics abc1234 --follow",
    "bt-tui metrics abc1234 --since 6h -o chart",
    "bt-tui metrics abc1234 --list                what its trainer logs: reward, kl …",
    "bt-tui metrics abc1234 --metric gpu_utilization --node 2 -o csv > node-2.csv",
    "bt-tui metrics --project llama-sft -o json | jq '.series[] | .node'",
)
@click.command()
@click.argument("job", metavar="[JOB_ID]", required=False)
@job_options
@since_option("Start time: 2h ago, or a time.", "--since", "--start")
@since_option("End time: 2h ago, or a time.", "--end")
@click.option(
    "--step", "step_s", metavar="SECONDS", type=click.IntRange(1, 86_400), help="Seconds between samples."
)
@click.option("--node", "nodes", metavar="NODE", multiple=True, help="Only this node (name or number).")
@click.option(
    "--metric",
    "metrics",
    type=click.Choice(tuple(UNIT_OF_METRIC)),
    multiple=True,
    help="Only this metric (csv, json, chart).",
)
@click.option(
    "--list", "lists", is_flag=True, help="List the curves in the log instead; 'bt-tui progress' prints them."
)
@recording_option
@click.option("-f", "--follow", is_flag=True, help="Follow until the job ends; exit with its outcome.")
@click.option(
    "--interval",
    "interval_s",
    metavar="SECONDS",
    type=click.FloatRange(1, 3600),
    default=REFRESH_S,
    show_default=True,
    help="Seconds between polls with --follow.",
)
@format_option(TABLE, JSON, CSV, CHART)
@client_command
async def metrics(
    client: TrainingClient,
    output: Output,
    choice: JobChoice,
    since: str | None,
    end: str | None,
    step_s: int | None,
    nodes: tuple[str, ...],
    metrics: tuple[str, ...],
    lists: bool,
    follow: bool,
    interval_s: float,
    output_format: str,
) -> ExitCode:
    """Show a job's metrics: current values as a table, or the whole run as csv, json or chart.

    CSV has one line per sample: timestamp, node, gpu, metric, unit, value. JSON is an object with
    "series", each with node, gpu, metric, unit and samples of timestamp and value; with --follow it is
    one object per sample and line. node or gpu is empty if the metric is not specific to one; value is
    empty if the server has none. Utilizations are fractions, sizes bytes, CPU use cores.

    With --list: the name of each curve of the trainer, how often it was logged, and its last value.

    With --follow the exit code shows how the job ended.
    """
    if lists and (follow or output_format == CHART or metrics or nodes or end or step_s):
        raise click.UsageError("--list lists the curves of the log; of the options use only --since and -o")
    if metrics and output_format == TABLE:
        raise click.UsageError("the table shows all metrics; --metric needs -o csv, json or chart")
    if follow and end is not None:
        raise click.UsageError("--follow reads to the end of the job; omit --end")
    if follow and output_format == CHART:
        raise click.UsageError("-o chart can't follow; use the dashboard")

    job = await choice.find(client)
    if lists:
        since_at = resolve_since(since, client.clock.now())
        reading = await read_with_line(client, job, output, since=since_at)
        progress = reading.run.progress or ProgressSnapshot()
        names = curves_of(progress)
        if progress.refused_metrics:
            output.remark(
                f"{counted(progress.refused_metrics, 'more name')} without a curve: there are too many"
            )
        if not names:
            output.remark("no metrics found in the log")
        print_names(output, names, output_format)
        return ExitCode.OK
    chosen = NodeChooser(nodes)
    new_report = partial(
        report_of, output, output_format, job, chosen=chosen, metrics=metrics, follows=follow
    )
    time_range = _time_range(job, since, end, output_format, client.clock.now())
    if follow:
        return await _follow(client, job, chosen, new_report(), time_range[0], step_s, interval_s)
    answer = await _once(client, job, time_range, step_s)
    _check_nodes(chosen, job, answer)
    report = new_report()
    report.take(answer)
    report.end()
    if report.is_empty:
        output.remark("no samples" if job.is_finished else "no samples yet; they start when the job runs")
    return ExitCode.OK


TimeRange = tuple[datetime | None, datetime | None]


def _time_range(
    job: TrainingJob, since: str | None, until: str | None, output_format: str, now: datetime
) -> TimeRange:
    """Return the time range to request; a finished job's last state leaves the bounds to the server."""
    end = resolve_since(until, now, "--end")
    if end is None and job.is_finished and job.updated_at:
        end = job.updated_at + AFTER_THE_END
    if since is not None or until is not None:
        return resolve_since(since, now) or job.created_at, end
    if output_format == TABLE:
        return (None, None) if job.is_finished else (now - NOW_SPAN, None)
    return job.created_at, end


async def _once(
    client: TrainingClient, job: TrainingJob, time_range: TimeRange, step_s: int | None
) -> JobMetrics:
    """Fetch one answer; if the server refuses a range of that length, let it choose one."""
    start_ms, end_ms = (None if moment is None else epoch_ms(moment) for moment in time_range)
    try:
        return await client.metrics.get(
            job.project_id, job.id, start_ms=start_ms, end_ms=end_ms, step_s=step_s
        )
    except BadRequest:
        if start_ms is None:
            raise
        return await client.metrics.get(job.project_id, job.id)


async def _follow(
    client: TrainingClient,
    job: TrainingJob,
    chosen: NodeChooser,
    report: TableReport | SampleReport,
    start: datetime | None,
    step_s: int | None,
    interval_s: float,
) -> ExitCode:
    stream = client.metrics.follow(job.project_id, job.id, start=start, step_s=step_s, interval_s=interval_s)
    async for answer in stream:
        _check_nodes(chosen, job, answer)
        report.take(answer)
    report.end()
    ended = await client.jobs.get(job.project_id, job.id)
    return outcome_exit_code(ended.current_status)


def _check_nodes(chosen: NodeChooser, job: TrainingJob, answer: JobMetrics) -> None:
    names = [node.node_id for node in answer.per_node_metrics]
    if not names and (answer.gpu_utilization or answer.cpu_usage):
        names = [LEADER]
    for name in names:
        chosen(name)
    chosen.check(job)
