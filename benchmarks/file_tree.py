"""What the tree of files costs beside textual's own Tree, in one run: ``python benchmarks/file_tree.py``.

Prints, for 100,000 cache files: CPU milliseconds until the first page is painted and until all is open, the
worst stall of the event loop, a filter, a sort, and a jump with its paint. Wanted: filling in a tenth of an
eager Tree's time, no stall over 50 ms.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.widgets import Tree

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Report
from one_widget import OneWidget, Stalls, painted

from tui.analysis.file_tree.rows import Order, SortKey
from tui.analysis.file_tree.tree import FileEntry
from tui.widgets.file_tree import FileTreeView

SIZE = (120, 40)
FILES = 100_000
JUMPS = 20
NEWEST_S = 1_700_000_000.0
WANTED_RATIO = 0.1
WANTED_STALL_MS = 50.0
STALL_CAUSE = "a step that is done in one go: sorting one folder, or the collector's run"


def cache_files(count: int) -> list[FileEntry]:
    """Files as a Hugging Face cache has them: some models, many shards and samples."""
    sizes = random.Random(7)
    return [
        FileEntry(
            f"hub/models--org{n % 7}--name{n % 50}/snapshots/{n % 90:040x}/part-{n:06}.safetensors",
            sizes.randrange(10**9),
            NEWEST_S - n,
        )
        for n in range(count)
    ]


async def timed(what: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """CPU milliseconds of it (other programs run beside), and the worst stall meanwhile."""
    gc.collect()
    stalls = Stalls()
    watcher = asyncio.create_task(stalls.watch())
    await asyncio.sleep(0)
    begin = time.process_time()
    await what()
    took_ms = (time.process_time() - begin) * 1000
    watcher.cancel()
    return took_ms, stalls.cpu_ms


async def measure_view(files: list[FileEntry], report: Report) -> tuple[float, float]:
    """Our tree; returns the milliseconds until it can be browsed, and until all is open."""
    view = FileTreeView()
    async with OneWidget(view).run_test(size=SIZE) as pilot:
        view.focus()
        await pilot.pause()

        async def settle() -> None:
            while view.is_busy:  # noqa: ASYNC110 (every millisecond counts here)
                await asyncio.sleep(0.001)
            await painted(view)

        async def fill() -> None:
            view.set_entries(files)
            await settle()

        async def open_all() -> None:
            view.open_below()
            await settle()

        async def narrow() -> None:
            view.set_pattern("part-0123")
            await settle()

        async def widen() -> None:
            view.set_pattern("")
            await settle()

        async def sort() -> None:
            view.set_order(Order(SortKey.SIZE, descending=True))
            await settle()

        async def again() -> None:
            view.set_entries(list(files))
            await settle()

        steps = (
            ("first page", fill),
            ("all open", open_all),
            ("filter", narrow),
            ("filter off", widen),
            ("sort", sort),
            ("newer files", again),
        )
        took: dict[str, float] = {}
        for name, step in steps:
            took_ms, stall_ms = await timed(step)
            took[name] = took_ms
            report.figure(f"{name}, CPU", took_ms, unit="ms")
            report.figure(
                f"{name}, worst stall", stall_ms, unit="ms", at_most=WANTED_STALL_MS, cause=STALL_CAUSE
            )
        jumps = []
        places = random.Random(5)
        for _ in range(JUMPS):
            begin = time.process_time()
            view.scroll_to(y=places.random() * view.max_scroll_y, animate=False, immediate=True)
            await painted(view)
            jumps.append((time.process_time() - begin) * 1000)
        report.figure("jump", statistics.median(jumps), unit="CPU ms", at_most=50)
        return took["first page"], took["first page"] + took["all open"]


async def measure_tree(files: list[FileEntry]) -> float:
    """Textual's Tree, filled at once and expanded; returns milliseconds."""
    tree: Tree[None] = Tree("cache")
    async with OneWidget(tree).run_test(size=SIZE) as pilot:
        await pilot.pause()

        async def fill() -> None:
            folders = {"": tree.root}
            for file in files:
                path, _, name = file.path.rpartition("/")
                node = folders.get(path)
                if node is None:
                    node, so_far = tree.root, ""
                    for part in path.split("/"):
                        so_far = f"{so_far}/{part}" if so_far else part
                        known = folders.get(so_far)
                        node = known if known is not None else node.add(part, expand=True)
                        folders[so_far] = node
                node.add_leaf(name)
            tree.root.expand()
            await painted(tree)

        took_ms, _stall_ms = await timed(fill)
        return took_ms


async def main() -> None:
    """Both, and their ratio."""
    files = cache_files(FILES)
    report = Report("file_tree")
    browsable, all_open = await measure_view(files, report)
    theirs = await measure_tree(files)
    against = "textual's Tree, eager"
    name = f"{FILES:,} files, browsable"
    report.compare(name, browsable, theirs, against=against, unit="CPU ms", at_most=WANTED_RATIO)
    report.compare(f"{FILES:,} files, all open", all_open, theirs, against=against, unit="CPU ms")
    report.close()


if __name__ == "__main__":
    asyncio.run(main())
