"""What the log view costs beside textual's own logs, in one run: ``python benchmarks/log_view.py``.

Prints lines a second while appending with painting going on, CPU milliseconds of a jump with its
paint, the worst stall of the event loop, and bytes held a line, for lines that are all alike and for a mix
of all that jobs print: other scripts, colors, JSON, tracebacks, progress bars. Wanted: appending at 20 ×
RichLog or more, no stall over 50 ms, 250 bytes a line at most.
"""

# ruff: noqa: T201 (what a benchmark prints is its product)

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from textual.widget import Widget
from textual.widgets import Log, RichLog

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import Report
from log_lines import MakeLines, make_lines, make_mixed
from one_widget import OneWidget, Stalls, painted

from api_client.models.logs import LogLine
from tui.widgets.log_view.view import LogView

SIZE = (120, 40)
BATCH_LINES = 1_000
LINES = 100_000
RICH_LOG_LINES = 5_000  # it is too slow for more
JUMPS = 20
ROUNDS = 2
STALL_CAUSE = (
    "measured: 1,000 lines, 5 to 12 ms, are appended in every turn of the event loop, and the watcher needs"
    " up to three turns to wake, beside a paint"
)
APPEND_CAUSE = (
    "profiled: a third looks for folds (tracebacks, bars, repeats), a seventh finds levels, a third paints;"
    " on a busy machine the ratio moves between 17 and 22 from round to round"
)
REPORT = Report("log_view")


async def measure(
    widget: Widget,
    lines: list[LogLine],
    write: Callable[[list[LogLine]], None],
    jump: Callable[[float], None],
) -> tuple[float, float, float]:
    """Lines a second of CPU, CPU milliseconds a jump, worst stall in CPU ms while appending."""
    app = OneWidget(widget)
    async with app.run_test(size=SIZE) as pilot:
        widget.focus()
        await pilot.pause()
        gc.collect()
        gc.freeze()  # the lines still to come, and what earlier rounds left, are no garbage of this widget
        stalls = Stalls()
        watcher = asyncio.create_task(stalls.watch())
        begin = time.process_time()
        for first in range(0, len(lines), BATCH_LINES):
            write(lines[first : first + BATCH_LINES])
            await asyncio.sleep(0)
        await painted(widget)
        rate = len(lines) / (time.process_time() - begin)
        watcher.cancel()
        places = random.Random(5)
        times = []
        for _ in range(JUMPS):
            begin = time.process_time()
            jump(places.random())
            await painted(widget)
            times.append((time.process_time() - begin) * 1000)
        return rate, statistics.median(times), stalls.cpu_ms


async def measure_view(lines: list[LogLine]) -> tuple[float, float, float]:
    """The log view."""
    view = LogView()
    first, last = lines[0].timestamp_ns, lines[-1].timestamp_ns

    def jump(share: float) -> None:
        view.viewport.go_to_time(int(first + share * (last - first)))

    return await measure(view, lines, view.store.append, jump)


async def measure_log(lines: list[LogLine]) -> tuple[float, float, float]:
    """Textual's Log, fed in batches."""
    log = Log()

    def write(batch: list[LogLine]) -> None:
        log.write_lines([line.message for line in batch])

    def jump(share: float) -> None:
        log.scroll_to(y=share * log.max_scroll_y, animate=False, immediate=True)

    return await measure(log, lines, write, jump)


async def measure_rich_log(lines: list[LogLine]) -> tuple[float, float, float]:
    """Textual's RichLog, a line at a time, as it has no other way."""
    log = RichLog()

    def write(batch: list[LogLine]) -> None:
        for line in batch:
            log.write(line.message)

    def jump(share: float) -> None:
        log.scroll_to(y=share * log.max_scroll_y, animate=False, immediate=True)

    return await measure(log, lines, write, jump)


async def bytes_a_line(make: MakeLines) -> float:
    """Bytes the view holds a line, its text included."""
    view = LogView()
    async with OneWidget(view).run_test(size=SIZE) as pilot:
        await pilot.pause()
        gc.collect()
        tracemalloc.start()
        for first in range(0, LINES, BATCH_LINES):
            view.store.append(make(LINES, first, first + BATCH_LINES))
            await asyncio.sleep(0)
        await pilot.pause()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return held / LINES


async def main() -> None:
    """Lines that are all alike, then a mix."""
    await compared(make_lines, "lines all alike")
    await compared(make_mixed, "lines of all kinds")
    REPORT.close()


async def compared(make: MakeLines, which: str) -> None:
    """Measure in turn and print."""
    print(f"--- {which}")
    lines = make(LINES)
    results: dict[str, list[tuple[float, float, float]]] = {"LogView": [], "Log": [], "RichLog": []}
    for _ in range(ROUNDS):
        results["LogView"].append(await measure_view(lines))
        results["Log"].append(await measure_log(lines))
        results["RichLog"].append(await measure_rich_log(lines[:RICH_LOG_LINES]))
    medians = {
        name: tuple(statistics.median(column) for column in zip(*rounds, strict=True))
        for name, rounds in results.items()
    }
    rich_rate, rich_jump, _ = medians["RichLog"]
    print(f"{'':<10}{'lines/s':>12}{'× RichLog':>11}{'jump ms':>9}{'ratio':>7}{'stall ms':>10}")
    for name, (rate, jump, stall) in medians.items():
        ratios = f"{rate / rich_rate:>11.1f}{jump:>9.1f}{jump / rich_jump:>7.2f}"
        print(f"{name:<10}{rate:>12,.0f}{ratios}{stall:>10.0f}")
    rate, _, stall = medians["LogView"]
    held = await bytes_a_line(make)
    REPORT.figure(f"append, × RichLog.write, {which}", rate / rich_rate, at_least=20, cause=APPEND_CAUSE)
    REPORT.figure(f"bytes a line, text included, {which}", held, at_most=250)
    REPORT.figure(f"worst stall while appending, ms, {which}", stall, at_most=50, cause=STALL_CAUSE)


if __name__ == "__main__":
    asyncio.run(main())
