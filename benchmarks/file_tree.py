"""The file tree with 100,000 cache files, compared with Textual's Tree.

CPU time to paint the first page, all directories open, a filter, a sort and a jump; and the worst stall of
the event loop in each of these.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Callable
from functools import cache, partial
from statistics import median

from harness import Figure, cpu_ms_to_paint
from one_widget import SIZE, OneWidget, Stalls, wait_until_painted
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from tui.analysis.file_tree.rows import Order, SortKey
from tui.analysis.file_tree.tree import FileEntry
from tui.widgets.file_tree import FileTreeView

FILES = 100_000
NEWEST_S = 1_700_000_000.0
STALL_CAUSE = "a step that is done in one go: sorting one folder, or the collector's run"


async def figures() -> AsyncIterator[Figure]:
    """Measure both trees."""
    sizes = random.Random(7)
    files = [
        FileEntry(
            f"hub/models--org{n % 7}--name{n % 50}/snapshots/{n % 90:040x}/part-{n:06}.safetensors",
            sizes.randrange(10**9),
            NEWEST_S - n,
        )
        for n in range(FILES)
    ]
    times_ms: dict[str, float] = {}
    async for figure in our_tree_figures(files):
        times_ms[figure.name] = figure.ours
        yield figure
    textual_ms, other_program = await textual_tree_ms(files), "textual's Tree, eager"
    first_page_ms = times_ms["first page, CPU"]
    yield Figure(
        f"{FILES:,} files, browsable", first_page_ms, textual_ms, other_program, "CPU ms", at_most=0.1
    )
    yield Figure(
        f"{FILES:,} files, all open",
        first_page_ms + times_ms["all open, CPU"],
        textual_ms,
        other_program,
        "CPU ms",
    )


async def our_tree_figures(files: list[FileEntry]) -> AsyncIterator[Figure]:
    """Measure actions on our tree, one after the other."""
    view = FileTreeView()
    actions: dict[str, Callable[[], object]] = {
        "first page": lambda: view.set_entries(files),
        "all open": view.open_below,
        "filter": lambda: view.set_pattern("part-0123"),
        "filter off": lambda: view.set_pattern(""),
        "sort": lambda: view.set_order(Order(SortKey.SIZE, descending=True)),
        "newer files": lambda: view.set_entries(list(files)),
    }

    async def wait_until_arranged() -> None:
        while view.is_busy:  # noqa: ASYNC110 (every millisecond counts here)
            await asyncio.sleep(0.001)
        await wait_until_painted(view)

    async with OneWidget(view).run_test(size=SIZE) as pilot:
        view.focus()
        await pilot.pause()
        for name, act in actions.items():
            gc.collect()
            async with Stalls() as stalls:
                took_ms = await cpu_ms_to_paint(act, wait_until_arranged)
            yield Figure(f"{name}, CPU", took_ms, unit="ms")
            yield Figure(f"{name}, worst stall", stalls.cpu_ms, unit="ms", at_most=50, cause=STALL_CAUSE)
        positions = random.Random(5)
        jumps = []
        for _ in range(20):
            y = positions.random() * view.max_scroll_y
            jump = partial(view.scroll_to, y=y, animate=False, immediate=True)
            jumps.append(await cpu_ms_to_paint(jump, partial(wait_until_painted, view)))
        yield Figure("jump", median(jumps), unit="CPU ms", at_most=50)


async def textual_tree_ms(files: list[FileEntry]) -> float:
    """Return the CPU time to fill and expand Textual's Tree."""
    tree: Tree[None] = Tree("cache")

    @cache
    def folder(path: str) -> TreeNode[None]:
        parent, _, name = path.rpartition("/")
        return folder(parent).add(name, expand=True) if path else tree.root

    def fill() -> None:
        for file in files:
            path, _, name = file.path.rpartition("/")
            folder(path).add_leaf(name)
        tree.root.expand()

    async with OneWidget(tree).run_test(size=SIZE) as pilot:
        await pilot.pause()
        gc.collect()
        return await cpu_ms_to_paint(fill, partial(wait_until_painted, tree))
