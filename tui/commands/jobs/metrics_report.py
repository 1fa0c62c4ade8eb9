"""Reports of metrics: tables, charts, or flat records (one per moment, node, GPU and metric).

Answers overlap while following, so records are deduplicated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from api_client.models import JobMetrics, MetricSample, NodeSeries, TrainingJob
from api_client.models.metrics import StorageMetrics
from tui.analysis.export import csv_lines, json_number
from tui.analysis.node_metrics import LEADER, MetricsFold, NodeSnapshot, mean_known
from tui.analysis.series import Series, SeriesBuffer
from tui.analysis.status import status_view
from tui.commands.logs.printing import NodeChooser
from tui.commands.support.options import CSV, JSON, NDJSON, TABLE
from tui.commands.support.output import Output, ascii_json
from tui.commands.support.tables import table_of
from tui.commands.support.text_chart import clock_label, draw_chart
from tui.tables.nodes import node_columns
from tui.text.names import natural_key
from tui.text.times import TIME_OF_DAY, iso_time, local_time
from tui.text.units import BYTES_PER_MIB, bytes_iec, cores, percent

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


_PLACES = {metric: place for place, metric in enumerate(UNIT_OF_METRIC)}

SampleKey = tuple[str, str, str]
"""Node (empty for the job's cache), GPU (empty for metrics not specific to one) and metric."""
Samples = list[tuple[datetime, float | None]]


def _order(key: SampleKey) -> tuple[object, ...]:
    """Sort key: nodes and GPUs in natural order, metrics in the API's order."""
    node, gpu, metric = key
    return (not node, natural_key(node), natural_key(gpu), _PLACES[metric])


class SampleDeduplicator:
    """Merges answers, which may overlap and be out of order; the last value received for a moment wins.

    ``chosen`` selects the nodes (the cache, which has no node, only if all are chosen), ``metrics`` the
    metrics.
    """

    def __init__(self, chosen: Callable[[str | None], bool], metrics: Iterable[str] = ()) -> None:
        self._chosen = chosen
        self._metrics = frozenset(metrics or UNIT_OF_METRIC)
        self._held: dict[SampleKey, dict[datetime, float | None]] = {}

    def take(self, answer: JobMetrics) -> list[tuple[datetime, SampleKey, float | None]]:
        """Add an answer. Return new or changed samples, sorted by time, node, GPU and metric."""
        new: dict[tuple[datetime, SampleKey], float | None] = {}
        for key, samples in _series_of(answer):
            if key[2] not in self._metrics or not self._chosen(key[0] or None):
                continue
            taken = self._held.setdefault(key, {})
            for sample in samples:
                if sample.timestamp not in taken or taken[sample.timestamp] != sample.value:
                    taken[sample.timestamp] = sample.value
                    new[sample.timestamp, key] = sample.value
        places = sorted(new, key=lambda stamped_key: (stamped_key[0], _order(stamped_key[1])))
        return [(*stamped_key, new[stamped_key]) for stamped_key in places]

    def series(self) -> dict[SampleKey, Samples]:
        keys = sorted(filter(self._held.get, self._held), key=_order)
        return {key: sorted(self._held[key].items(), key=lambda one: one[0]) for key in keys}

    @property
    def is_empty(self) -> bool:
        return not any(self._held.values())


def _series_of(answer: JobMetrics) -> Iterator[tuple[SampleKey, list[MetricSample]]]:
    # The top-level series are the leader's: if the nodes are listed, they would count twice.
    nodes: list[tuple[str, NodeSeries]] = [
        (entry.node_id, entry.metrics) for entry in answer.per_node_metrics
    ]
    for node, series in nodes or [(LEADER, answer)]:
        for metric in ("gpu_utilization", "gpu_memory_usage_bytes"):
            for gpu, samples in getattr(series, metric).items():
                yield (node, gpu, metric), samples
        for metric in ("cpu_usage", "cpu_memory_usage_bytes"):
            yield (node, "", metric), getattr(series, metric)
        yield from _volume(node, "ephemeral_storage", series.ephemeral_storage)
    yield from _volume("", "cache", answer.cache)


def _volume(
    node: str, name: str, volume: StorageMetrics | None
) -> Iterator[tuple[SampleKey, list[MetricSample]]]:
    if volume is not None:
        yield (node, "", f"{name}_usage_bytes"), volume.usage_bytes
        yield (node, "", f"{name}_utilization"), volume.utilization


CHART = "chart"
CSV_COLUMNS = ("timestamp", "node", "gpu", "metric", "unit", "value")

CHARTED = ("gpu_utilization", "gpu_memory_usage_bytes")
UNITS: dict[str, Callable[[float], str]] = {"fraction": percent, "bytes": bytes_iec, "cores": cores}


def report_of(
    output: Output,
    output_format: str,
    job: TrainingJob,
    *,
    chosen: NodeChooser,
    metrics: Sequence[str],
    follows: bool,
) -> TableReport | SampleReport:
    """Return the report for the format; following, json is one object a line."""
    if output_format == TABLE:
        return TableReport(output, job, chosen, follows=follows)
    if output_format == CHART:
        metrics = metrics or CHARTED
    if output_format == JSON and follows:
        output_format = NDJSON
    return SampleReport(output, output_format, job, SampleDeduplicator(chosen, metrics))


class TableReport:
    """Current values by node; with --follow, printed again for every answer, in place on a terminal."""

    def __init__(
        self, output: Output, job: TrainingJob, chosen: Callable[[str | None], bool], *, follows: bool
    ) -> None:
        self._output, self._job, self._chosen, self._follows = output, job, chosen, follows
        self._fold = MetricsFold()
        self._answers = 0
        self._has_rows = False

    @property
    def is_empty(self) -> bool:
        return not self._has_rows

    def take(self, answer: JobMetrics) -> None:
        snapshot = self._fold.fold(answer)
        job = answer.training_job or self._job
        output = self._output
        if self._follows:
            view = status_view(job.current_status)
            now = local_time(datetime.now(UTC), TIME_OF_DAY)
            output.clear_screen()
            lead = "\n" if self._answers and not output.is_terminal else ""
            output.data(f"{lead}{now}  {job.id}  {view.sign} {view.word}\n")
        self._answers += 1
        rows = [node for node in snapshot.nodes if self._chosen(node.name)]
        if self._chosen(None) and snapshot.cache_usage_now is not None:
            used, share = snapshot.cache_usage_now, snapshot.cache_utilization_now
            rows.append(NodeSnapshot("(cache)", disk_usage_now=used, disk_utilization_now=share))
        self._has_rows = self._has_rows or bool(rows)
        output.data(table_of(node_columns(job.instance_type.gpu_memory_limit_mib), rows, output))

    def end(self) -> None:
        """Do nothing: each answer has already been printed."""


class SampleReport:
    """Single samples: csv and ndjson print new ones as they arrive, json and charts all at the end."""

    def __init__(
        self, output: Output, output_format: str, job: TrainingJob, deduplicator: SampleDeduplicator
    ) -> None:
        self._output, self._format, self._job, self._deduplicator = output, output_format, job, deduplicator
        if output_format == CSV:
            output.data(csv_lines([CSV_COLUMNS]))

    @property
    def is_empty(self) -> bool:
        return self._deduplicator.is_empty

    def take(self, answer: JobMetrics) -> None:
        fresh = self._deduplicator.take(answer)
        if self._format == CSV:
            self._output.data(
                csv_lines((at, *key, UNIT_OF_METRIC[key[2]], value) for at, key, value in fresh)
            )
        elif self._format == NDJSON:
            for at, key, value in fresh:
                record = {"timestamp": iso_time(at), **_names(key), "value": json_number(value)}
                self._output.data(ascii_json(record) + "\n")

    def end(self) -> None:
        if self._format == JSON:
            self._output.json(_document(self._job, self._deduplicator.series()))
        elif self._format == CHART:
            _draw(self._output, self._job, self._deduplicator.series())


def _document(job: TrainingJob, found: Mapping[SampleKey, Samples]) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "project_id": job.project_id,
        "current_status": job.current_status,
        "series": [
            _names(key)
            | {"samples": [{"timestamp": iso_time(at), "value": json_number(value)} for at, value in samples]}
            for key, samples in found.items()
        ],
    }


def _names(key: SampleKey) -> dict[str, Any]:
    node, gpu, metric = key
    return {"node": node or None, "gpu": gpu or None, "metric": metric, "unit": UNIT_OF_METRIC[metric]}


def _draw(output: Output, job: TrainingJob, found: Mapping[SampleKey, Samples]) -> None:
    """Draw a chart per metric: one line per node (the mean of its GPUs), or per GPU if one node is chosen."""
    for metric, unit in UNIT_OF_METRIC.items():
        lines = _lines_of({key: samples for key, samples in found.items() if key[2] == metric})
        if not lines:
            continue
        span_s = max(line.times[-1] for line in lines) - min(line.times[0] for line in lines)
        limit_mib = job.instance_type.gpu_memory_limit_mib
        top = 1.0 if unit == "fraction" else None
        if metric == "gpu_memory_usage_bytes" and limit_mib:
            top = float(limit_mib * BYTES_PER_MIB)
        draw_chart(output, metric, lines, unit=UNITS[unit], x_label=clock_label(span_s), y_min=0.0, y_max=top)


def _lines_of(found: Mapping[SampleKey, Samples]) -> list[Series]:
    nodes: dict[str, list[Samples]] = {}
    for (node, _gpu, _metric), samples in found.items():
        nodes.setdefault(node, []).append(samples)
    if len(nodes) > 1:
        return [_series(node, _mean(of_gpus)) for node, of_gpus in nodes.items()]
    return [
        _series(f"gpu {gpu}" if gpu else node or "cache", samples)
        for (node, gpu, _metric), samples in found.items()
    ]


def _mean(lines: Sequence[Samples]) -> Samples:
    by_moment: dict[datetime, list[float]] = {}
    for moment, value in chain.from_iterable(lines):
        of_moment = by_moment.setdefault(moment, [])
        if value is not None and math.isfinite(value):
            of_moment.append(value)
    return [(moment, mean_known(by_moment[moment])) for moment in sorted(by_moment)]


def _series(name: str, samples: Samples) -> Series:
    buffer = SeriesBuffer(name, max_points=max(2, len(samples)))
    for moment, value in samples:
        buffer.add(moment.timestamp(), value)
    return buffer.snapshot()
