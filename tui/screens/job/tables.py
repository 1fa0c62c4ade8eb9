"""The job screen's table of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tui.insight.names_apart import apart
from tui.insight.nodes.metrics import NodeSnapshot
from tui.insight.text import inert
from tui.insight.units import bytes_iec, cores
from tui.widgets.charts.trace import trace
from tui.widgets.row_columns import Column, fitted_columns
from tui.widgets.row_table import RowTable
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


class NodeTable(RowTable[NodeSnapshot]):
    """The nodes, their names cut so that they can be told apart."""

    def __init__(self, *, id: str | None = None) -> None:
        self._columns = (replace(NODE_COLUMNS[0], cell=self._short_name), *NODE_COLUMNS[1:])
        self._short: dict[str, str] = {}
        super().__init__(self._columns, lambda node: node.name, id=id)
        self.set_reactive(RowTable.blurred_cursor, False)

    def point_at(self, name: str | None) -> None:
        """Highlight the row of the node that is isolated; None for all nodes."""
        self.blurred_cursor = any(node.name == name for node in self.rows)
        if self.blurred_cursor and name is not None:
            self.move_to(name)

    def set_rows(self, rows: Sequence[NodeSnapshot]) -> None:
        """Show these nodes."""
        self._cut_names(rows)
        super().set_rows(rows)

    def on_resize(self) -> None:
        """More of the names may fit, or less."""
        self._cut_names(self.rows)

    def _cut_names(self, rows: Sequence[NodeSnapshot]) -> None:
        names = [inert(node.name) for node in rows]
        _, cells = fitted_columns(self._columns, self.scrollable_content_region.width)[0]
        short = dict(zip(names, apart(names, cells), strict=True))
        if short != self._short:
            self._short = short
            self._lines.clear()  # what was drawn of the same nodes is right no more
            self.refresh()

    def _short_name(self, node: NodeSnapshot) -> Sequence[Span]:
        name = inert(node.name)
        return [(self._short.get(name, name), "plain")]
