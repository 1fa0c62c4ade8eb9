"""What a live chart costs beside plotext, on the same data in one run: ``python benchmarks/charts.py``.

Prints CPU milliseconds a frame and their ratio. The wanted ratio for eight series is 0.1 or less; 64
series, or a matrix of 64 × 8, are to take 60 ms or less. plotext is needed for the comparison only.
"""

from __future__ import annotations

import importlib.util
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Report

from tui.analysis.series import Series
from tui.widgets.charts.picture import picture
from tui.widgets.charts.spec import ChartSpec

WIDTH, HEIGHT = 120, 30
POINTS = 500
SPAN_S = 1800.0
END = 1_700_000_000.0
ROUNDS = 7
WATCHED_SERIES, MANY_SERIES = 8, 64


def make_series(count: int) -> list[Series]:
    """Noisy, drifting shares of so many nodes."""
    numbers = random.Random(7)
    times = tuple(END - SPAN_S + index * SPAN_S / (POINTS - 1) for index in range(POINTS))
    return [
        Series(
            f"node-{node}",
            times,
            tuple(
                min(1.0, max(0.0, 0.5 + 0.4 * math.sin(index / 60 + node) + numbers.gauss(0, 0.05)))
                for index in range(POINTS)
            ),
        )
        for node in range(count)
    ]


def ours(series: list[Series]) -> None:
    """One frame of the chart."""
    picture(series, ChartSpec("GPU utilization", END - SPAN_S, END, 0.0, 1.0), WIDTH, HEIGHT)


def plotext_frame(series: list[Series]) -> None:
    """One frame of plotext with the same size and data."""
    import plotext

    figure = plotext.figure
    figure.clear()
    figure.plot_size(WIDTH, HEIGHT)
    for one in series:
        signal = figure.signal(list(one.times), list(one.values), marker="braille")
        signal.lines()
        signal.label(one.name)
        figure.draw(signal)
    figure.build()


def cpu_ms(work: Callable[[], None]) -> float:
    """CPU time of one call."""
    begin = time.process_time()
    work()
    return (time.process_time() - begin) * 1000


def main() -> None:
    """Measure, alternatives in turn, and print medians."""
    plotext_here = importlib.util.find_spec("plotext") is not None
    report = Report("charts")
    for count in (1, 8, 64):
        series = make_series(count)
        mine, theirs = [], []
        for _ in range(ROUNDS):
            mine.append(cpu_ms(partial(ours, series)))
            if plotext_here:
                theirs.append(cpu_ms(partial(plotext_frame, series)))
        name = f"chart of {count} × {POINTS} samples, {WIDTH}×{HEIGHT} cells, a frame"
        if theirs:
            most = 0.1 if count == WATCHED_SERIES else None
            report.compare(
                name,
                mine,
                theirs,
                against="plotext",
                unit="CPU ms",
                at_most=most,
                cause="measured: a fifth each is dots, characters, and the cells that lines share",
            )
        if count == MANY_SERIES:
            report.figure(f"{name}: alone", statistics.median(mine), unit="CPU ms", at_most=60)
    report.close()


if __name__ == "__main__":
    main()
