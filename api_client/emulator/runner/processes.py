"""Supervised processes, and their output as lines."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from api_client.emulator.runner import supervisor
from api_client.emulator.runner.lines import LineSplitter

TICK_S = 0.1
READ_BYTES = 64 * 1024
OUTPUT_DRAIN_S = 2.0
"""Time for remaining output after the end: a process that escaped may keep the pipe open forever."""


class Supervised:
    """A command below a supervisor, which ends all of its processes, also if the emulator dies."""

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

    def stop(self) -> None:
        """Ask all processes to exit; kill those that remain after the grace period."""
        self._send(supervisor.STOP)

    def kill(self) -> None:
        self._send(supervisor.KILL)

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
    """Yield the lines of each process, and its exit code after its last ones, until all have ended.

    Yields nothing but an index now and then while they are silent.
    """
    running = {index: LineSplitter() for index in range(len(processes))}
    ended_s: dict[int, float] = {}
    with selectors.DefaultSelector() as selector:
        for index, process in enumerate(processes):
            selector.register(process.output, selectors.EVENT_READ, index)
        while running:
            for key, _ in selector.select(TICK_S):
                if data := os.read(key.fd, READ_BYTES):
                    yield key.data, running[key.data].feed(data, time.monotonic()), None
                else:
                    selector.unregister(key.fileobj)
            opened = {key.data for key in selector.get_map().values()}
            for index, splitter in list(running.items()):
                now_s, code = time.monotonic(), processes[index].exit_code()
                if code is not None and index in opened:
                    ended_s.setdefault(index, now_s)
                if code is None or (index in opened and now_s < ended_s[index] + OUTPUT_DRAIN_S):
                    yield index, splitter.overdue(now_s), None
                    continue
                if index in opened:
                    selector.unregister(processes[index].output)
                del running[index]
                yield index, splitter.finish(), code
