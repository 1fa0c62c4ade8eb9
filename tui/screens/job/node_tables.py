"""The node table of the job screen, and the rows of its GPU matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tui.analysis.node_metrics import NodeSnapshot
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import EMPTY
from tui.tables.column import Span, fitted_columns
from tui.text.names import abbreviated_names
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, cores, percent
from tui.widgets.charts.spec import trace
from tui.widgets.gpu_matrix import Frame, MatrixRow
from tui.widgets.row_table import Column, RowTable

TRACE_CELLS = 10


def _cpu_trace(node: NodeSnapshot) -> list[Span]:
    return [(trace(node.cpu.values[-40:], TRACE_CELLS, low=0.0), "running")]


NODE_COLUMNS: tuple[Column[NodeSnapshot], ...] = (
    Column("node", "node", lambda node: [(sanitize(node.name), "plain")], width=7, flex=1, keep=9),
    Column("cpu", "cores", lambda node: [(cores(node.cpu_now), "plain")], width=5, align="right", keep=8),
    Column("trace", "", _cpu_trace, width=TRACE_CELLS, keep=3),
    Column(
        "memory",
        "memory",
        lambda node: [(bytes_iec(node.cpu_memory_now), "plain")],
        width=9,
        align="right",
        keep=7,
    ),
    Column(
        "disk",
        "disk",
        lambda node: [(bytes_iec(node.disk_usage_now), "plain")],
        width=9,
        align="right",
        keep=6,
    ),
)


class NodeTable(RowTable[NodeSnapshot]):
    """The nodes, with names shortened so that they stay distinguishable."""

    def __init__(self, *, id: str | None = None) -> None:
        self._columns = (replace(NODE_COLUMNS[0], cell=self._short_name), *NODE_COLUMNS[1:])
        self._short: dict[str, str] = {}
        super().__init__(self._columns, lambda node: node.name, id=id)
        self.set_reactive(RowTable.blurred_cursor, False)

    def point_at(self, name: str | None) -> None:
        """Highlight the row of the selected node; None for all nodes."""
        self.blurred_cursor = any(node.name == name for node in self.rows)
        if self.blurred_cursor and name is not None:
            self.move_to(name)

    def set_rows(self, rows: Sequence[NodeSnapshot]) -> None:
        self._cut_names(rows)
        super().set_rows(rows)

    def on_resize(self) -> None:
        self._cut_names(self.rows)

    def _cut_names(self, rows: Sequence[NodeSnapshot]) -> None:
        names = [sanitize(node.name) for node in rows]
        _, cells = fitted_columns(self._columns, self.scrollable_content_region.width)[0]
        short = dict(zip(names, abbreviated_names(names, cells), strict=True))
        if short != self._short:
            self._short = short
            self._lines.clear()  # rendered lines of the same nodes are outdated
            self.refresh()

    def _short_name(self, node: NodeSnapshot) -> Sequence[Span]:
        name = sanitize(node.name)
        return [(self._short.get(name, name), "plain")]


FACTS = ("cores", "memory", "disk")

_NOTES: dict[FindingKind, str] = {
    FindingKind.NODE_MISSING: "✗ lost",
    FindingKind.METRICS_MISSING: "? no metrics",
    FindingKind.STRAGGLER: "▲ slow",
    FindingKind.GPU_IDLE: "▽ idle",
    FindingKind.GPU_MEMORY: "■ full",
    FindingKind.MEMORY_LEAK: "↗ leak",
    FindingKind.DISK_FILLING: "▤ disk",
}
"""Notes shown next to a node, the worst first; each has its own sign."""
_OTHER = "! issue"


def matrix_rows(
    run: RunSnapshot,
    *,
    memory: bool,
    worst_first: bool = False,
    node: str | None = None,
) -> list[MatrixRow]:
    """Return one row per node, or one row per GPU if ``node`` is given.

    Memory is a share of the GPU's size.
    """
    nodes = run.metrics.nodes if run.metrics else ()
    size = _gpu_memory_bytes(run) if memory else 1.0
    chosen = next((one for one in nodes if one.name == node), None)
    if chosen is not None:
        rows = _gpu_rows(chosen, memory, size)
    else:
        notes = notes_by_node(run)
        rows = [_node_row(one, notes.get(one.name, ""), memory, size) for one in nodes]
    if worst_first:
        rows.sort(key=lambda row: (not row.sign, _sort_key(row, memory)))
    return rows


def matrix_frame(
    run: RunSnapshot, stretch: tuple[float, float], *, memory: bool, over_time: bool, node: str | None = None
) -> Frame:
    """Return the matrix's settings apart from its rows; ``stretch`` is the visible time range."""
    cache = run.metrics.cache_usage_now if run.metrics else None
    share = run.metrics.cache_utilization_now if run.metrics else None
    remark = ""
    if cache is not None:
        remark = f"cache {bytes_iec(cache)}" + (f" {percent(share)}" if share is not None else "")
    return Frame(
        over_time=over_time,
        start=stretch[0],
        end=stretch[1],
        full=_gpu_memory_bytes(run) if memory else 1.0,
        end_label="end" if run.job.is_finished else "now",
        low_is_bad=not memory,
        facts=FACTS if node is None else ("use" if memory else "memory",),
        remark=remark,
    )


def notes_by_node(run: RunSnapshot) -> dict[str, str]:
    """Return a sign and a word for each node with a finding."""
    found: dict[str, list[HealthFinding]] = {}
    for finding in run.findings:
        if finding.node is not None:
            found.setdefault(finding.node, []).append(finding)
    notes = {name: _note(those) for name, those in found.items()}
    for name in run.slow_nodes:
        notes.setdefault(name, _NOTES[FindingKind.STRAGGLER])
    for name in run.missing_nodes:
        notes[name] = _NOTES[FindingKind.NODE_MISSING]
    return notes


def _note(findings: list[HealthFinding]) -> str:
    kinds = {finding.kind for finding in findings}
    return next((note for kind, note in _NOTES.items() if kind in kinds), _OTHER)


def _sort_key(row: MatrixRow, memory: bool) -> float:
    """Return a sort key: smaller is worse, and unknown values come first."""
    if row.mean is None:
        return -1.0
    return 1.0 - row.mean if memory else row.mean


def _node_row(node: NodeSnapshot, note: str, memory: bool, size: float) -> MatrixRow:
    values = _shares(node.gpu_memory_now if memory else node.gpu_utilization_now, size)
    history = node.mean_memory if memory else node.mean_utilization
    disk = bytes_iec(node.disk_usage_now)
    if node.disk_utilization_now is not None:
        disk += f" {percent(node.disk_utilization_now)}"
    facts = (cores(node.cpu_now), bytes_iec(node.cpu_memory_now), disk)
    return MatrixRow(node.name, note, values, _mean(values), history, facts)


def _gpu_rows(node: NodeSnapshot, memory: bool, size: float) -> list[MatrixRow]:
    now = _shares(node.gpu_memory_now if memory else node.gpu_utilization_now, size)
    over_time = node.gpu_memory if memory else node.gpu_utilization
    other = node.gpu_utilization_now if memory else node.gpu_memory_now
    rows = []
    for at, gpu in enumerate(node.gpus):
        beside = other[at] if at < len(other) else None
        fact = percent(beside) if memory else bytes_iec(beside)
        rows.append(
            MatrixRow(
                f"gpu {gpu}",
                "",
                now[at : at + 1],
                now[at] if at < len(now) else None,
                over_time[at] if at < len(over_time) else EMPTY,
                (fact,),
            )
        )
    return rows


def _shares(now: tuple[float | None, ...], size: float) -> tuple[float | None, ...]:
    return tuple(None if value is None else min(1.0, value / size) for value in now)


def _mean(values: tuple[float | None, ...]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _gpu_memory_bytes(run: RunSnapshot) -> float:
    """Return the memory of one GPU: from the instance type, else the highest usage seen."""
    limit_mib = run.job.instance_type.gpu_memory_limit_mib
    if limit_mib:
        return limit_mib * 1024.0**2
    nodes = run.metrics.nodes if run.metrics else ()
    return max((value for node in nodes for value in node.gpu_memory_now if value), default=1.0)
