"""``bt-tui metrics``: Show GPU, CPU, memory and disk use of a job's nodes, or list its trainer's metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from operator import itemgetter
from typing import Any

import click

from api_client import BadRequest, TrainingClient
from api_client.clock import epoch_ms
from api_client.models import JobMetrics, MetricSample, TrainingJob
from api_client.models.metrics import GPU_VALUES, metric_and_gpu, series_of, storage_series
from tui.analysis.export import csv_lines, json_number
from tui.analysis.node_metrics import LEADER, MetricsFold, NodeSnapshot, mean_known
from tui.analysis.progress.metrics import curves_of
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.series import Series, SeriesBuffer
from tui.analysis.status import status_view
from tui.commands.jobs.curves import CURVE_COLUMNS, NAME_FIELDS
from tui.commands.logs.printing import NodeChooser
from tui.commands.support.options import (
    JobChoice,
    examples,
    format_option,
    job_argument_and_options,
    recording_option,
    resolve_since,
    since_option,
)
from tui.commands.support.output import (
    CHART,
    CSV,
    JSON,
    TABLE,
    ExitCode,
    Output,
    ascii_json,
    outcome_exit_code,
    refuse,
)
from tui.commands.support.run_reading import read_with_line
from tui.commands.support.session import client_command
from tui.commands.support.tables import print_list, table_of
from tui.commands.support.text_chart import clock_label, draw_chart
from tui.tables.column import Column, Span, text_column
from tui.text.names import natural_key
from tui.text.times import TIME_OF_DAY, iso_time, local_time
from tui.text.units import BYTES_PER_MIB, UNKNOWN, bytes_iec, cores, counted, percent

UNIT_OF_METRIC = {
    "gpu_utilization": "fraction",
    "gpu_memory_usage_bytes": "bytes",
    "cpu_usage": "cores",
    "cpu_memory_usage_bytes": "bytes",
    "ephemeral_storage_usage_bytes": "bytes",
    "ephemeral_storage_utilization": "fraction",
    "cache_usage_bytes": "bytes",
    "cache_utilization": "fraction",
}
"""The metrics by API name (volume metrics prefixed with the volume), and their units."""
UNITS: dict[str, Callable[[float], str]] = {"fraction": percent, "bytes": bytes_iec, "cores": cores}


@examples(
    "bt-tui metrics abc1234                       current values of each node",
    "bt-tui metrics abc1234 --follow",
    "bt-tui metrics abc1234 --since 6h -o chart",
    "bt-tui metrics abc1234 --list                what its trainer logs: reward, kl …",
    "bt-tui metrics abc1234 --metric gpu_utilization --node 2 -o csv > node-2.csv",
    "bt-tui metrics --project llama-sft -o json | jq '.series[] | .node'",
)
@click.command()
@job_argument_and_options
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
    default=30.0,
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
) -> ExitCode:
    """Show a job's metrics: current values as a table, or the whole run as csv, json or chart.

    CSV has one line per sample: timestamp, node, gpu, metric, unit, value. JSON is an object with
    "series", each with node, gpu, metric, unit and samples of timestamp and value; with --follow it is
    one object per sample and line. node or gpu is empty if the metric is not specific to one; value is
    empty if the server has none. Utilizations are fractions, sizes bytes, CPU use cores.

    With --list: the name of each curve of the trainer, how often it was logged, and its last value.

    With --follow the exit code shows how the job ended.
    """
    refuse(
        lists and (follow or output.format == CHART or metrics or nodes or end or step_s),
        "--list lists the curves of the log; of the options use only --since and -o",
    )
    refuse(
        metrics and output.format == TABLE,
        "the table shows all metrics; --metric needs -o csv, json or chart",
    )
    refuse(follow and end is not None, "--follow reads to the end of the job; omit --end")
    refuse(follow and output.format == CHART, "-o chart can't follow; use the dashboard")

    job = await choice.find(client)
    now = client.clock.now()
    if lists:
        reading = await read_with_line(client, job, output, since=resolve_since(since, now))
        progress = reading.run.progress or ProgressSnapshot()
        if progress.refused_metrics:
            refused = counted(progress.refused_metrics, "more name")
            output.remark(f"{refused} without a curve: there are too many")
        none = "no metrics found in the log"
        print_list(output, curves_of(progress), CURVE_COLUMNS, NAME_FIELDS, none)
        return ExitCode.OK
    time_range = _time_range(job, since, end, output.format, now)
    if output.format == CHART:
        metrics = metrics or GPU_VALUES
    report = Report(output, job, Samples(NodeChooser(nodes), metrics), follows=follow)
    if not follow:
        report.take(await _once(client, job, time_range, step_s))
    else:
        async for answer in client.metrics.follow(
            job.project_id, job.id, start=time_range[0], step_s=step_s, interval_s=interval_s
        ):
            report.take(answer)
    report.end()
    if follow:
        return outcome_exit_code((await client.jobs.get(job.project_id, job.id)).current_status)
    if report.is_empty:
        output.remark("no samples" if job.is_finished else "no samples yet; they start when the job runs")
    return ExitCode.OK


def _time_range(
    job: TrainingJob, since: str | None, until: str | None, output_format: str, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Return the time range to request; for a table of an ended job, the server chooses its last minutes."""
    end = resolve_since(until, now, "--end")
    if end is None and job.is_finished and job.updated_at:
        end = job.updated_at + timedelta(minutes=5)
    if since is not None or until is not None:
        return resolve_since(since, now) or job.created_at, end
    if output_format == TABLE:
        return (None, None) if job.is_finished else (now - timedelta(minutes=15), None)
    return job.created_at, end


async def _once(
    client: TrainingClient,
    job: TrainingJob,
    time_range: tuple[datetime | None, datetime | None],
    step_s: int | None,
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


SampleKey = tuple[str, str, str]
"""Node (empty for the job's cache), GPU (empty for metrics not specific to one) and metric."""
Points = list[tuple[datetime, float | None]]


def _order(key: SampleKey) -> tuple[object, ...]:
    """Sort key: nodes and GPUs in natural order, metrics in the API's order."""
    node, gpu, metric = key
    return (not node, natural_key(node), natural_key(gpu), list(UNIT_OF_METRIC).index(metric))


class Samples:
    """Merges answers, which may overlap and be out of order; the last value received for a moment wins.

    ``nodes`` selects the nodes (the cache, which has no node, only if all are chosen), ``metrics`` the
    metrics.
    """

    def __init__(self, nodes: NodeChooser, metrics: Iterable[str]) -> None:
        self.nodes = nodes
        self._metrics = frozenset(metrics or UNIT_OF_METRIC)
        self._values: dict[SampleKey, dict[datetime, float | None]] = {}

    def take(self, answer: JobMetrics) -> list[tuple[datetime, SampleKey, float | None]]:
        """Add an answer. Return new or changed samples, sorted by time, node, GPU and metric."""
        new: dict[tuple[datetime, SampleKey], float | None] = {}
        for key, samples in _series_of(answer):
            if key[2] not in self._metrics or not self.nodes(key[0] or None):
                continue
            values = self._values.setdefault(key, {})
            for sample in samples:
                if sample.timestamp not in values or values[sample.timestamp] != sample.value:
                    values[sample.timestamp] = new[sample.timestamp, key] = sample.value
        stamped_keys = sorted(new, key=lambda stamped_key: (stamped_key[0], _order(stamped_key[1])))
        return [(*stamped_key, new[stamped_key]) for stamped_key in stamped_keys]

    def series(self) -> dict[SampleKey, Points]:
        keys = sorted((key for key, values in self._values.items() if values), key=_order)
        return {key: sorted(self._values[key].items(), key=itemgetter(0)) for key in keys}


def _series_of(answer: JobMetrics) -> Iterator[tuple[SampleKey, list[MetricSample]]]:
    # The top-level series are the leader's: if the nodes are listed, they would count twice.
    nodes = [(entry.node_id, series_of(entry.metrics)) for entry in answer.per_node_metrics]
    nodes = nodes or [(LEADER, series_of(answer))]
    for node, series in (*nodes, ("", storage_series("cache", answer.cache))):
        for path, samples in series:
            metric, gpu = metric_and_gpu(path)
            yield (node, gpu, metric), samples


class Report:
    """Prints answers: the table and csv as they arrive, json and charts at the end.

    Following, the table is printed again for every answer, in place on a terminal, and json is an object
    for each sample.
    """

    def __init__(self, output: Output, job: TrainingJob, samples: Samples, *, follows: bool) -> None:
        self._output, self._job, self._samples, self._follows = output, job, samples, follows
        self._fold = MetricsFold()
        self.is_empty = True
        if output.format == CSV:
            output.data(csv_lines([("timestamp", "node", "gpu", "metric", "unit", "value")]))

    def take(self, answer: JobMetrics) -> None:
        """Print an answer. Raises CommandFailed for a chosen node that the job does not have."""
        names = [node.node_id for node in answer.per_node_metrics]
        if not names and (answer.gpu_utilization or answer.cpu_usage):
            names = [LEADER]
        for name in names:
            self._samples.nodes(name)
        self._samples.nodes.check(self._job)
        if self._output.format == TABLE:
            self._print_table(answer)
            return
        new = self._samples.take(answer)
        self.is_empty = self.is_empty and not new
        if self._output.format == CSV:
            rows = ((at, *key, UNIT_OF_METRIC[key[2]], value) for at, key, value in new)
            self._output.data(csv_lines(rows))
        elif self._follows:
            for at, key, value in new:
                self._output.data(ascii_json(_names(key) | _point(at, value)) + "\n")

    def _print_table(self, answer: JobMetrics) -> None:
        chosen, output = self._samples.nodes, self._output
        snapshot = self._fold.fold(answer)
        rows = [node for node in snapshot.nodes if chosen(node.name)]
        if chosen(None) and snapshot.cache_usage_now is not None:
            used, share = snapshot.cache_usage_now, snapshot.cache_utilization_now
            rows.append(NodeSnapshot("(cache)", disk_usage_now=used, disk_utilization_now=share))
        if self._follows:
            view = status_view((answer.training_job or self._job).current_status)
            now = local_time(datetime.now(UTC), TIME_OF_DAY)
            output.clear_screen()
            lead = "" if self.is_empty or output.is_terminal else "\n"
            output.data(f"{lead}{now}  {self._job.id}  {view.sign} {view.word}\n")
        self.is_empty = self.is_empty and not rows
        output.data(table_of(_node_columns(self._job.instance_type.gpu_memory_limit_mib), rows, output))

    def end(self) -> None:
        if self._output.format == JSON and not self._follows:
            self._output.json(self._document())
        elif self._output.format == CHART:
            self._draw()

    def _document(self) -> dict[str, Any]:
        return {
            "job_id": self._job.id,
            "project_id": self._job.project_id,
            "current_status": self._job.current_status,
            "series": [
                _names(key) | {"samples": [_point(at, value) for at, value in points]}
                for key, points in self._samples.series().items()
            ],
        }

    def _draw(self) -> None:
        """Draw a chart per metric: one line per node (the mean of its GPUs), or per GPU of a single node."""
        for metric, unit in UNIT_OF_METRIC.items():
            points = {key: points for key, points in self._samples.series().items() if key[2] == metric}
            lines = _lines_of(points)
            if not lines:
                continue
            span_s = max(line.times[-1] for line in lines) - min(line.times[0] for line in lines)
            top = 1.0 if unit == "fraction" else None
            limit_mib = self._job.instance_type.gpu_memory_limit_mib
            if metric == "gpu_memory_usage_bytes" and limit_mib:
                top = float(limit_mib * BYTES_PER_MIB)
            label = clock_label(span_s)
            draw_chart(self._output, metric, lines, unit=UNITS[unit], x_label=label, y_min=0.0, y_max=top)


def _node_columns(gpu_memory_mib: int | None) -> tuple[Column[NodeSnapshot], ...]:
    """Return the columns; GPU memory is marked where it is nearly all of ``gpu_memory_mib``."""

    def each(node: NodeSnapshot) -> str:
        use = node.gpu_utilization_now
        return " ".join(UNKNOWN if share is None else f"{share * 100:.0f}" for share in use) or UNKNOWN

    def gpu_memory(node: NodeSnapshot) -> list[Span]:
        used = node.mean_memory_now
        crowded = bool(gpu_memory_mib and used and used > 0.97 * gpu_memory_mib * BYTES_PER_MIB)
        return [(bytes_iec(used), "caution" if crowded else "plain")]

    def full(node: NodeSnapshot) -> list[Span]:
        share = node.disk_utilization_now
        return [(percent(share), "caution" if share is not None and share > 0.9 else "plain")]

    return (
        text_column("NODE", lambda node: node.name, "strong", shrinks=True),
        text_column("GPU", lambda node: percent(node.mean_utilization_now), right=True),
        text_column("EACH %", each, "muted", shrinks=True),
        Column("GPU MEM", "GPU MEM", gpu_memory, align="right"),
        text_column("CORES", lambda node: cores(node.cpu_now), right=True),
        text_column("MEMORY", lambda node: bytes_iec(node.cpu_memory_now), right=True),
        text_column("DISK", lambda node: bytes_iec(node.disk_usage_now), right=True),
        Column("FULL", "FULL", full, align="right"),
    )


def _names(key: SampleKey) -> dict[str, Any]:
    node, gpu, metric = key
    return {"node": node or None, "gpu": gpu or None, "metric": metric, "unit": UNIT_OF_METRIC[metric]}


def _point(at: datetime, value: float | None) -> dict[str, Any]:
    return {"timestamp": iso_time(at), "value": json_number(value)}


def _lines_of(points_by_key: Mapping[SampleKey, Points]) -> list[Series]:
    nodes: dict[str, list[Points]] = {}
    for (node, _gpu, _metric), points in points_by_key.items():
        nodes.setdefault(node, []).append(points)
    if len(nodes) > 1:
        return [_series(node, _mean(of_gpus)) for node, of_gpus in nodes.items()]
    return [
        _series(f"gpu {gpu}" if gpu else node or "cache", points)
        for (node, gpu, _metric), points in points_by_key.items()
    ]


def _mean(lines: Sequence[Points]) -> Points:
    by_moment: dict[datetime, list[float | None]] = {}
    for moment, value in chain.from_iterable(lines):
        by_moment.setdefault(moment, []).append(value if value is None or math.isfinite(value) else None)
    return [(moment, mean_known(by_moment[moment])) for moment in sorted(by_moment)]


def _series(name: str, points: Points) -> Series:
    buffer = SeriesBuffer(name, max_points=max(2, len(points)))
    buffer.extend((moment.timestamp(), value) for moment, value in points)
    return buffer.snapshot()
