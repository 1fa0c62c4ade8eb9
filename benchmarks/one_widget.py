"""Run a single widget in an app; wait until it is painted, and measure stalls of the event loop."""

from __future__ import annotations

import asyncio
import time
from typing import Self

from textual.app import App, ComposeResult
from textual.widget import Widget

SIZE = (120, 40)


class OneWidget(App[None]):
    """An app that shows one widget."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


class Stalls:
    """The longest time between two iterations of the event loop, in ms, in an ``async with`` block.

    ``cpu_ms`` is CPU time of this thread, which does not depend on the load of the machine.
    """

    def __init__(self) -> None:
        self.cpu_ms = self.wall_ms = 0.0

    async def __aenter__(self) -> Self:
        self._watcher = asyncio.create_task(self._watch())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watcher.cancel()

    async def _watch(self) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        while True:
            # Sleep, as the loop of a dashboard does: a loop that never sleeps releases the GIL so briefly
            # that other threads hardly ever run, least of all on an idle machine.
            await asyncio.sleep(0.001)
            now_wall, now_cpu = time.perf_counter(), time.thread_time()
            self.wall_ms = max(self.wall_ms, (now_wall - wall) * 1000)
            self.cpu_ms = max(self.cpu_ms, (now_cpu - cpu) * 1000)
            wall, cpu = now_wall, now_cpu


async def painted(widget: Widget) -> None:
    """Wait until the pending changes of a widget have been painted."""
    done = asyncio.Event()
    widget.call_after_refresh(done.set)
    await done.wait()
