"""Turn a node's output into stored log lines: split into lines, level detected, written by a thread.

A progress bar that redraws itself with carriage returns is stored as one line from time to time.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from api_client.clock import Clock
from api_client.emulator.formats import epoch_ns
from api_client.emulator.store.job_streams import JobLogStore, StoredLine

MAXIMUM_LINE_BYTES = 8 * 1024 * 1024
"""Longer lines are split into several records, so that output without line breaks cannot fill memory."""
PROGRESS_AGE_S = 1.0
"""Recording interval for a progress bar that rewrites its line continuously."""
SILENCE_S = 0.5
"""An unfinished line (a prompt, a progress bar) is recorded after this much silence."""

_LEVEL = re.compile(
    r"\b(?:"
    r"(?P<ERROR>(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|[A-Z]\w*(?:Error|Exception):)"
    r"|(?P<WARNING>(?:WARNING|WARN)\b|[A-Z]\w*Warning:)"
    r"|(?P<INFO>INFO\b)"
    r"|(?P<DEBUG>(?:DEBUG|TRACE)\b)"
    r")"
)
_LEVEL_SEARCH_CHARACTERS = 256
"""Levels are at the start of a line, so do not search a line of a megabyte."""


def detect_level(message: str) -> str | None:
    """Return DEBUG, INFO, WARNING or ERROR if the line contains a level, else None."""
    found = _LEVEL.search(message, 0, _LEVEL_SEARCH_CHARACTERS)
    return found.lastgroup if found else None


class LineSplitter:
    """Splits a byte stream into lines at LF; carriage returns inside a line are kept.

    ``feed`` and ``overdue`` take the time of a monotonic clock in seconds.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._pending_since = 0.0
        self._last_data = 0.0

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    def feed(self, data: bytes, now_s: float) -> list[str]:
        """Add bytes; return the lines that they complete."""
        self._last_data = now_s
        if not self._pending or b"\n" in data:
            self._pending_since = now_s
        self._pending += data
        lines: list[str] = []
        if b"\n" in data:
            *whole, self._pending = self._pending.split(b"\n")
            lines = decoded(whole)
        if len(self._pending) >= MAXIMUM_LINE_BYTES:
            lines += self.finish()
        return lines

    def wait_on(self, now_s: float) -> None:
        """Restart the timers of the unfinished line after a pause in reading."""
        self._last_data = self._pending_since = now_s

    def overdue(self, now_s: float) -> list[str]:
        """Return the unfinished line if it has waited long enough to be recorded, else nothing."""
        if not self._pending:
            return []
        if now_s - self._last_data >= SILENCE_S:
            return self.finish()
        if now_s - self._pending_since >= PROGRESS_AGE_S:
            shown, separator, rest = self._pending.rpartition(b"\r")
            if separator and shown:
                self._pending = separator + rest
                self._pending_since = now_s
                return decoded([shown])
        return []

    def finish(self) -> list[str]:
        rest, self._pending = self._pending, bytearray()
        return decoded([rest]) if rest else []


def decoded(lines: Iterable[bytearray]) -> list[str]:
    """Decode lines as UTF-8, replacing invalid bytes and dropping the CR of a CRLF."""
    return [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]


FLUSH_INTERVAL_S = 0.1
MINIMUM_SPACING_NS = 2_000
"""Minimum interval between lines of a job: at most 500 share a millisecond.

This holds however many lines arrive in one read. Readers page by milliseconds and get at most 1,000 lines
per page.
"""
FULL_CHARACTERS = 32 * 1024 * 1024
"""Stop reading from the jobs' pipes while there is more unwritten text than this."""
LINES_A_TRANSACTION = 2_000
"""Lines per transaction: the database is locked for about ten milliseconds, and others can write in between.
"""
LINE_OVERHEAD_CHARACTERS = 200
"""Approximate memory per line besides its text."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Printed:
    """Lines that a node printed at once; their timestamps are ``MINIMUM_SPACING_NS`` apart."""

    job_id: str
    node_rank: int
    first_ns: int
    messages: Sequence[str]

    @property
    def characters(self) -> int:
        return sum(map(len, self.messages)) + LINE_OVERHEAD_CHARACTERS * len(self.messages)

    def lines(self) -> list[StoredLine]:
        return [
            StoredLine(
                self.job_id,
                self.first_ns + number * MINIMUM_SPACING_NS,
                self.node_rank,
                detect_level(message),
                message,
            )
            for number, message in enumerate(self.messages)
        ]


class LogWriter:
    """Collects lines on the event loop; a thread parses and writes them."""

    def __init__(self, store: JobLogStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._printed: list[_Printed] = []
        self._characters = 0
        self._last_stamp_ns: dict[str, int] = {}
        self._arrived = asyncio.Event()
        self._writing = asyncio.Lock()
        self._when_drained: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def is_full(self) -> bool:
        """True if the callers of ``add`` should pause."""
        return self._characters > FULL_CHARACTERS

    def when_drained(self, resume: Callable[[], None]) -> None:
        """Call ``resume`` after the next successful flush."""
        self._when_drained.append(resume)

    def add(self, job_id: str, node_rank: int, messages: Sequence[str]) -> None:
        now_ns = epoch_ns(self._clock.now())
        last_ns = self._last_stamp_ns.get(job_id)
        if last_ns is None:
            last_ns = self._store.last_stamp_ns(job_id)
        for start in range(0, len(messages), LINES_A_TRANSACTION):
            piece = messages[start : start + LINES_A_TRANSACTION]
            first_ns = max(now_ns, last_ns + MINIMUM_SPACING_NS)
            last_ns = first_ns + (len(piece) - 1) * MINIMUM_SPACING_NS
            self._printed.append(_Printed(job_id, node_rank, first_ns, piece))
            self._characters += self._printed[-1].characters
        self._last_stamp_ns[job_id] = last_ns
        self._arrived.set()
        if self._task is None:
            self._task = asyncio.create_task(self._write_forever(), name="log writer")

    def is_holding(self, job_id: str) -> bool:
        """Return True if lines of the job are waiting to be written; safe from any thread."""
        return any(printed.job_id == job_id for printed in tuple(self._printed))

    def forget(self, job_id: str) -> None:
        self._last_stamp_ns.pop(job_id, None)

    async def flush(self) -> None:
        async with self._writing:
            unwritten = len(self._printed)
            while unwritten:
                batch = self._first_lines(unwritten)
                try:
                    await asyncio.to_thread(self._write, batch)
                except sqlite3.Error:
                    # Most likely the disk is full. Nothing is dropped: the next flush retries.
                    _logger.exception("log lines could not be written")
                    self._arrived.set()
                    return
                unwritten -= len(batch)
                del self._printed[: len(batch)]
                self._characters -= sum(printed.characters for printed in batch)
        resumed, self._when_drained = self._when_drained, []
        for resume in resumed:
            resume()

    def _first_lines(self, limit: int) -> list[_Printed]:
        """Return as many items as fit into one transaction, at least one and at most ``limit``."""
        count = 0
        for index, printed in enumerate(self._printed[:limit]):
            count += len(printed.messages)
            if index and count > LINES_A_TRANSACTION:
                return self._printed[:index]
        return self._printed[:limit]

    def _write(self, batch: list[_Printed]) -> None:
        self._store.append([line for printed in batch for line in printed.lines()])

    async def close(self) -> None:
        if self._task is not None:
            async with self._writing:  # a transaction in progress is completed
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.flush()

    async def _write_forever(self) -> None:
        while True:
            await self._arrived.wait()
            await self._clock.sleep(FLUSH_INTERVAL_S)
            self._arrived.clear()
            await self.flush()
