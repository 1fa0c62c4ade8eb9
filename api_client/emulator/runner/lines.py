"""Turn a job's output into stored log lines: split into lines, level detected.

A progress bar that redraws itself with carriage returns is stored as one line from time to time.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import threading
from collections.abc import Iterable, Sequence

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
    match = _LEVEL.search(message, 0, _LEVEL_SEARCH_CHARACTERS)
    return match.lastgroup if match else None


class LineSplitter:
    """Splits a byte stream into lines at LF; carriage returns inside a line are kept.

    ``feed`` and ``overdue`` take the time of a monotonic clock in seconds.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._pending_since = 0.0
        self._last_data = 0.0

    def feed(self, data: bytes, now_s: float) -> list[str]:
        """Add bytes; return the lines that they complete."""
        self._last_data = now_s
        if not self._pending or b"\n" in data:
            self._pending_since = now_s
        self._pending += data
        lines: list[str] = []
        if b"\n" in data:
            *ended, self._pending = self._pending.split(b"\n")
            lines = _decoded(ended)
        return lines + (self.finish() if len(self._pending) >= MAXIMUM_LINE_BYTES else [])

    def overdue(self, now_s: float) -> list[str]:
        """Return the unfinished line if it has waited long enough to be recorded, else nothing."""
        if now_s - self._last_data >= SILENCE_S:
            return self.finish()
        shown, separator, rest = self._pending.rpartition(b"\r")
        if not shown or now_s - self._pending_since < PROGRESS_AGE_S:
            return []
        self._pending, self._pending_since = separator + rest, now_s
        return _decoded([shown])

    def finish(self) -> list[str]:
        rest, self._pending = self._pending, bytearray()
        return _decoded([rest]) if rest else []


def _decoded(lines: Iterable[bytearray]) -> list[str]:
    """Decode lines as UTF-8, replacing invalid bytes and dropping the CR of a CRLF."""
    return [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]


MINIMUM_SPACING_NS = 2_000
"""Minimum interval between lines of a job: at most 500 share a millisecond.

Readers page by milliseconds and get at most 1,000 lines per page.
"""
LINES_A_TRANSACTION = 2_000
"""The database is locked for about ten milliseconds at a time, and others can write in between."""
RETRY_S = 0.2

_logger = logging.getLogger(__name__)


class JobLog:
    """Writes the log of a job, from one thread: what prints faster than the disk writes has to wait."""

    def __init__(self, store: JobLogStore, clock: Clock, job_id: str) -> None:
        self._store = store
        self._clock = clock
        self._job_id = job_id
        self._next_ns = 0
        self._closing = threading.Event()

    def write(self, node_rank: int, messages: Sequence[str]) -> None:
        for start in range(0, len(messages), LINES_A_TRANSACTION):
            first_ns = max(epoch_ns(self._clock.now()), self._next_ns)
            lines = [
                StoredLine(
                    self._job_id,
                    first_ns + number * MINIMUM_SPACING_NS,
                    node_rank,
                    detect_level(message),
                    message,
                )
                for number, message in enumerate(messages[start : start + LINES_A_TRANSACTION])
            ]
            self._next_ns = first_ns + len(lines) * MINIMUM_SPACING_NS
            self._append(lines)

    def give_up(self) -> None:
        """Drop lines that can't be written, instead of trying again."""
        self._closing.set()

    def _append(self, lines: list[StoredLine]) -> None:
        while True:
            try:
                return self._store.append(lines)
            except sqlite3.Error:
                # Most likely the disk is full. Nothing is dropped while the emulator runs.
                _logger.exception("log lines could not be written")
                if self._closing.wait(RETRY_S):
                    return None
