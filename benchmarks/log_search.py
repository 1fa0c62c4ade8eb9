"""Search, filters and keys in a log of half a million lines.

Plain searches are compared with loops over a list of the same lines. For each action of a user, the time to
paint and the time to completion are measured; then keys while 5,000 lines a second arrive.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from statistics import median

from harness import Figure, cpu_ms, measure_in_turn
from log_lines import MakeLines, make_lines, make_mixed
from log_view import BATCH_LINES
from one_widget import SIZE, OneWidget, Stalls, wait_until_painted

from tui.analysis.logs.pattern import LogPattern
from tui.system.garbage import collect_only_when_idle
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.rows import LogRows
from tui.widgets.log_view.search import LogSearch
from tui.widgets.log_view.view import LogView

LINES = 500_000
"""The maximum of the view, so that new lines drop the oldest."""
LINES_PER_S, BATCHES_PER_S, LIVE_S = 5_000, 20, 5
RARE, DENSE = "step 77", "loss"
SEARCHED = ("out of memory", "'loss': 9", "step 999999", RARE)
"""The first two texts are in no line, but each line has all characters of the second."""
STALL_CAUSE = (
    "a slice of filtering and folding may take 8 ms and its last piece 2 more, the watcher needs up to three"
    " turns of the event loop to wake, and a paint of the screen comes between them"
)


async def figures() -> AsyncIterator[Figure]:
    """Fill the log, search, use and follow it: with lines of one kind, then of all kinds."""
    collect_only_when_idle()
    for make in (make_lines, make_mixed):
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
                for figure in search_figures(view, texts):
                    yield figure
            texts.clear()  # the list must not count in the measurements
            async for figure in action_figures(view):
                yield figure
            async for figure in live_figures(view, make):
                yield figure


def search_figures(view: LogView, texts: list[str]) -> Iterator[Figure]:
    """Compare finding all matches of a text with a loop; the shortest of several rounds counts."""
    rows = LogRows(view.store, LogOptions())
    while not rows.build(lambda: True):
        pass

    for text in SEARCHED:
        programs: dict[str, Callable[[], object]] = {
            # A new search each time, because a search caches its counts.
            "ours": lambda text=text: LogSearch(rows, LogPattern(text, case=True)).search_blocks(
                lambda: True
            ),
            "loop": lambda text=text: [line for line in texts if text in line],
        }
        times_ms = {
            name: min(times) for name, times in measure_in_turn(programs, rounds=5, measure=cpu_ms).items()
        }
        yield Figure(
            f"plain search for {text!r} ({times_ms['ours']:.0f} ms), × loop",
            times_ms["ours"] / times_ms["loop"],
            at_most=1.0,
            cause="all of it is bytes.find, which tests each of the many quotes of a line as the loop does",
        )


async def action_figures(view: LogView) -> AsyncIterator[Figure]:
    """Yield the worst stall of each action, and the times until it is painted and completed."""

    def show(**options: object) -> Callable[[], object]:
        return lambda: setattr(view, "options", LogOptions(**options))

    actions: dict[str, Callable[[], object]] = {
        "first line": view.action_oldest_line,
        "page down": lambda: view.action_scroll_pages(1),
        "last line": view.action_newest_line,
        "find a rare text": lambda: view.find(LogPattern(RARE)),
        "find on every line": lambda: view.find(LogPattern(DENSE)),
        "next match": lambda: view.action_go_to_match(1),
        "end the search": lambda: view.find(None),
        "filter: one node": show(nodes=frozenset({"node-1"})),
        "filter: rare text": show(pattern=LogPattern(RARE)),
        "filter: errors": show(min_level="ERROR"),
        "no filter": show(),
        "jump a minute back": lambda: view.viewport.jump(-60),
        "wrapped": show(wrap=True),
        "not wrapped": show(),
        "find backwards from the end": lambda: view.action_go_to_match(-1),
        "first error": lambda: view.viewport.go_to(view.store.first_error),
        "next error": view.viewport.next_error,
        "bars unfolded": show(collapse_progress=False),
        "bars folded": show(),
    }
    for name, act in actions.items():
        async with Stalls() as stalls:
            started_s = time.perf_counter()
            act()
            await wait_until_painted(view)
            seen_ms = (time.perf_counter() - started_s) * 1000
            await view.workers.wait_for_complete()
            while not view.model.rows.is_complete:  # noqa: ASYNC110 (every millisecond counts here)
                await asyncio.sleep(0.001)
            done_ms = (time.perf_counter() - started_s) * 1000
        yield Figure(
            f"{name}: painted after {seen_ms:.0f} ms, done after {done_ms:.0f} ms; "
            f"worst stall ({stalls.wall_ms:.0f} ms by the clock), CPU ms",
            stalls.cpu_ms,
            at_most=50,
            cause=STALL_CAUSE,
        )
    view.viewport.follow = True


async def live_figures(view: LogView, make: MakeLines) -> AsyncIterator[Figure]:
    """Measure keys and stalls while lines arrive, including garbage collection."""
    first = len(view.store) + view.store.dropped
    batch = LINES_PER_S // BATCHES_PER_S
    keys: list[float] = []
    async with Stalls() as stalls:
        for number in range(LIVE_S * BATCHES_PER_S):
            view.store.append(make(LINES, first + number * batch, first + (number + 1) * batch))
            started_s, started_cpu_s = time.perf_counter(), time.thread_time()
            if number % 4 == 3:
                view.action_newest_line()
            else:
                view.action_scroll_pages(-1)
            await wait_until_painted(view)
            keys.append((time.thread_time() - started_cpu_s) * 1000)
            await asyncio.sleep(max(0.0, 1 / BATCHES_PER_S - (time.perf_counter() - started_s)))
    yield Figure("key to paint at 5,000 lines/s, median CPU ms", median(keys), at_most=50)
    yield Figure("key to paint at 5,000 lines/s, worst CPU ms", max(keys), at_most=50)
    title = f"worst stall at 5,000 lines/s ({view.store.dropped:,} lines left), CPU ms"
    yield Figure(title, stalls.cpu_ms, at_most=50)
