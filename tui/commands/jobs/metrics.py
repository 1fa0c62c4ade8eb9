"""``bt-tui metrics``: Show GPU, CPU, memory and disk usage of the nodes, or list the trainer's metrics."""

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
from tui.commands.jobs.curves import CURVE_COLUMNS, CURVE_FIELDS
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
    CommandOutput,
    ExitCode,
    ascii_json,
    outcome_exit_code,
    refuse_if,
)
from tui.commands.support.run_reading import read_with_progress_line
from tui.commands.support.session import client_command
from tui.commands.support.tables import print_list, table_text
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
FORMAT_OF_UNIT: dict[str, Callable[[float], str]] = {"fraction": percent, "bytes": bytes_iec, "cores": cores}


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
    "--list",
    "lists_curves",
    is_flag=True,
    help="List the curves in the log instead; 'bt-tui progress' prints them.",
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
    output: CommandOutput,
    choice: JobChoice,
    since: str | None,
    end: str | None,
    step_s: int | None,
    nodes: tuple[str, ...],
    metrics: tuple[str, ...],
    lists_curves: bool,
    follow: bool,
    interval_s: float,
) -> ExitCode:
    """Show a job's metrics: current values as a table, or the whole run as csv, json or chart.

    CSV has one line per sample: timestamp, node, gpu, metric, unit, value. JSON is an object with
    "series", each with node, gpu, metric, unit and samples of timestamp and value; with --follow it is
    one object per sample and line. node or gpu is empty if the metric is not specific to a node or GPU;
    value is empty if the server has none. Utilizations are fractions, sizes bytes, CPU use cores.

    With --list: the name of each curve that the trainer logs, its number of readings, and its last value.

    With --follow the exit code shows how the job ended.
    """
    refuse_if(
        lists_curves and (follow or output.format == CHART or metrics or nodes or end or step_s),
        "--list lists the curves of the log and takes only --since and -o",
    )
    refuse_if(
        metrics and output.format == TABLE,
        "the table shows all metrics; --metric needs -o csv, json or chart",
    )
    refuse_if(follow and end is not None, "--follow reads to the end of the job; omit --end")
    refuse_if(follow and output.format == CHART, "-o chart can't follow; use the dashboard")

    job = await choice.find(client)
    now = client.clock.now()
    if lists_curves:
        loaded_run = await read_with_progress_line(client, job, output, since=resolve_since(since, now))
        progress = loaded_run.run.progress or ProgressSnapshot()
        if progress.refused_metrics:
            refused_names = counted(progress.refused_metrics, "more metric")
            output.print_message(f"{refused_names} left out: the log has too many")
        empty_message = "no metrics found in the log"
        print_list(output, curves_of(progress), CURVE_COLUMNS, CURVE_FIELDS, empty_message)
        return ExitCode.OK
    time_range = _time_range(job, since, end, output.format, now)
    if output.format == CHART:
        metrics = metrics or GPU_VALUES
    printer = MetricsPrinter(output, job, MergedSamples(NodeChooser(nodes), metrics), follows=follow)
    if not follow:
        printer.add(await _fetch(client, job, time_range, step_s))
    else:
        async for response in client.metrics.follow(
            job.project_id, job.id, start=time_range[0], step_s=step_s, interval_s=interval_s
        ):
            printer.add(response)
    printer.end()
    if follow:
        return outcome_exit_code((await client.jobs.get(job.project_id, job.id)).current_status)
    if printer.is_empty:
        output.print_message(
            "no samples" if job.is_finished else "no samples yet; they start when the job runs"
        )
    return ExitCode.OK


def _time_range(
    job: TrainingJob, since: str | None, until: str | None, output_format: str, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Return the time range to request; for a table of an ended job, the server chooses the range."""
    end = resolve_since(until, now, "--end")
    if end is None and job.is_finished and job.updated_at:
        end = job.updated_at + timedelta(minutes=5)
    if since is not None or until is not None:
        return resolve_since(since, now) or job.created_at, end
    if output_format == TABLE:
        return (None, None) if job.is_finished else (now - timedelta(minutes=15), None)
    return job.created_at, end


async def _fetch(
    client: TrainingClient,
    job: TrainingJob,
    time_range: tuple[datetime | None, datetime | None],
    step_s: int | None,
) -> JobMetrics:
    """Fetch the metrics once; if the server refuses so long a time range, let the server choose the range."""
    start_ms, end_ms = (None if time is None else epoch_ms(time) for time in time_range)
    try:
        return await client.metrics.get(
            job.project_id, job.id, start_ms=start_ms, end_ms=end_ms, step_s=step_s
        )
    except BadRequest:
        if start_ms is None:
            raise
        return await client.metrics.get(job.project_id, job.id)


SampleKey = tuple[str, str, str]
"""Node (empty for the job's cache), GPU (empty for metrics of a whole node) and metric."""
Points = list[tuple[datetime, float | None]]


def _sort_key(key: SampleKey) -> tuple[object, ...]:
    """Sort key: nodes and GPUs in natural order, metrics in the API's order."""
    node, gpu, metric = key
    return (not node, natural_key(node), natural_key(gpu), list(UNIT_OF_METRIC).index(metric))


class MergedSamples:
    """Merges responses, which may overlap and be out of order; the last value received for a time wins.

    ``nodes`` selects the nodes (the cache, which has no node, only if all are chosen), ``metrics`` the
    metrics.
    """

    def __init__(self, nodes: NodeChooser, metrics: Iterable[str]) -> None:
        self.nodes = nodes
        self._metrics = frozenset(metrics or UNIT_OF_METRIC)
        self._values: dict[SampleKey, dict[datetime, float | None]] = {}

    def add(self, response: JobMetrics) -> list[tuple[datetime, SampleKey, float | None]]:
        """Add a response. Return new or changed samples, sorted by time, node, GPU and metric."""
        new_samples: dict[tuple[datetime, SampleKey], float | None] = {}
        for key, samples in _series_of_response(response):
            if key[2] not in self._metrics or not self.nodes(key[0] or None):
                continue
            values = self._values.setdefault(key, {})
            for sample in samples:
                if sample.timestamp not in values or values[sample.timestamp] != sample.value:
                    values[sample.timestamp] = new_samples[sample.timestamp, key] = sample.value
        stamped_keys = sorted(
            new_samples, key=lambda stamped_key: (stamped_key[0], _sort_key(stamped_key[1]))
        )
        return [(*stamped_key, new_samples[stamped_key]) for stamped_key in stamped_keys]

    def series(self) -> dict[SampleKey, Points]:
        keys = sorted((key for key, values in self._values.items() if values), key=_sort_key)
        return {key: sorted(self._values[key].items(), key=itemgetter(0)) for key in keys}


def _series_of_response(response: JobMetrics) -> Iterator[tuple[SampleKey, list[MetricSample]]]:
    # The top-level series repeat those of the leader, so they are used only without a list of nodes.
    nodes = [(entry.node_id, series_of(entry.metrics)) for entry in response.per_node_metrics]
    nodes = nodes or [(LEADER, series_of(response))]
    for node, series in (*nodes, ("", storage_series("cache", response.cache))):
        for path, samples in series:
            metric, gpu = metric_and_gpu(path)
            yield (node, gpu, metric), samples


class MetricsPrinter:
    """Prints responses: table and csv when a response arrives, json and charts at the end.

    With ``follows``, each response prints the table again (on a terminal: in place), and json is one object
    per sample.
    """

    def __init__(
        self, output: CommandOutput, job: TrainingJob, samples: MergedSamples, *, follows: bool
    ) -> None:
        self._output, self._job, self._samples, self._follows = output, job, samples, follows
        self._fold = MetricsFold()
        self.is_empty = True
        if output.format == CSV:
            output.write_text(csv_lines([("timestamp", "node", "gpu", "metric", "unit", "value")]))

    def add(self, response: JobMetrics) -> None:
        """Print a response. Raises CommandFailed for a chosen node that the job does not have."""
        names = [node.node_id for node in response.per_node_metrics]
        if not names and (response.gpu_utilization or response.cpu_usage):
            names = [LEADER]
        for name in names:
            self._samples.nodes(name)
        self._samples.nodes.check(self._job)
        if self._output.format == TABLE:
            self._print_table(response)
            return
        new_samples = self._samples.add(response)
        self.is_empty = self.is_empty and not new_samples
        if self._output.format == CSV:
            rows = ((time, *key, UNIT_OF_METRIC[key[2]], value) for time, key, value in new_samples)
            self._output.write_text(csv_lines(rows))
        elif self._follows:
            for time, key, value in new_samples:
                self._output.write_text(ascii_json(_key_fields(key) | _sample_record(time, value)) + "\n")

    def _print_table(self, response: JobMetrics) -> None:
        is_chosen, output = self._samples.nodes, self._output
        snapshot = self._fold.fold(response)
        rows = [node for node in snapshot.nodes if is_chosen(node.name)]
        if is_chosen(None) and snapshot.cache_usage_now is not None:
            usage_bytes, utilization = snapshot.cache_usage_now, snapshot.cache_utilization_now
            rows.append(NodeSnapshot("(cache)", disk_usage_now=usage_bytes, disk_utilization_now=utilization))
        if self._follows:
            status = status_view((response.training_job or self._job).current_status)
            now = local_time(datetime.now(UTC), TIME_OF_DAY)
            output.clear_screen()
            separator = "" if self.is_empty or output.is_terminal else "\n"
            output.write_text(f"{separator}{now}  {self._job.id}  {status.sign} {status.word}\n")
        self.is_empty = self.is_empty and not rows
        output.write_text(
            table_text(_node_columns(self._job.instance_type.gpu_memory_limit_mib), rows, output)
        )

    def end(self) -> None:
        if self._output.format == JSON and not self._follows:
            self._output.print_json(self._document())
        elif self._output.format == CHART:
            self._draw_charts()

    def _document(self) -> dict[str, Any]:
        return {
            "job_id": self._job.id,
            "project_id": self._job.project_id,
            "current_status": self._job.current_status,
            "series": [
                _key_fields(key) | {"samples": [_sample_record(time, value) for time, value in points]}
                for key, points in self._samples.series().items()
            ],
        }

    def _draw_charts(self) -> None:
        """Draw a chart per metric: one line per node (the mean of its GPUs), or per GPU of a single node."""
        for metric, unit in UNIT_OF_METRIC.items():
            points = {key: points for key, points in self._samples.series().items() if key[2] == metric}
            lines = _series_for_chart(points)
            if not lines:
                continue
            span_s = max(line.times[-1] for line in lines) - min(line.times[0] for line in lines)
            y_max = 1.0 if unit == "fraction" else None
            limit_mib = self._job.instance_type.gpu_memory_limit_mib
            if metric == "gpu_memory_usage_bytes" and limit_mib:
                y_max = float(limit_mib * BYTES_PER_MIB)
            label = clock_label(span_s)
            draw_chart(
                self._output,
                metric,
                lines,
                y_label=FORMAT_OF_UNIT[unit],
                x_label=label,
                y_min=0.0,
                y_max=y_max,
            )


def _node_columns(gpu_memory_mib: int | None) -> tuple[Column[NodeSnapshot], ...]:
    """Return the columns of the table of nodes; they highlight GPU memory above 97% of ``gpu_memory_mib``."""

    def gpu_percentages(node: NodeSnapshot) -> str:
        utilizations = node.gpu_utilization_now
        return (
            " ".join(UNKNOWN if fraction is None else f"{fraction * 100:.0f}" for fraction in utilizations)
            or UNKNOWN
        )

    def gpu_memory(node: NodeSnapshot) -> list[Span]:
        used_bytes = node.mean_memory_now
        is_nearly_full = bool(
            gpu_memory_mib and used_bytes and used_bytes > 0.97 * gpu_memory_mib * BYTES_PER_MIB
        )
        return [(bytes_iec(used_bytes), "caution" if is_nearly_full else "plain")]

    def disk_fraction(node: NodeSnapshot) -> list[Span]:
        fraction = node.disk_utilization_now
        return [(percent(fraction), "caution" if fraction is not None and fraction > 0.9 else "plain")]

    return (
        text_column("NODE", lambda node: node.name, "strong", shrinks=True),
        text_column("GPU", lambda node: percent(node.mean_utilization_now), right_aligned=True),
        text_column("EACH %", gpu_percentages, "muted", shrinks=True),
        Column("GPU MEM", "GPU MEM", gpu_memory, align="right"),
        text_column("CORES", lambda node: cores(node.cpu_now), right_aligned=True),
        text_column("MEMORY", lambda node: bytes_iec(node.cpu_memory_now), right_aligned=True),
        text_column("DISK", lambda node: bytes_iec(node.disk_usage_now), right_aligned=True),
        Column("FULL", "FULL", disk_fraction, align="right"),
    )


def _key_fields(key: SampleKey) -> dict[str, Any]:
    node, gpu, metric = key
    return {"node": node or None, "gpu": gpu or None, "metric": metric, "unit": UNIT_OF_METRIC[metric]}


def _sample_record(time: datetime, value: float | None) -> dict[str, Any]:
    return {"timestamp": iso_time(time), "value": json_number(value)}


def _series_for_chart(points_by_key: Mapping[SampleKey, Points]) -> list[Series]:
    nodes: dict[str, list[Points]] = {}
    for (node, _gpu, _metric), points in points_by_key.items():
        nodes.setdefault(node, []).append(points)
    if len(nodes) > 1:
        return [_chart_series(node, _mean_of_series(of_gpus)) for node, of_gpus in nodes.items()]
    return [
        _chart_series(f"gpu {gpu}" if gpu else node or "cache", points)
        for (node, gpu, _metric), points in points_by_key.items()
    ]


def _mean_of_series(series: Sequence[Points]) -> Points:
    values_by_time: dict[datetime, list[float | None]] = {}
    for time, value in chain.from_iterable(series):
        values_by_time.setdefault(time, []).append(value if value is None or math.isfinite(value) else None)
    return [(time, mean_known(values_by_time[time])) for time in sorted(values_by_time)]


def _chart_series(name: str, points: Points) -> Series:
    buffer = SeriesBuffer(name, max_points=max(2, len(points)))
    buffer.extend((time.timestamp(), value) for time, value in points)
    return buffer.snapshot()
