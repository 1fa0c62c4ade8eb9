"""What a live job of 64 nodes × 8 GPUs costs a paint: ``python benchmarks/matrix.py``.

A real screen of 120×40 cells gets one more sample of every GPU each round; CPU milliseconds from the new
snapshot to the strips on the screen, beside a key press (the chart's cursor) and textual's own DataTable
with the same cells. The wanted figures: matrix and charts in 60 ms or less, the key press in 50.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Report
from textual.app import App, ComposeResult
from textual.widgets import DataTable

from tui.analysis.node_metrics import NodeSnapshot
from tui.analysis.series import Series
from tui.widgets.charts.line_chart import LineChart
from tui.widgets.charts.spec import ChartSpec
from tui.widgets.gpu_matrix import GpuMatrix, MatrixRow

NODES, GPUS, POINTS = 64, 8, 300
ROUNDS = 15
SIZE = (120, 40)
NOW = 1_700_000_000.0


def use(node: int, gpu: int, second: int) -> float:
    """A made-up utilization."""
    return 0.9 + 0.09 * math.sin(second / 7 + node + gpu)


def node_at(node: int, second: int) -> NodeSnapshot:
    """A node with a sample a second up to that one."""
    times = tuple(NOW + at for at in range(second - POINTS, second))
    mean = tuple(use(node, 0, at) for at in range(second - POINTS, second))
    now = tuple(use(node, gpu, second) for gpu in range(GPUS))
    return NodeSnapshot(f"node-{node}", mean_utilization=Series("use", times, mean), gpu_utilization_now=now)


class Live(App[None]):
    """A matrix beside two charts of 64 lines, or a table of the same cells."""

    CSS = "Screen { layout: horizontal; } GpuMatrix, DataTable { width: 45; height: 1fr; }"

    def compose(self) -> ComposeResult:
        """Both; the table is measured alone."""
        yield GpuMatrix()
        yield DataTable()
        yield LineChart()
        yield LineChart()


async def cpu_ms(work: Callable[[], object], rest: Callable[[], Awaitable[object]]) -> float:
    """CPU time from a change to the painted screen."""
    begin = time.process_time()
    work()
    await rest()
    return (time.process_time() - begin) * 1000


async def main() -> None:
    """Measure, alternatives in turn, and print medians."""
    app = Live()
    async with app.run_test(size=SIZE) as pilot:
        matrix, table = app.query_one(GpuMatrix), app.query_one(DataTable)
        charts = list(app.query(LineChart))
        columns = [table.add_column(str(gpu)) for gpu in range(GPUS)]
        rows = [table.add_row(*["0%"] * GPUS) for _ in range(NODES)]
        table.display = False
        took: dict[str, list[float]] = {"matrix": [], "charts": [], "both": [], "cursor": [], "table": []}

        def show_matrix(nodes: list[NodeSnapshot]) -> None:
            matrix.set_data([MatrixRow(one.name, "", one.gpu_utilization_now, 0.9) for one in nodes])

        def show_charts(nodes: list[NodeSnapshot], second: int, cursor: float | None = None) -> None:
            series = [
                Series(one.name, one.mean_utilization.times, one.mean_utilization.values) for one in nodes
            ]
            spec = ChartSpec(
                start=NOW + second - POINTS, end=NOW + second, y_min=0.0, y_max=1.0, cursor=cursor
            )
            for chart in charts:
                chart.show(series, spec)

        def show_both(nodes: list[NodeSnapshot], second: int) -> None:
            show_matrix(nodes)
            show_charts(nodes, second)

        def show_table(nodes: list[NodeSnapshot]) -> None:
            for row, one in zip(rows, nodes, strict=True):
                for column, value in zip(columns, one.gpu_utilization_now, strict=True):
                    table.update_cell(row, column, f"{value or 0:.0%}")

        for number in range(ROUNDS):
            second = 1000 + 4 * number
            sets = [[node_at(node, second + more) for node in range(NODES)] for more in range(4)]
            both = partial(show_both, sets[2], second + 2)
            read = partial(show_charts, sets[2], second + 2, NOW + second)
            took["matrix"].append(await cpu_ms(partial(show_matrix, sets[0]), pilot.pause))
            took["charts"].append(await cpu_ms(partial(show_charts, sets[1], second + 1), pilot.pause))
            took["both"].append(await cpu_ms(both, pilot.pause))
            took["cursor"].append(await cpu_ms(read, pilot.pause))
            matrix.display, table.display = False, True
            await pilot.pause()
            took["table"].append(await cpu_ms(partial(show_table, sets[3]), pilot.pause))
            matrix.display, table.display = True, False
            await pilot.pause()
        idle = statistics.median([await cpu_ms(lambda: None, pilot.pause) for _ in range(ROUNDS)])
    words = {
        "matrix": ("matrix of 64 × 8", None),
        "charts": ("two charts of 64 lines", None),
        "both": ("matrix and charts together", 60),
        "cursor": ("a key press: the cursor of both charts", 50),
    }
    report = Report("matrix")
    base = statistics.median(took["table"])
    for name, (title, at_most) in words.items():
        report.figure(
            f"{title}, {SIZE[0]}×{SIZE[1]}", statistics.median(took[name]), unit="CPU ms", at_most=at_most
        )
    table = "DataTable of the same cells"
    report.compare(
        "matrix of 64 × 8, a paint", statistics.median(took["matrix"]), base, against=table, unit="CPU ms"
    )
    report.figure("a pause of the benchmark's own, in each of these", idle, unit="CPU ms")
    report.close()


if __name__ == "__main__":
    asyncio.run(main())
