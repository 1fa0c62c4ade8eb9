"""Which charts a run has, and which series go into each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from math import isfinite

from tui.insight.node_metrics import NodeSnapshot
from tui.insight.run import RunSnapshot
from tui.insight.series import Series
from tui.insight.text import inert
from tui.insight.units import bytes_iec, cores, percent
from tui.screens.job.chart_deck import ChartData

MIB = 1024.0**2


def charts_of(run: RunSnapshot, *, span: timedelta, node: str | None) -> list[ChartData]:
    """The charts over the last ``span``: a line a node, or of one node a line a GPU.

    The loss is drawn over the whole run: its trend is what matters.
    """
    end = _end(run)
    start = end - span.total_seconds()
    if run.job.created_at is not None:
        start = max(start, run.job.created_at.timestamp())
    start = min(start, end - 1)
    nodes = run.metrics.nodes if run.metrics else ()
    limit_mib = run.job.instance_type.gpu_memory_limit_mib
    charts = [_gpu_use(nodes, node, start, end), _gpu_memory(nodes, node, start, end, limit_mib)]
    if run.progress is not None and run.progress.loss_series.values:
        loss = run.progress.loss_series
        stop = max(end, loss.times[-1])
        note = "" if run.progress.loss is None or isfinite(run.progress.loss) else f"now {run.progress.loss}"
        charts.insert(0, ChartData("loss", "loss, whole run", (loss,), loss.times[0], stop, _loss, note=note))
    chosen = [one for one in nodes if node is None or one.name == node]
    charts += [
        ChartData("cpu", "CPU cores", _by_node(chosen, lambda one: one.cpu), start, end, cores, y_min=0.0),
        ChartData(
            "memory",
            "memory",
            _by_node(chosen, lambda one: one.cpu_memory),
            start,
            end,
            bytes_iec,
            0.0,
            None,
            2,
        ),
        ChartData(
            "disk", "disk", _by_node(chosen, lambda one: one.disk_usage), start, end, bytes_iec, 0.0, None, 2
        ),
    ]
    return [replace(chart, end_label="end") for chart in charts] if run.job.is_finished else charts


def _end(run: RunSnapshot) -> float:
    """Now; of a job that has ended, its end."""
    if run.job.is_finished and run.job.updated_at is not None:
        return run.job.updated_at.timestamp()
    return run.at.timestamp()


def _gpu_use(nodes: Sequence[NodeSnapshot], node: str | None, start: float, end: float) -> ChartData:
    if node is None:
        lines, title = _by_node(nodes, lambda one: one.mean_utilization), "GPU use"
    else:
        lines, title = _by_gpu(nodes, node, lambda one: one.gpu_utilization), f"GPU use, {node}"
    return ChartData("util", title, lines, start, end, percent, 0.0, 1.0)


def _gpu_memory(
    nodes: Sequence[NodeSnapshot], node: str | None, start: float, end: float, limit_mib: int | None
) -> ChartData:
    top = limit_mib * MIB if limit_mib else None
    if node is None:
        lines, title = _by_node(nodes, lambda one: one.mean_memory), "GPU memory"
    else:
        lines, title = _by_gpu(nodes, node, lambda one: one.gpu_memory), f"GPU memory, {node}"
    return ChartData("gpu-memory", title, lines, start, end, bytes_iec, 0.0, top, 2)


def _by_node(nodes: Sequence[NodeSnapshot], series: Callable[[NodeSnapshot], Series]) -> tuple[Series, ...]:
    """A line a node, named after it."""
    return tuple(replace(series(node), name=inert(node.name)) for node in nodes)


def _by_gpu(
    nodes: Sequence[NodeSnapshot], name: str, series: Callable[[NodeSnapshot], tuple[Series, ...]]
) -> tuple[Series, ...]:
    """A line a GPU of one node, named by rank."""
    return tuple(
        replace(line, name=f"gpu {inert(gpu)}")
        for node in nodes
        if node.name == name
        for gpu, line in zip(node.gpus, series(node), strict=False)
    )


def _loss(value: float) -> str:
    return f"{value:.3g}"
