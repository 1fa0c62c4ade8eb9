"""Search, filters and keys in a long log, in one run: ``python benchmarks/log_search.py``.

A million lines are held by the view, and looked through as plain loops over a list of them do. Then
lines come at 5,000 a second while the reader moves about. Wanted: a plain search in half the loop's
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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from log_view import BATCH_LINES, SIZE, OneWidget, make_lines, painted, reached, watch_stalls

from tui.insight.log_pattern import LogPattern
from tui.widgets.log_view.hits import Hits
from tui.widgets.log_view.line_filter import LineFilter
from tui.widgets.log_view.rows import VisibleRows
from tui.widgets.log_view.view import LogView

LINES = 1_000_000
IN_MEMORY = 200_000
ROUNDS = 5
LINES_PER_S = 5_000
BATCHES_PER_S = 20
LIVE_S = 5
RARE = "step 77"
ABSENT = "out of memory"
DENSE = "loss"


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
    visible = VisibleRows(view.store)  # everything passes

    def ours(pattern: LogPattern) -> float:
        return time_of(lambda: Hits(view.store, visible, pattern).count(lambda: True))

    for text in (ABSENT, "step 999999", RARE):
        loop = time_of(lambda text=text: [one for one in texts if text in one])
        took = ours(LogPattern(text, case=True))
        reached(f"plain search for {text!r} ({took * 1000:.0f} ms), × loop", took / loop, at_most=0.5)
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
    """The worst stall of each thing that a reader does with a million lines, and how soon it is seen."""

    async def timed(what: str, act: Callable[[], object]) -> None:
        worst = [0.0]
        watcher = asyncio.create_task(watch_stalls(worst))
        await asyncio.sleep(0)
        begin = time.perf_counter()
        act()
        await painted(view)
        seen_ms = (time.perf_counter() - begin) * 1000
        await view.workers.wait_for_complete()
        while not view.is_settled:  # noqa: ASYNC110 (every turn counts here)
            await asyncio.sleep(0)
        done_ms = (time.perf_counter() - begin) * 1000
        watcher.cancel()
        reached(
            f"{what}: painted after {seen_ms:.0f} ms, done after {done_ms:.0f} ms; worst stall, ms",
            worst[0],
            at_most=50,
        )

    await timed("first line", view.action_first)
    await timed("page down", lambda: view.action_scroll_pages(1))
    await timed("last line", view.action_last)
    await timed("find a rare text", lambda: view.find(LogPattern(RARE)))
    await timed("find on every line", lambda: view.find(LogPattern(DENSE)))
    await timed("next match", view.action_next_match)
    await timed("end the search", lambda: view.find(None))
    await timed("filter: one node", lambda: view.set_filter(LineFilter(frozenset({"node-1"}))))
    await timed("filter: rare text", lambda: view.set_filter(LineFilter(pattern=LogPattern(RARE))))
    await timed("filter: errors", lambda: view.set_filter(LineFilter(min_level="ERROR")))
    await timed("no filter", lambda: view.set_filter(LineFilter()))
    await timed("jump an hour back", lambda: view.jump(-3600))


async def live(view: LogView) -> None:
    """Keys and stalls while lines come; the collector of garbage counts."""
    first = view.line_count
    collected: list[float] = []
    begun = [0.0]

    def on_collection(phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            begun[0] = time.perf_counter()
        else:
            collected.append((time.perf_counter() - begun[0]) * 1000)

    batch = LINES_PER_S // BATCHES_PER_S
    gc.callbacks.append(on_collection)
    worst = [0.0]
    watcher = asyncio.create_task(watch_stalls(worst))
    keys: list[float] = []
    for number in range(LIVE_S * BATCHES_PER_S):
        view.append(make_lines(LINES, first + number * batch, first + (number + 1) * batch))
        begin = time.perf_counter()
        if number % 4 == 3:
            view.action_last()
        else:
            view.action_scroll_pages(-1)
        await painted(view)
        keys.append((time.perf_counter() - begin) * 1000)
        await asyncio.sleep(max(0.0, 1 / BATCHES_PER_S - (time.perf_counter() - begin)))
    watcher.cancel()
    gc.callbacks.remove(on_collection)
    print(f"collector: {len(collected)} times, {max(collected, default=0):.1f} ms at most")
    reached("key to paint at 5,000 lines/s, median ms", statistics.median(keys), at_most=50)
    reached("key to paint at 5,000 lines/s, worst ms", max(keys), at_most=50)
    reached("worst stall at 5,000 lines/s, ms", worst[0], at_most=50)


async def main() -> None:
    """Fill, look for, read, and follow."""
    gc.freeze()  # as the dashboard does when it starts
    view = LogView(max_lines=IN_MEMORY)
    async with OneWidget(view).run_test(size=SIZE) as pilot:
        view.focus()
        await pilot.pause()
        texts: list[str] = []
        for first in range(0, LINES, BATCH_LINES):
            lines = make_lines(LINES, first, first + BATCH_LINES)
            texts += [line.message for line in lines]
            view.append(lines)
            await asyncio.sleep(0)
        print(f"{view.line_count:,} lines, {view.store.spilled_lines:,} of them in the file")
        print("with most lines in the file:")
        searches(view, texts)
        await used(view)
        texts.clear()  # a list of a million is no part of what is measured
        await live(view)
        texts = [line.message for line in make_lines(LINES)]
        whole = LogView(max_lines=2 * LINES)
        for first in range(0, LINES, BATCH_LINES):
            whole.append(make_lines(LINES, first, first + BATCH_LINES))
        print("with all lines in memory:")
        searches(whole, texts)


if __name__ == "__main__":
    asyncio.run(main())
