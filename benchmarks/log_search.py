"""Search, filters and keys in a long log, in one run: ``python benchmarks/log_search.py``.

Half a million lines are held by the view, and looked through as plain loops over a list of them do. Then
lines come at 5,000 a second while the reader moves about. Wanted: a plain search in the loop's
time, the first match at once, and no stall over 50 ms.
"""

# ruff: noqa: T201 (what a benchmark prints is its product)

from __future__ import annotations

import asyncio
import gc
import re
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import Report
from log_lines import MakeLines, make_lines, make_mixed
from log_view import BATCH_LINES, SIZE
from one_widget import OneWidget, Stalls, painted

from tui.analysis.logs.pattern import LogPattern
from tui.system.garbage import collect_only_when_idle
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.rows import LogRows
from tui.widgets.log_view.search import LogSearch
from tui.widgets.log_view.view import LogView

LINES = 500_000
"""As many as are kept: the oldest leave as soon as lines come."""
ROUNDS = 5
LINES_PER_S = 5_000
BATCHES_PER_S = 20
LIVE_S = 5
RARE = "step 77"
ABSENT = "out of memory"
NEARLY = "'loss': 9"
"""Absent too, but every line holds all its letters."""
DENSE = "loss"
STALL_CAUSE = (
    "a slice of filtering and folding may take 8 ms and its last piece 2 more, the watcher needs up to three"
    " turns of the event loop to wake, and a paint of the screen comes between them"
)
REPORT = Report("log_search")


def time_of(work: Callable[[], object]) -> float:
    """The least CPU seconds of some rounds: what else the machine does must not decide."""
    times = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def searches(view: LogView, texts: list[str]) -> None:
    """All matches of some patterns against the same by loop."""
    rows = LogRows(view.store, LogOptions())
    while not rows.build(lambda: True):
        pass

    def ours(pattern: LogPattern) -> float:
        return time_of(lambda: LogSearch(rows, pattern).count(lambda: True))

    for text in (ABSENT, NEARLY, "step 999999", RARE):
        loop = time_of(lambda text=text: [one for one in texts if text in one])
        took = ours(LogPattern(text, case=True))
        REPORT.figure(
            f"plain search for {text!r} ({took * 1000:.0f} ms), × loop",
            took / loop,
            at_most=1.0,
            cause="all of it is bytes.find, which tests each of the many quotes of a line as the loop does",
        )
    lowered = time_of(lambda: [one for one in texts if ABSENT in one.lower()])
    print(f"case ignored: {ours(LogPattern(ABSENT)) / lowered:.2f} × loop")
    expression = re.compile("out of [a-z]+ry")
    loop = time_of(lambda: [one for one in texts if expression.search(one)])
    print(f"expression: {ours(LogPattern(expression.pattern, regex=True)) / loop:.2f} × loop")
    loop = time_of(lambda: [one for one in texts if DENSE in one])
    print(
        f"a match on every line: {ours(LogPattern(DENSE, case=True)) / loop:.2f} × loop (counted in slices)"
    )


async def used(view: LogView) -> None:
    """The worst stall of each thing that a reader does with so many lines, and how soon it is seen."""

    async def timed(what: str, act: Callable[[], object]) -> None:
        stalls = Stalls()
        watcher = asyncio.create_task(stalls.watch())
        await asyncio.sleep(0)
        begin = time.perf_counter()
        act()
        await painted(view)
        seen_ms = (time.perf_counter() - begin) * 1000
        await view.workers.wait_for_complete()
        while not view.model.rows.is_complete:  # noqa: ASYNC110 (every millisecond counts here)
            await asyncio.sleep(0.001)
        done_ms = (time.perf_counter() - begin) * 1000
        watcher.cancel()
        REPORT.figure(
            f"{what}: painted after {seen_ms:.0f} ms, done after {done_ms:.0f} ms; "
            f"worst stall ({stalls.wall_ms:.0f} ms by the clock), CPU ms",
            stalls.cpu_ms,
            at_most=50,
            cause=STALL_CAUSE,
        )

    def show(options: LogOptions) -> None:
        view.options = options

    await timed("first line", view.action_oldest_line)
    await timed("page down", lambda: view.action_scroll_pages(1))
    await timed("last line", view.action_newest_line)
    await timed("find a rare text", lambda: view.find(LogPattern(RARE)))
    await timed("find on every line", lambda: view.find(LogPattern(DENSE)))
    await timed("next match", partial(view.action_go_to_match, 1))
    await timed("end the search", lambda: view.find(None))
    await timed("filter: one node", lambda: show(LogOptions(nodes=frozenset({"node-1"}))))
    await timed("filter: rare text", lambda: show(LogOptions(pattern=LogPattern(RARE))))
    await timed("filter: errors", lambda: show(LogOptions(min_level="ERROR")))
    await timed("no filter", lambda: show(LogOptions()))
    await timed("jump a minute back", lambda: view.viewport.jump(-60))
    await timed("wrapped", lambda: show(LogOptions(wrap=True)))
    await timed("not wrapped", lambda: show(LogOptions()))
    await timed("find backwards from the end", partial(view.action_go_to_match, -1))
    await timed("first error", lambda: view.viewport.go_to(view.store.first_error))
    await timed("next error", view.viewport.next_error)
    await timed("bars unfolded", lambda: show(LogOptions(collapse_progress=False)))
    await timed("bars folded", lambda: show(LogOptions()))
    view.viewport.follow = True


async def live(view: LogView, make: MakeLines) -> None:
    """Keys and stalls while lines come; the collector of garbage counts."""
    first = len(view.store) + view.store.dropped
    collected: list[float] = []
    begun = [0.0]

    def on_collection(phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            begun[0] = time.perf_counter()
        else:
            collected.append((time.perf_counter() - begun[0]) * 1000)

    batch = LINES_PER_S // BATCHES_PER_S
    gc.callbacks.append(on_collection)
    stalls = Stalls()
    watcher = asyncio.create_task(stalls.watch())
    keys: list[float] = []
    for number in range(LIVE_S * BATCHES_PER_S):
        view.store.append(make(LINES, first + number * batch, first + (number + 1) * batch))
        begin, begin_cpu = time.perf_counter(), time.thread_time()
        if number % 4 == 3:
            view.action_newest_line()
        else:
            view.action_scroll_pages(-1)
        await painted(view)
        keys.append((time.thread_time() - begin_cpu) * 1000)
        await asyncio.sleep(max(0.0, 1 / BATCHES_PER_S - (time.perf_counter() - begin)))
    watcher.cancel()
    gc.callbacks.remove(on_collection)
    print(f"collector: {len(collected)} times, {max(collected, default=0):.1f} ms at most")
    REPORT.figure("key to paint at 5,000 lines/s, median CPU ms", statistics.median(keys), at_most=50)
    REPORT.figure("key to paint at 5,000 lines/s, worst CPU ms", max(keys), at_most=50)
    REPORT.figure(
        f"worst stall at 5,000 lines/s ({view.store.dropped:,} lines left), CPU ms", stalls.cpu_ms, at_most=50
    )


async def main() -> None:
    """Fill, look for, read, and follow: lines that are all alike, then lines of all kinds."""
    collect_only_when_idle()
    for name, make in (("lines that are all alike", make_lines), ("lines of all kinds", make_mixed)):
        print(f"--- {name}")
        await gone_through(make)
    REPORT.close()


async def gone_through(make: MakeLines) -> None:
    """One kind of lines."""
    view = LogView(options=LogOptions(max_lines=LINES))
    async with OneWidget(view).run_test(size=SIZE) as pilot:
        view.focus()
        await pilot.pause()
        texts: list[str] = []
        for first in range(0, LINES, BATCH_LINES):
            lines = make(LINES, first, first + BATCH_LINES)
            texts += [line.message for line in lines]
            view.store.append(lines)
            await asyncio.sleep(0)
        if make is make_lines:
            searches(view, texts)
        texts.clear()  # that list is no part of what is measured
        await used(view)
        await live(view, make)


if __name__ == "__main__":
    asyncio.run(main())
