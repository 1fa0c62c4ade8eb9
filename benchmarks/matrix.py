"""CPU time to paint a live job of 64 nodes × 8 GPUs.

In each round, an app of 120×40 cells gets a new sample of every GPU. The CPU time from the new snapshot to
the painted screen is compared with a key press (which moves the charts' cursor), and with a DataTable of
Textual that has the same cells.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import AsyncIterator
from functools import partial
from statistics import median

from harness import Figure, compared, cpu_ms_to_paint
from textual.app import App, ComposeResult
from textual.widgets import DataTable

from tui.analysis.node_metrics import NodeSnapshot
from tui.analysis.series import Series
from tui.widgets.charts.line_chart import LineChart
from tui.widgets.charts.spec import ChartSpec
from tui.widgets.gpu_matrix import GpuMatrix, MatrixRow

NODES, GPUS, POINTS = 64, 8, 300
ROUNDS = 15
NOW = 1_700_000_000.0
MATRIX = "matrix of 64 × 8"
BUDGETS = {
    MATRIX: None,
    "two charts of 64 lines": None,
    "matrix and charts together": 60,
    "a key press: the cursor of both charts": 50,
}


class LiveApp(App[None]):
    """A matrix next to two charts of 64 lines, or a table with the cells of the matrix."""

    CSS = "Screen { layout: horizontal; } GpuMatrix, DataTable { width: 45; height: 1fr; }"

    def compose(self) -> ComposeResult:
        yield GpuMatrix()
        yield DataTable()
        yield LineChart()
        yield LineChart()

    def on_mount(self) -> None:
        self.matrix, self.table = self.query_one(GpuMatrix), self.query_one(DataTable)
        self.columns = [self.table.add_column(str(gpu)) for gpu in range(GPUS)]
        self.rows = [self.table.add_row(*["0%"] * GPUS) for _ in range(NODES)]

    def show_matrix(self, nodes: list[NodeSnapshot]) -> None:
        self.matrix.set_data([MatrixRow(node.name, "", node.gpu_utilization_now, 0.9) for node in nodes])

    def show_charts(self, nodes: list[NodeSnapshot], second: int, cursor: float | None = None) -> None:
        utilizations = [node.mean_utilization for node in nodes]
        series = [
            Series(node.name, utilization.times, utilization.values)
            for node, utilization in zip(nodes, utilizations, strict=True)
        ]
        end = NOW + second
        for chart in self.query(LineChart):
            chart.show(series, ChartSpec(start=end - POINTS, end=end, y_min=0.0, y_max=1.0, cursor=cursor))

    def show_both(self, nodes: list[NodeSnapshot], second: int) -> None:
        self.show_matrix(nodes)
        self.show_charts(nodes, second)

    def show_table(self, nodes: list[NodeSnapshot]) -> None:
        for row, node in zip(self.rows, nodes, strict=True):
            for column, value in zip(self.columns, node.gpu_utilization_now, strict=True):
                self.table.update_cell(row, column, f"{value or 0:.0%}")


async def figures() -> AsyncIterator[Figure]:
    """Measure all in turn."""
    app = LiveApp()
    times_ms: dict[str, list[float]] = defaultdict(list)
    async with app.run_test(size=(120, 40)) as pilot:
        for number in range(ROUNDS):
            second = 1000 + 4 * number
            snapshots = [[node_at(node, second + offset) for node in range(NODES)] for offset in range(4)]
            app.table.display = False
            await pilot.pause()
            paints = (
                partial(app.show_matrix, snapshots[0]),
                partial(app.show_charts, snapshots[1], second + 1),
                partial(app.show_both, snapshots[2], second + 2),
                partial(app.show_charts, snapshots[2], second + 2, NOW + second),
            )
            for name, paint in zip(BUDGETS, paints, strict=True):
                times_ms[name].append(await cpu_ms_to_paint(paint, pilot.pause))
            app.matrix.display, app.table.display = False, True
            await pilot.pause()
            times_ms["table"].append(
                await cpu_ms_to_paint(partial(app.show_table, snapshots[3]), pilot.pause)
            )
            app.matrix.display = True
        idle_ms = [await cpu_ms_to_paint(lambda: None, pilot.pause) for _ in range(ROUNDS)]
    for name, budget in BUDGETS.items():
        yield Figure(f"{name}, 120×40", median(times_ms[name]), unit="CPU ms", at_most=budget)
    yield compared(
        f"{MATRIX}, a paint",
        times_ms[MATRIX],
        times_ms["table"],
        "DataTable of the same cells",
        unit="CPU ms",
    )
    yield Figure("a pause of the benchmark's own, in each of these", median(idle_ms), unit="CPU ms")


def node_at(node: int, second: int) -> NodeSnapshot:
    """Return a node with a sample each second, up to ``second``."""

    def utilization(gpu: int, at: int) -> float:
        return 0.9 + 0.09 * math.sin(at / 7 + node + gpu)

    seconds = range(second - POINTS, second)
    mean = Series("use", tuple(NOW + at for at in seconds), tuple(utilization(0, at) for at in seconds))
    now = tuple(utilization(gpu, second) for gpu in range(GPUS))
    return NodeSnapshot(f"node-{node}", mean_utilization=mean, gpu_utilization_now=now)
