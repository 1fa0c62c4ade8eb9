"""Run a single widget in an app; wait for its paint, and measure stalls of the event loop."""

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
        last_wall_s, last_cpu_s = time.perf_counter(), time.thread_time()
        while True:
            # Sleep, as the loop of a dashboard does: a loop that never sleeps releases the GIL so briefly
            # that other threads hardly ever run, least of all on an idle machine.
            await asyncio.sleep(0.001)
            wall_s, cpu_s = time.perf_counter(), time.thread_time()
            self.wall_ms = max(self.wall_ms, (wall_s - last_wall_s) * 1000)
            self.cpu_ms = max(self.cpu_ms, (cpu_s - last_cpu_s) * 1000)
            last_wall_s, last_cpu_s = wall_s, cpu_s


async def wait_until_painted(widget: Widget) -> None:
    """Wait until the pending changes of a widget have been painted."""
    is_painted = asyncio.Event()
    widget.call_after_refresh(is_painted.set)
    await is_painted.wait()
