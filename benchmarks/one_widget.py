"""A widget alone in an app: when it is painted, and how long it keeps the event loop."""

from __future__ import annotations

import asyncio
import time

from textual.app import App, ComposeResult
from textual.widget import Widget


class OneWidget(App[None]):
    """An app that shows one widget."""

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        """The widget alone."""
        yield self.widget


class Stalls:
    """The longest times between two turns of the event loop, in ms.

    Attributes:
        cpu_ms: as this program used the processor: what it did itself, whatever else the machine does.
        wall_ms: as clocks on walls go.
    """

    def __init__(self) -> None:
        self.cpu_ms = self.wall_ms = 0.0

    async def watch(self) -> None:
        """Watch until cancelled.

        It sleeps in between, as the loop of a dashboard does. A loop that only turns lets go of the
        interpreter so briefly that a thread beside it hardly ever gets it, least of all on an idle machine.
        """
        wall, cpu = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now_wall, now_cpu = time.perf_counter(), time.thread_time()
            self.wall_ms = max(self.wall_ms, (now_wall - wall) * 1000)
            self.cpu_ms = max(self.cpu_ms, (now_cpu - cpu) * 1000)
            wall, cpu = now_wall, now_cpu


async def painted(widget: Widget) -> None:
    """Wait until what was asked for has been painted."""
    done = asyncio.Event()
    widget.call_after_refresh(done.set)
    await done.wait()
