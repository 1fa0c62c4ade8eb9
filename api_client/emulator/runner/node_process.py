"""A running node as seen by the emulator: a supervisor process with a pipe in each direction."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from api_client.emulator.runner import supervisor
from api_client.emulator.runner.log_writer import SILENCE_S, LineSplitter

OUTPUT_DRAIN_S = 2.0
"""Time for remaining output to arrive after the node has ended."""


class NodeProcess(asyncio.SubprocessProtocol):
    """Starts a node and passes on its lines and its exit code.

    ``on_lines`` gets the lines as they arrive. If it returns False, reading pauses until
    ``resume_reading`` is called.
    """

    def __init__(self, on_lines: Callable[[list[str]], bool]) -> None:
        self._on_lines = on_lines
        self._splitter = LineSplitter()
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._output_over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._is_paused = False

    async def start(
        self, argv: list[str], *, cwd: Path, environment: Mapping[str, str], grace_s: float
    ) -> None:
        """Start the supervisor and send the launch order; raise OSError if that fails."""
        order = {"argv": argv, "cwd": str(cwd), "env": dict(environment), "grace_s": grace_s}
        # -S and the search path: start in milliseconds, and find psutil wherever it was found here.
        await self._loop.subprocess_exec(
            lambda: self,
            sys.executable,
            "-P",
            "-S",
            supervisor.__file__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._request(json.dumps(order).encode() + b"\n")

    @property
    def pid(self) -> int:
        """Process id of the supervisor, the ancestor of the node's processes."""
        return self._transport.get_pid()

    def stop(self) -> None:
        """Ask all processes to exit; kill those that remain after the grace period."""
        self._request(supervisor.STOP)

    def kill(self) -> None:
        self._request(supervisor.KILL)

    def resume_reading(self) -> None:
        self._is_paused = False
        self._splitter.wait_on(time.monotonic())
        output = self._pipe(1)
        if not output.is_closing():
            output.resume_reading()

    async def wait(self) -> int:
        """Wait for the node to end and its output to arrive; return the exit code (128 + N for signal N)."""
        await self._exited.wait()
        # A process that escaped may keep the pipe open forever; its output no longer belongs to the job.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._output_over.wait(), OUTPUT_DRAIN_S)
        if self._timer is not None:
            self._timer.cancel()
        self._deliver(self._splitter.finish())
        code = cast(int, self._transport.get_returncode())
        self._transport.close()
        return code if code >= 0 else supervisor.SIGNAL_EXIT_BASE - code

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._deliver(self._splitter.feed(data, time.monotonic()))
        if self._splitter.has_pending and self._timer is None:
            self._timer = self._loop.call_later(SILENCE_S, self._check_pending)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._output_over.set()

    def process_exited(self) -> None:
        self._exited.set()

    def _check_pending(self) -> None:
        self._timer = None
        if not self._is_paused:  # otherwise the rest of the line may be in the pipe, unread
            self._deliver(self._splitter.overdue(time.monotonic()))
        if self._splitter.has_pending:
            self._timer = self._loop.call_later(SILENCE_S / 2, self._check_pending)

    def _deliver(self, lines: list[str]) -> None:
        if lines and not self._on_lines(lines):
            self._is_paused = True
            output = self._pipe(1)
            if not output.is_closing():
                output.pause_reading()

    def _request(self, request: bytes) -> None:
        requests = self._pipe(0)
        if not requests.is_closing():
            requests.write(request)

    def _pipe(self, fd: int) -> Any:
        return self._transport.get_pipe_transport(fd)
