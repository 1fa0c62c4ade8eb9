"""Read a long time range of a log with several concurrent readers, yielding batches in order.

Each page must arrive before the next one can be requested, so one reader spends a long history waiting.
The range is split into parts that should take about the same number of pages, estimated from the lines
seen so far, and a few of them are read ahead. Memory is bounded: a part that is ahead holds a limited
number of pages and then waits; one with far more lines than expected ends early, and the rest of it is
split again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from api_client.models.logs import LogEntry
from api_client.streams.pages import PageSource
from api_client.streams.reader import RangeReader, Window

SERIAL_PAGES = 3
"""A log that needs at most this many pages is not worth splitting."""

PART_PAGES = 8
MAX_PART_PAGES = 3 * PART_PAGES
BUFFERED_BATCHES = MAX_PART_PAGES + 2
"""Maximum number of batches that a part may buffer."""

PARTS_IN_FLIGHT = 3
"""Parts of a long history read concurrently: more are slower, not faster (measured)."""

MIN_PART_MS = 10
WIDER_AT_MOST = 8.0
"""A part is at most this many times as wide as the one before it."""


class ParallelReader:
    """Reads ``start_ms <= t < end_ms``, ``in_flight`` pages at a time; yields the same as RangeReader."""

    def __init__(
        self,
        pages: PageSource,
        start_ms: int,
        end_ms: int,
        *,
        newest_first: bool = False,
        in_flight: int = PARTS_IN_FLIGHT,
    ) -> None:
        self._pages = pages
        self._newest_first = newest_first
        self._in_flight = in_flight
        self._plan: list[Window | _PartReader] = [(start_ms, end_ms)] if start_ms < end_ms else []
        self._width_ms = float(MIN_PART_MS)

    async def batches(self) -> AsyncGenerator[list[LogEntry], None]:
        """Yield nonempty batches of entries. Raises permanent RequestErrors. Use it once."""
        if not self._plan:
            return
        whole = self._plan.pop()
        assert isinstance(whole, tuple)
        reader = RangeReader(self._pages, *whole, newest_first=self._newest_first)
        while not reader.is_done and (self._in_flight == 1 or reader.page_count < SERIAL_PAGES):
            entries = await reader.next_batch()
            if entries:
                yield entries
        if reader.is_done:
            return
        self._plan.append(self._rest(whole, reader))
        self._learn(whole, reader)
        try:
            while self._plan:
                self._start_parts()
                part = self._plan[0]
                assert isinstance(part, _PartReader)
                while (batch := await part.next_batch()) is not None:
                    yield batch
                self._learn(part.window, part.reader)
                rest = self._rest(part.window, part.reader)
                self._plan[:1] = [rest] if rest[0] < rest[1] else []
        finally:
            tasks = [part.task for part in self._plan if isinstance(part, _PartReader)]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _start_parts(self) -> None:
        """Start reading the first parts of the plan; complete ones wait for their turn."""
        busy = position = 0
        while position < min(len(self._plan), 2 * self._in_flight) and busy < self._in_flight:
            item = self._plan[position]
            if isinstance(item, tuple):
                cut = self._cut(item)
                self._plan[position : position + 1] = cut
                window = cut[0]
                item = _PartReader(RangeReader(self._pages, *window, newest_first=self._newest_first), window)
                self._plan[position] = item
            busy += not item.task.done()
            position += 1

    def _cut(self, window: Window) -> list[Window]:
        start_ms, end_ms = window
        width_ms = int(self._width_ms)
        if end_ms - start_ms <= width_ms * 3 // 2:
            return [window]
        if self._newest_first:
            return [(end_ms - width_ms, end_ms), (start_ms, end_ms - width_ms)]
        return [(start_ms, start_ms + width_ms), (start_ms + width_ms, end_ms)]

    def _rest(self, window: Window, reader: RangeReader) -> Window:
        return (window[0], reader.position_ms) if self._newest_first else (reader.position_ms, window[1])

    def _learn(self, window: Window, reader: RangeReader) -> None:
        """Estimate the width of a part with ``PART_PAGES`` pages from what was just read."""
        rest_start_ms, rest_end_ms = self._rest(window, reader)
        read_ms = (window[1] - window[0]) - (rest_end_ms - rest_start_ms)
        wanted_width_ms = read_ms / max(reader.page_count, 1) * PART_PAGES
        widest_ms = max(self._width_ms, read_ms) * WIDER_AT_MOST
        self._width_ms = max(min(wanted_width_ms, widest_ms), float(MIN_PART_MS))


class _PartReader:
    def __init__(self, reader: RangeReader, window: Window) -> None:
        self.reader = reader
        self.window = window
        self._batches: asyncio.Queue[list[LogEntry] | None] = asyncio.Queue(BUFFERED_BATCHES)
        self.task = asyncio.create_task(self._read())

    async def next_batch(self) -> list[LogEntry] | None:
        """Return the next entries, None at the end. Raises errors of the reading task."""
        batch = await self._batches.get()
        if batch is None:
            await self.task
        return batch

    async def _read(self) -> None:
        try:
            while not self.reader.is_done and self.reader.page_count < MAX_PART_PAGES:
                entries = await self.reader.next_batch()
                if entries:
                    await self._batches.put(entries)
        finally:
            # There is always room: a part has fewer batches than that.
            self._batches.put_nowait(None)
