"""Analyze a recording in a process of its own, a fraction of a second per question.

The process ends when the connection to it is closed, however the dashboard ended.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from threading import Lock
from typing import Any

from api_client.recordings.archive import RecordingError
from api_client.recordings.reading import Recording
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.readers.recorded_index import Moment, RecordingIndex
from tui.settings.runs import RunSettings

MAX_STARTS = 4


class RecordingAnalysis:
    """The progress of a recorded run at any moment, and the moments worth going to.

    Its process starts with the first question, and again if it was killed.
    """

    def __init__(self, path: Path, settings: RunSettings) -> None:
        self._job = (path.absolute(), settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._starts = 0
        self._turn = Lock()

    async def progress(self, until_ns: int) -> ProgressSnapshot:
        """Return the progress according to the lines that arrived until then.

        Cancel it if its answer is no longer wanted. Raises RecordingError if the process keeps ending.
        """
        progress: ProgressSnapshot | None = None
        while progress is None:
            progress = await asyncio.to_thread(self._answer, "progress", until_ns)
        return progress

    async def moments(self) -> AsyncIterator[list[Moment]]:
        """Yield all errors and findings so far, until the whole run was searched. Raises RecordingError."""
        moments: list[Moment] = []
        is_complete = False
        while not is_complete:
            new, is_complete = await asyncio.to_thread(self._answer, "moments", len(moments))
            moments += new
            if new or is_complete:
                yield list(moments)

    def _answer(self, *question: object) -> Any:
        with self._turn:
            while True:
                try:
                    connection = self._connected()
                    connection.send(question)
                    return connection.recv()
                except (EOFError, OSError):
                    self._end_process()

    def _connected(self) -> Connection:
        if self._connection is None:
            if self._starts >= MAX_STARTS:
                raise RecordingError(f"the analysis of {self._job[0]} ended")
            self._starts += 1
            self._process, self._connection = _start()
            self._connection.send(self._job)
        return self._connection

    def _end_process(self) -> None:
        if self._process is not None and self._connection is not None:
            self._process.kill()
            self._process.wait()
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """End the process for good; a question that waits for it raises RecordingError."""
        self._starts = MAX_STARTS
        if self._process is not None:
            self._process.kill()
        with self._turn:
            self._end_process()


def _start() -> tuple[subprocess.Popen[bytes], Connection]:
    """Run this module, with the descriptor of its connection as the argument."""
    connection, other = Pipe()
    with other:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(other.fileno())],
            pass_fds=[other.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
    return process, connection


def analyze(connection: Connection, path: Path, settings: RunSettings) -> None:
    """Answer for the progress at a time, and for new moments. Raises EOFError at the end."""
    with Recording(path) as recording:
        index = RecordingIndex(recording, settings)
        while True:
            match connection.recv():
                case "progress", until_ns:
                    connection.send(index.progress_at(until_ns))
                case "moments", known_count:
                    index.work()
                    connection.send((index.found[known_count:], index.is_complete))


def main(descriptor: int) -> None:
    os.nice(10)  # the whole log takes minutes; the dashboard comes first
    with Connection(descriptor) as connection, suppress(EOFError, ConnectionError):
        analyze(connection, *connection.recv())


if __name__ == "__main__":
    main(int(sys.argv[1]))
