"""Supervised processes, and their output as stored log lines, with levels.

A progress bar that redraws itself with carriage returns is stored as one line from time to time.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import selectors
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from api_client.clock import Clock, epoch_ns
from api_client.emulator.runner import supervisor
from api_client.emulator.store.database import JobLogStore, LogRow


class Supervised:
    """A command run by a supervisor, which ends all of its processes, even if the emulator dies."""

    def __init__(
        self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], grace_s: float
    ) -> None:
        """Start it; raise OSError if that fails."""
        order = {"argv": list(argv), "cwd": str(cwd), "env": dict(environment), "grace_s": grace_s}
        # -S and the search path: start in milliseconds, and find psutil wherever it was found here.
        self._supervisor = subprocess.Popen(
            [sys.executable, "-P", "-S", supervisor.__file__],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        self._requests, self.output = self._supervisor.stdin, self._supervisor.stdout
        self._send(json.dumps(order).encode() + b"\n")

    @property
    def pid(self) -> int:
        """Process id of the supervisor, the ancestor of all processes."""
        return self._supervisor.pid

    def end(self, *, kill: bool = False) -> None:
        """Kill all processes, or ask them to exit and kill those that remain after the grace period."""
        self._send(supervisor.KILL if kill else supervisor.STOP)

    def exit_code(self) -> int | None:
        """Return the exit code, 128 + N for signal N; None while it runs."""
        code = self._supervisor.poll()
        return code if code is None or code >= 0 else supervisor.SIGNAL_EXIT_BASE - code

    def close(self) -> None:
        self._requests.close()
        self.output.close()
        self._supervisor.wait()

    def _send(self, request: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has ended
            self._requests.write(request)


def output_of(processes: Sequence[Supervised]) -> Iterator[tuple[int, list[str], int | None]]:
    """Yield the lines of each process, and its exit code after its last lines, until all have ended.

    While the processes are silent, yields items without lines now and then.
    """
    running = {index: LineSplitter() for index in range(len(processes))}
    ended_s: dict[int, float] = {}
    with selectors.DefaultSelector() as selector:
        for index, process in enumerate(processes):
            selector.register(process.output, selectors.EVENT_READ, index)
        while running:
            for key, _ in selector.select(0.1):
                if data := os.read(key.fd, 65536):
                    yield key.data, running[key.data].feed(data, time.monotonic()), None
                else:
                    selector.unregister(key.fileobj)
            opened = {key.data for key in selector.get_map().values()}
            for index, splitter in list(running.items()):
                now_s, code = time.monotonic(), processes[index].exit_code()
                if code is not None and index in opened:
                    ended_s.setdefault(index, now_s)
                # After the end, 2 s for the rest: one that escaped may keep the pipe open forever.
                if code is None or (index in opened and now_s < ended_s[index] + 2.0):
                    yield index, splitter.overdue(now_s), None
                    continue
                if index in opened:
                    selector.unregister(processes[index].output)
                del running[index]
                yield index, splitter.finish(), code


MAXIMUM_LINE_BYTES = 8 * 1024 * 1024
"""Longer lines are split into several records, so that output without line breaks cannot fill memory."""

_LEVEL = re.compile(
    r"\b(?:"
    r"(?P<ERROR>(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|[A-Z]\w*(?:Error|Exception):)"
    r"|(?P<WARNING>(?:WARNING|WARN)\b|[A-Z]\w*Warning:)"
    r"|(?P<INFO>INFO\b)"
    r"|(?P<DEBUG>(?:DEBUG|TRACE)\b)"
    r")"
)


def detect_level(message: str) -> str | None:
    """Return DEBUG, INFO, WARNING or ERROR if the beginning of the line names a level, else None."""
    match = _LEVEL.search(message, 0, 256)
    return match.lastgroup if match else None


class LineSplitter:
    """Splits a byte stream into lines at LF; carriage returns inside a line are kept.

    ``feed`` and ``overdue`` take the time of a monotonic clock in seconds.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._pending_since = 0.0

    def feed(self, data: bytes, now_s: float) -> list[str]:
        """Add bytes; return the lines that they complete."""
        if not self._pending or b"\n" in data:
            self._pending_since = now_s
        self._pending += data
        lines: list[str] = []
        if b"\n" in data:
            *ended, self._pending = self._pending.split(b"\n")
            lines = _decoded(ended)
        return lines + (self.finish() if len(self._pending) >= MAXIMUM_LINE_BYTES else [])

    def overdue(self, now_s: float) -> list[str]:
        """Return the unfinished line after a second; of a progress bar, all but its newest drawing."""
        if now_s - self._pending_since < 1.0:
            return []
        shown, separator, rest = self._pending.rpartition(b"\r")
        if not shown:
            return self.finish()
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
LINES_PER_TRANSACTION = 2_000
"""The database is locked for about ten milliseconds at a time, and others can write in between."""

_logger = logging.getLogger(__name__)


class JobLog:
    """Writes a job's log, from one thread; a job that prints faster than the disk writes has to wait."""

    def __init__(self, store: JobLogStore, clock: Clock, job_id: str) -> None:
        self._store = store
        self._clock = clock
        self._job_id = job_id
        self._next_ns = 0
        self._closing = threading.Event()

    def write(self, node_rank: int, messages: Sequence[str]) -> None:
        for start in range(0, len(messages), LINES_PER_TRANSACTION):
            first_ns = max(epoch_ns(self._clock.now()), self._next_ns)
            page = messages[start : start + LINES_PER_TRANSACTION]
            lines = [
                (self._job_id, first_ns + number * MINIMUM_SPACING_NS, node_rank, detect_level(text), text)
                for number, text in enumerate(page)
            ]
            self._next_ns = first_ns + len(lines) * MINIMUM_SPACING_NS
            self._append(lines)

    def give_up(self) -> None:
        """Drop lines that can't be written, instead of trying again."""
        self._closing.set()

    def _append(self, lines: list[LogRow]) -> None:
        while True:
            try:
                return self._store.append(lines)
            except sqlite3.Error:
                # Most likely the disk is full. Nothing is dropped while the emulator runs.
                _logger.exception("log lines could not be written")
                if self._closing.wait(0.2):
                    return None
