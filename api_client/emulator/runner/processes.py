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


class SupervisedProcess:
    """A command that a supervisor runs. The supervisor ends all its processes, even if the emulator dies."""

    def __init__(
        self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], grace_s: float
    ) -> None:
        """Start the supervisor and the command; raise OSError on failure."""
        launch_request = {"argv": list(argv), "cwd": str(cwd), "env": dict(environment), "grace_s": grace_s}
        # -S skips site-packages, to start fast; PYTHONPATH lets the supervisor import psutil nevertheless.
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
        self._stdin, self.output = self._supervisor.stdin, self._supervisor.stdout
        self._send(json.dumps(launch_request).encode() + b"\n")

    @property
    def pid(self) -> int:
        """Process id of the supervisor, whose descendants are all processes of the command."""
        return self._supervisor.pid

    def end(self, *, kill: bool = False) -> None:
        """Kill all processes; without ``kill``, ask them to exit first, and wait for the grace period."""
        self._send(supervisor.KILL_REQUEST if kill else supervisor.STOP_REQUEST)

    def exit_code(self) -> int | None:
        """Return the command's exit code, 128 + N for signal N; None while it runs."""
        code = self._supervisor.poll()
        return code if code is None or code >= 0 else supervisor.SIGNAL_EXIT_BASE - code

    def close(self) -> None:
        self._stdin.close()
        self.output.close()
        self._supervisor.wait()

    def _send(self, request: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):  # the supervisor has exited
            self._stdin.write(request)


def output_of(processes: Sequence[SupervisedProcess]) -> Iterator[tuple[int, list[str], int | None]]:
    """Yield (index of the process, lines, exit code) until all processes have ended.

    The exit code is None except in the last item of a process. While the processes are silent, yields items
    without lines about ten times a second.
    """
    running = {index: LineSplitter() for index in range(len(processes))}
    exit_times_s: dict[int, float] = {}
    with selectors.DefaultSelector() as selector:
        for index, process in enumerate(processes):
            selector.register(process.output, selectors.EVENT_READ, index)
        while running:
            for key, _ in selector.select(0.1):
                if data := os.read(key.fd, 65536):
                    yield key.data, running[key.data].feed(data, time.monotonic()), None
                else:
                    selector.unregister(key.fileobj)
            open_indexes = {key.data for key in selector.get_map().values()}
            for index, splitter in list(running.items()):
                now_s, code = time.monotonic(), processes[index].exit_code()
                if code is not None and index in open_indexes:
                    exit_times_s.setdefault(index, now_s)
                # Read for 2 s after the end: a descendant that escaped may keep the pipe open forever.
                if code is None or (index in open_indexes and now_s < exit_times_s[index] + 2.0):
                    yield index, splitter.overdue(now_s), None
                    continue
                if index in open_indexes:
                    selector.unregister(processes[index].output)
                del running[index]
                yield index, splitter.finish(), code


MAX_LINE_BYTES = 8 * 1024 * 1024
"""Longer lines are split into several log lines, so that output without line breaks cannot fill memory."""

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
            *complete_lines, self._pending = self._pending.split(b"\n")
            lines = _decoded(complete_lines)
        return lines + (self.finish() if len(self._pending) >= MAX_LINE_BYTES else [])

    def overdue(self, now_s: float) -> list[str]:
        """Return an unfinished line that is a second old; of a progress bar, all but its newest drawing."""
        if now_s - self._pending_since < 1.0:
            return []
        old_drawings, separator, remainder = self._pending.rpartition(b"\r")
        if not old_drawings:
            return self.finish()
        self._pending, self._pending_since = separator + remainder, now_s
        return _decoded([old_drawings])

    def finish(self) -> list[str]:
        remainder, self._pending = self._pending, bytearray()
        return _decoded([remainder]) if remainder else []


def _decoded(lines: Iterable[bytearray]) -> list[str]:
    """Decode lines as UTF-8, replacing invalid bytes and dropping the CR of a CRLF."""
    return [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]


MIN_LINE_SPACING_NS = 2_000
"""Minimum interval between lines of a job: at most 500 lines have the same millisecond.

Clients read pages by milliseconds, and a page has at most 1,000 lines.
"""
LINES_PER_TRANSACTION = 2_000
"""Limits how long a write locks the database (about 10 ms), so that other threads can write in between."""

_logger = logging.getLogger(__name__)


class JobLog:
    """Writes a job's log, from one thread; a job that prints faster than the disk writes is blocked."""

    def __init__(self, store: JobLogStore, clock: Clock, job_id: str) -> None:
        self._store = store
        self._clock = clock
        self._job_id = job_id
        self._next_ns = 0
        self._drops_failed_writes = threading.Event()

    def write(self, node_rank: int, messages: Sequence[str]) -> None:
        for start in range(0, len(messages), LINES_PER_TRANSACTION):
            first_ns = max(epoch_ns(self._clock.now()), self._next_ns)
            batch = messages[start : start + LINES_PER_TRANSACTION]
            lines = [
                (self._job_id, first_ns + number * MIN_LINE_SPACING_NS, node_rank, detect_level(text), text)
                for number, text in enumerate(batch)
            ]
            self._next_ns = first_ns + len(lines) * MIN_LINE_SPACING_NS
            self._append(lines)

    def drop_failed_writes(self) -> None:
        """From now on, drop lines that can't be written, instead of retrying."""
        self._drops_failed_writes.set()

    def _append(self, lines: list[LogRow]) -> None:
        while True:
            try:
                return self._store.append(lines)
            except sqlite3.Error:
                # Most likely the disk is full. While the emulator runs, retry, so that no line is lost.
                _logger.exception("log lines could not be written")
                if self._drops_failed_writes.wait(0.2):
                    return None
