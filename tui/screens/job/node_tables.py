"""The nodes of a run: a matrix of their GPUs, with CPU, memory and disk beside it, and a chart below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from tui.analysis.node_metrics import NodeSnapshot, mean_known
from tui.analysis.run.finding import SIGNS
from tui.analysis.run.snapshot import RunSnapshot
from tui.screens.charts.builder import ChartData
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, cores, percent
from tui.widgets.charts.line_chart import LineChart
from tui.widgets.gpu_matrix import Frame, GpuMatrix, MatrixRow


@dataclass(frozen=True, slots=True)
class MatrixOptions:
    """View options of the GPU matrix."""

    memory: bool = False
    """Show GPU memory instead of utilization."""
    worst_first: bool = False
    """Sort nodes with findings first, then by value."""
    over_time: bool = False
    """Show the history of each row instead of its GPUs."""
    node: str | None = None
    """Show the GPUs of this node as rows; None shows all nodes."""


class NodesPane(Vertical):
    """The list of nodes, and a chart below if it fits."""

    class SpaceChanged(Message):
        """The space for a chart below the nodes may have changed."""

    def compose(self) -> ComposeResult:
        yield GpuMatrix(id="matrix")
        yield LineChart(id="node-chart")

    @property
    def matrix(self) -> GpuMatrix:
        return self.query_one(GpuMatrix)

    def show(self, run: RunSnapshot, options: MatrixOptions, time_range: tuple[float, float]) -> None:
        # the cells of many nodes need the full width to be readable
        self.set_class(run.metrics is not None and len(run.metrics.nodes) > 24, "-dense-nodes")
        self.matrix.set_data(matrix_rows(run, options), matrix_frame(run, time_range, options))

    def show_chart(self, charts: Sequence[ChartData]) -> ChartData | None:
        """Show a chart of GPU utilization, else of CPUs, below the nodes; return it, or None without room."""
        by_id = {chart.id: chart for chart in charts if chart.has_data}
        chart_data = by_id.get("util") or by_id.get("cpu")
        chart, free_lines = self.query_one(LineChart), self.size.height - self.matrix.virtual_size.height
        chart.display = chart_data is not None and free_lines >= 4
        if chart_data is None or not chart.display:
            return None
        chart.show(chart_data.series, chart_data.spec)
        return chart_data

    def on_resize(self) -> None:
        """Fit the matrix after the layout, which determines the available space."""
        self.call_after_refresh(self._fit_matrix)

    def _fit_matrix(self) -> None:
        if not self._pruning:  # the pane was closed before the layout: its children are gone
            self.matrix.fit()
            self.post_message(self.SpaceChanged())


def matrix_rows(run: RunSnapshot, options: MatrixOptions) -> list[MatrixRow]:
    """Return one row per node, or per GPU of the chosen node; values are fractions from 0 to 1."""
    memory = options.memory
    nodes = run.metrics.nodes if run.metrics else ()
    full_value = _gpu_memory_bytes(run) if memory else 1.0
    chosen_node = next((node for node in nodes if node.name == options.node), None)
    if chosen_node is not None:
        rows = _gpu_rows(chosen_node, memory, full_value)
    else:
        notes = notes_by_node(run)
        rows = [_node_row(node, notes.get(node.name, ""), memory, full_value) for node in nodes]
    if options.worst_first:
        # nodes with findings, then nodes without values, then by lowest utilization or most memory
        sign = -1 if memory else 1
        rows.sort(key=lambda row: (not row.sign, row.mean is not None, sign * (row.mean or 0.0)))
    return rows


def matrix_frame(run: RunSnapshot, time_range: tuple[float, float], options: MatrixOptions) -> Frame:
    """Return the display settings of the matrix; ``time_range`` is the visible time range."""
    memory = options.memory
    # "now" tells the matrix from the chart below it, which shows history
    time_note = "" if options.over_time else ", last" if run.job.is_finished else " now"
    suffix = f"{time_note}, {sanitize(options.node)}" if options.node else time_note
    has_gpus = run.metrics is not None and any(node.gpus for node in run.metrics.nodes)
    quantity = ("GPU memory" if memory else "GPU use") if has_gpus else "nodes"
    return Frame(
        title=f"{quantity}{suffix}",
        shows_history=options.over_time,
        start=time_range[0],
        end=time_range[1],
        full=_gpu_memory_bytes(run) if memory else 1.0,
        is_live=not run.job.is_finished,
        low_is_bad=not memory,
        facts=("cores", "memory", "disk") if options.node is None else ("use" if memory else "memory",),
        empty_text="no GPU data" if run.metrics_at else "reading…",
    )


def notes_by_node(run: RunSnapshot) -> dict[str, str]:
    """Return a note for each node with findings: sign and word of its worst finding."""
    notes: dict[str, str] = {}
    for finding in run.findings:  # sorted, the worst first
        if finding.node is not None:
            sign, word = finding.kind.note.split(" ", 1)
            sign = SIGNS["critical"] if finding.severity == "critical" else sign
            notes.setdefault(finding.node, f"{sign} {word}")
    return notes


def _node_row(node: NodeSnapshot, note: str, memory: bool, full_value: float) -> MatrixRow:
    values = _fractions(node.gpu_memory_now if memory else node.gpu_utilization_now, full_value)
    history = node.mean_memory if memory else node.mean_utilization
    disk = bytes_iec(node.disk_usage_now)
    if node.disk_utilization_now is not None:
        disk += f" {percent(node.disk_utilization_now)}"
    facts = (cores(node.cpu_now), bytes_iec(node.cpu_memory_now), disk)
    return MatrixRow(node.name, note, values, mean_known(values), history, facts)


def _gpu_rows(node: NodeSnapshot, memory: bool, full_value: float) -> list[MatrixRow]:
    fractions = _fractions(node.gpu_memory_now if memory else node.gpu_utilization_now, full_value)
    histories = node.gpu_memory if memory else node.gpu_utilization
    other_values = node.gpu_utilization_now if memory else node.gpu_memory_now
    format_value = percent if memory else bytes_iec
    return [
        MatrixRow(f"gpu {gpu}", "", (fraction,), fraction, history, (format_value(other_value),))
        for gpu, fraction, history, other_value in zip(
            node.gpus, fractions, histories, other_values, strict=True
        )
    ]


def _fractions(values: tuple[float | None, ...], full_value: float) -> tuple[float | None, ...]:
    return tuple(None if value is None else min(1.0, value / full_value) for value in values)


def _gpu_memory_bytes(run: RunSnapshot) -> float:
    """Return the memory of one GPU, from the instance type, else the highest usage of any GPU now."""
    limit_mib = run.job.instance_type.gpu_memory_limit_mib
    if limit_mib:
        return limit_mib * 1024.0**2
    nodes = run.metrics.nodes if run.metrics else ()
    return max((value for node in nodes for value in node.gpu_memory_now if value), default=1.0)
