"""Bytes that a node prints → log lines."""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from api_client.clock import Clock
from api_client.emulator.runner.changes import Changes
from api_client.emulator.store.job_streams import LogStore, StoredLine

MAXIMUM_LINE_BYTES = 8 * 1024 * 1024
"""A longer line is cut into several records, so that output without line ends cannot fill memory."""
PROGRESS_AGE_S = 1.0
"""A progress bar that rewrites its line without pause is recorded this often."""
SILENCE_S = 0.5
"""A line without end (a prompt, a progress bar) is recorded once nothing came for this long."""

_LEVEL = re.compile(
    r"\b(?:"
    r"(?P<ERROR>(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|[A-Z]\w*(?:Error|Exception):)"
    r"|(?P<WARNING>(?:WARNING|WARN)\b|[A-Z]\w*Warning:)"
    r"|(?P<INFO>INFO\b)"
    r"|(?P<DEBUG>(?:DEBUG|TRACE)\b)"
    r")"
)
_LEVEL_SEARCH_CHARACTERS = 256
"""A level stands at the beginning of a line; a megabyte is not searched for one."""


def detect_level(message: str) -> str | None:
    """DEBUG, INFO, WARNING or ERROR if the line says so, else None."""
    found = _LEVEL.search(message, 0, _LEVEL_SEARCH_CHARACTERS)
    return found.lastgroup if found else None


class LineSplitter:
    """Cuts a byte stream into lines at LF; carriage returns inside a line stay in it.

    ``feed`` and ``overdue`` take the time on a monotonic clock, in seconds.
    """

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._pending_since = 0.0
        self._last_data = 0.0

    @property
    def has_pending(self) -> bool:
        """Whether a line has begun and not ended."""
        return self._pending_bytes > 0

    def feed(self, data: bytes, now_s: float) -> list[str]:
        """Take more bytes; returns the lines that they complete."""
        self._last_data = now_s
        if b"\n" in data:
            *whole, rest = data.split(b"\n")
            whole[0] = b"".join((*self._pending, whole[0]))
            self._pending.clear()
            self._pending_bytes = 0
        else:
            whole, rest = [], data
        if rest:
            if not self._pending:
                self._pending_since = now_s
            self._pending.append(rest)
            self._pending_bytes += len(rest)
        lines = decoded(whole)
        if self._pending_bytes >= MAXIMUM_LINE_BYTES:
            lines += self.finish()
        return lines

    def wait_on(self, now_s: float) -> None:
        """Nobody read for a while: what is unfinished has as much time again as if it had just come."""
        self._last_data = self._pending_since = now_s

    def overdue(self, now_s: float) -> list[str]:
        """The unfinished line, if it has waited long enough to be recorded as it is."""
        if not self._pending:
            return []
        if now_s - self._last_data >= SILENCE_S:
            return self.finish()
        if now_s - self._pending_since >= PROGRESS_AGE_S:
            shown, separator, rest = b"".join(self._pending).rpartition(b"\r")
            if separator and shown:
                kept = separator + rest
                self._pending = [kept]
                self._pending_bytes = len(kept)
                self._pending_since = now_s
                return decoded([shown])
        return []

    def finish(self) -> list[str]:
        """The unfinished line at the end of the stream."""
        rest = b"".join(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        return decoded([rest]) if rest else []


def decoded(lines: Iterable[bytes]) -> list[str]:
    """Lines as text: what is not UTF-8 is replaced, the CR of a CRLF dropped."""
    return [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]


FLUSH_INTERVAL_S = 0.1
MINIMUM_SPACING_NS = 2_000
"""Lines of a job are at least this far apart: at most 500 share a millisecond, whatever comes in one
read. Readers page by milliseconds and get no more than 1,000 lines a page (API facts, 2.2)."""
FULL_CHARACTERS = 32 * 1024 * 1024
"""Above this much unwritten text, the jobs' pipes are left alone until it is written."""
LINES_A_TRANSACTION = 2_000
"""Written at once: the database is locked for some ten milliseconds, and others get their turn between."""
LINE_OVERHEAD_CHARACTERS = 200
"""What a line takes in memory besides its text."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NS_PER_US = 1_000
_logger = logging.getLogger(__name__)


def epoch_ns(moment: datetime) -> int:
    """Nanoseconds since the epoch, exact to the microsecond."""
    since = moment - _EPOCH
    return (since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds) * _NS_PER_US


@dataclass(frozen=True, slots=True)
class _Printed:
    """What a node printed at a time; the lines are stamped ``MINIMUM_SPACING_NS`` apart."""

    job_id: str
    node_rank: int
    first_ns: int
    messages: Sequence[str]

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
    """Collects lines on the event loop; a thread looks at them and writes them."""

    def __init__(self, store: LogStore, clock: Clock, changes: Changes) -> None:
        self._store = store
        self._clock = clock
        self._changes = changes
        self._printed: list[_Printed] = []
        self._being_written: tuple[_Printed, ...] = ()
        self._characters = 0
        self._last_stamp_ns: dict[str, int] = {}
        self._arrived = asyncio.Event()
        self._writing = asyncio.Lock()
        self._when_drained: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def is_full(self) -> bool:
        """Whether whoever adds lines should pause."""
        return self._characters > FULL_CHARACTERS

    def when_drained(self, resume: Callable[[], None]) -> None:
        """Call that once the writer has caught up."""
        self._when_drained.append(resume)

    def add(self, job_id: str, node_rank: int, messages: Sequence[str]) -> None:
        """Take lines that a node printed just now."""
        now_ns = epoch_ns(self._clock.now())
        last_ns = self._last_stamp_ns.get(job_id)
        if last_ns is None:
            last_ns = self._store.last_stamp_ns(job_id)
        for start in range(0, len(messages), LINES_A_TRANSACTION):
            piece = messages[start : start + LINES_A_TRANSACTION]
            first_ns = max(now_ns, last_ns + MINIMUM_SPACING_NS)
            last_ns = first_ns + (len(piece) - 1) * MINIMUM_SPACING_NS
            self._printed.append(_Printed(job_id, node_rank, first_ns, piece))
        self._characters += sum(map(len, messages)) + LINE_OVERHEAD_CHARACTERS * len(messages)
        self._last_stamp_ns[job_id] = last_ns
        self._arrived.set()
        if self._task is None:
            self._task = asyncio.create_task(self._write_forever(), name="log writer")

    def is_holding(self, job_id: str) -> bool:
        """Whether lines of the job wait to be written; safe from any thread."""
        return any(printed.job_id == job_id for printed in (*self._being_written, *self._printed))

    def forget(self, job_id: str) -> None:
        """The job is over: keep nothing of it in memory."""
        self._last_stamp_ns.pop(job_id, None)

    async def flush(self) -> None:
        """Write all that was added so far."""
        async with self._writing:
            self._being_written = tuple(self._printed)
            waiting, self._printed = self._printed, []
            characters, self._characters = self._characters, 0
            while waiting:
                batch = _first_lines(waiting)
                try:
                    await asyncio.to_thread(self._write, batch)
                except sqlite3.Error:
                    # A full disk, most likely. Nothing is thrown away: the next beat tries again.
                    _logger.exception("log lines could not be written")
                    self._printed[:0] = [*batch, *waiting]
                    self._characters += characters
                    self._arrived.set()
                    return
            self._being_written = ()
        resumed, self._when_drained = self._when_drained, []
        for resume in resumed:
            resume()
        self._changes.notify()

    def _write(self, batch: list[_Printed]) -> None:
        self._store.append([line for printed in batch for line in printed.lines()])

    async def close(self) -> None:
        """Write the rest and stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self.flush()

    async def _write_forever(self) -> None:
        while True:
            await self._arrived.wait()
            await self._clock.sleep(FLUSH_INTERVAL_S)
            self._arrived.clear()
            await self.flush()


def _first_lines(waiting: list[_Printed]) -> list[_Printed]:
    """Take off the list what fits into one transaction, and at least one."""
    count = 0
    for taken, printed in enumerate(waiting):
        count += len(printed.messages)
        if taken and count > LINES_A_TRANSACTION:
            batch, waiting[:taken] = waiting[:taken], []
            return batch
    batch, waiting[:] = waiting[:], []
    return batch
