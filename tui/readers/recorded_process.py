"""Analyze a recording in a process of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path

from api_client.recordings.archive import RecordingError
from api_client.recordings.processes import start
from api_client.recordings.reading import Recording
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.readers.recorded_index import Moment, RecordingIndex
from tui.settings.runs import RunSettings

MAX_ENDS = 3


class RecordingAnalysis:
    """The progress of a recorded run at any moment, and the moments worth going to.

    Its process starts with the first question, and again if it was killed.
    """

    def __init__(self, path: Path, settings: RunSettings) -> None:
        self._job = (path.absolute(), settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ends = 0
        self._one_question = asyncio.Lock()
        self._asked_ns = -1
        self._answer: asyncio.Future[ProgressSnapshot] | None = None
        self._moments: list[Moment] = []
        self._has_all_moments = False
        self._news = asyncio.Event()

    async def progress(self, until_ns: int) -> ProgressSnapshot:
        """Return the progress according to the lines that arrived until then.

        Only the newest question is answered: cancel one whose answer is no longer wanted. Raises
        RecordingError if the process keeps ending.
        """
        async with self._one_question:
            while True:
                connection = self._connected()
                self._asked_ns, self._answer = until_ns, asyncio.get_running_loop().create_future()
                try:
                    connection.send(until_ns)
                    return await self._answer
                except ConnectionError:
                    if connection is self._connection:
                        self._lose_process()

    async def moments(self) -> AsyncIterator[list[Moment]]:
        """Yield all errors and findings so far, until the whole run was searched. Raises RecordingError."""
        while True:
            self._connected()
            self._news.clear()
            yield list(self._moments)
            if self._has_all_moments:
                return
            await self._news.wait()

    def _connected(self) -> Connection:
        if self._ends > MAX_ENDS:
            raise RecordingError(f"the analysis of {self._job[0]} ended")
        if self._connection is None:
            self._process, self._connection = start(__name__)
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._connection.fileno(), self._receive)
            self._moments, self._has_all_moments = [], False
            with suppress(ConnectionError):
                self._connection.send(self._job)
        return self._connection

    def _receive(self) -> None:
        assert self._connection is not None
        try:
            kind, *content = self._connection.recv()
        except (EOFError, OSError):
            self._lose_process()
            if self._answer is not None and not self._answer.done():
                self._answer.set_exception(ConnectionResetError())
            return
        if kind == "moments":
            new, self._has_all_moments = content
            self._moments += new
            self._news.set()
        elif content[0] == self._asked_ns and self._answer is not None and not self._answer.done():
            self._answer.set_result(content[1])

    def _lose_process(self) -> None:
        self.close()
        self._ends += 1
        self._news.set()

    def close(self) -> None:
        """End the process."""
        if self._connection is not None and self._process is not None:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(self._connection.fileno())
            self._connection.close()
            self._connection = None
            self._process.kill()
            self._process.wait()


def analyze(connection: Connection, path: Path, settings: RunSettings) -> None:
    """Answer questions, the newest one first; search for moments in between. Raises EOFError at the end."""
    with Recording(path) as recording, closing(RecordingIndex(recording, settings)) as index:
        asked_ns: int | None = None
        sent = 0
        while True:
            while connection.poll(None if asked_ns is None and index.is_complete else 0):
                asked_ns = connection.recv()
            if asked_ns is not None:
                progress = index.progress_at(asked_ns)
                if progress is not None:
                    connection.send(("progress", asked_ns, progress))
                    asked_ns = None
            else:
                index.work()
            if len(index.found) > sent or (asked_ns is None and index.is_complete):
                connection.send(("moments", index.found[sent:], index.is_complete))
                sent = len(index.found)


def main(descriptor: int) -> None:
    os.nice(10)  # the whole log takes minutes; the server and the dashboard come first
    with Connection(descriptor) as connection, suppress(EOFError, ConnectionError):
        analyze(connection, *connection.recv())


if __name__ == "__main__":
    main(int(sys.argv[1]))
