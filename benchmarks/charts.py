"""CPU time to draw one frame of a live chart, compared with plotext on the same data."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import partial
from statistics import median

import plotext
from harness import Figure, compared, cpu_ms, measure_in_turn

from tui.analysis.series import Series
from tui.widgets.charts.picture import draw_picture
from tui.widgets.charts.spec import ChartSpec

WIDTH, HEIGHT = 120, 30
POINTS = 500
SPAN_S = 1800.0
END = 1_700_000_000.0


def figures() -> Iterator[Figure]:
    """Measure both in turn, with 1, 8 and 64 lines."""
    for count in (1, 8, 64):
        series = make_series(count)
        programs = {"ours": partial(our_frame, series), "plotext": partial(plotext_frame, series)}
        times = measure_in_turn(programs, rounds=7, measure=cpu_ms)
        name = f"chart of {count} × {POINTS} samples, {WIDTH}×{HEIGHT} cells, a frame"
        yield compared(
            name,
            times["ours"],
            times["plotext"],
            "plotext",
            unit="CPU ms",
            at_most=0.1 if count == 8 else None,
            cause="measured: a fifth each is dots, characters, and the cells that lines share",
        )
    yield Figure(f"{name}: alone", median(times["ours"]), unit="CPU ms", at_most=60)


def make_series(count: int) -> list[Series]:
    """Return noisy, drifting fractions (0–1) of ``count`` nodes."""
    noise = random.Random(7)
    times = tuple(END - SPAN_S + index * SPAN_S / (POINTS - 1) for index in range(POINTS))

    def fraction(node: int, index: int) -> float:
        return min(1.0, max(0.0, 0.5 + 0.4 * math.sin(index / 60 + node) + noise.gauss(0, 0.05)))

    return [
        Series(f"node-{node}", times, tuple(fraction(node, index) for index in range(POINTS)))
        for node in range(count)
    ]


def our_frame(series: list[Series]) -> None:
    """Draw a frame of our chart."""
    draw_picture(series, ChartSpec("GPU utilization", END - SPAN_S, END, 0.0, 1.0), WIDTH, HEIGHT)


def plotext_frame(series: list[Series]) -> None:
    """Draw a frame of plotext with the same size and data."""
    figure = plotext.figure
    figure.clear()
    figure.plot_size(WIDTH, HEIGHT)
    for line in series:
        signal = figure.signal(list(line.times), list(line.values), marker="braille")
        signal.lines()
        signal.label(line.name)
        figure.draw(signal)
    figure.build()
