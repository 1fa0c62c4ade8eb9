"""The job screen's table of nodes."""

from __future__ import annotations

from tui.insight.node_metrics import NodeSnapshot
from tui.insight.text import inert
from tui.insight.units import bytes_iec, cores
from tui.widgets.charts.trace import trace
from tui.widgets.row_table import Column
from tui.widgets.tones import Span

TRACE_CELLS = 10


def _cpu_trace(node: NodeSnapshot) -> list[Span]:
    return [(trace(node.cpu.values[-40:], TRACE_CELLS, low=0.0), "running")]


NODE_COLUMNS: tuple[Column[NodeSnapshot], ...] = (
    Column("node", "node", lambda node: [(inert(node.name), "plain")], width=7, flex=1, keep=9),
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
