"""Appending to the log view, compared with Textual's RichLog.

Lines a second while the view paints, the worst stall of the event loop, and memory per line; for lines of one
kind, and for a mix of all kinds that jobs print: other scripts, colors, JSON, tracebacks, progress bars.
"""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from statistics import median

from harness import Figure
from log_lines import MakeLines, make_lines, make_mixed
from one_widget import SIZE, OneWidget, Stalls, wait_until_painted
from textual.widget import Widget
from textual.widgets import RichLog

from api_client.models.logs import LogLine
from tui.widgets.log_view.view import LogView

BATCH_LINES = 1_000
LINES, RICH_LOG_LINES = 100_000, 5_000  # RichLog is too slow for more lines
ROUNDS = 2
STALL_CAUSE = (
    "measured: 1,000 lines, 5 to 12 ms, are appended in every turn of the event loop, and the watcher needs"
    " up to three turns to wake, beside a paint"
)
APPEND_CAUSE = (
    "profiled: a third looks for folds (tracebacks, bars, repeats), a seventh finds levels, a third paints;"
    " on a busy machine the ratio moves between 17 and 22 from round to round"
)


async def figures() -> AsyncIterator[Figure]:
    """Measure with lines of one kind, then with a mix."""
    for make, kind in ((make_lines, "lines all alike"), (make_mixed, "lines of all kinds")):
        lines = make(LINES)
        our_rates, stalls, their_rates = [], [], []
        for _ in range(ROUNDS):
            view, log = LogView(), RichLog()
            lines_per_s, stall_ms = await append_figures(view, lines, view.store.append)
            our_rates.append(lines_per_s)
            stalls.append(stall_ms)

            def write(batch: list[LogLine], log: RichLog = log) -> None:
                for line in batch:
                    log.write(line.message)

            their_rates.append((await append_figures(log, lines[:RICH_LOG_LINES], write))[0])
        ratio = median(our_rates) / median(their_rates)
        line_bytes = await bytes_per_line(make)
        yield Figure(f"append, × RichLog.write, {kind}", ratio, at_least=20, cause=APPEND_CAUSE)
        yield Figure(f"bytes a line, text included, {kind}", line_bytes, at_most=250)
        title = f"worst stall while appending, ms, {kind}"
        yield Figure(title, median(stalls), at_most=50, cause=STALL_CAUSE)


async def append_figures(
    widget: Widget, lines: list[LogLine], write: Callable[[list[LogLine]], None]
) -> tuple[float, float]:
    """Return the lines appended per second of CPU time, and the worst stall (ms)."""
    async with OneWidget(widget).run_test(size=SIZE) as pilot:
        widget.focus()
        await pilot.pause()
        gc.collect()
        gc.freeze()  # exclude the lines to append, and objects of earlier rounds, from garbage collection
        async with Stalls() as stalls:
            started_cpu_s = time.process_time()
            for first in range(0, len(lines), BATCH_LINES):
                write(lines[first : first + BATCH_LINES])
                await asyncio.sleep(0)
            await wait_until_painted(widget)
            lines_per_s = len(lines) / (time.process_time() - started_cpu_s)
    return lines_per_s, stalls.cpu_ms


async def bytes_per_line(make: MakeLines) -> float:
    """Return the memory of the view per line, including the text."""
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
        total_bytes = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return total_bytes / LINES
