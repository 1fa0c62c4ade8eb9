"""A child in a pseudo-terminal; everything that it writes there is kept, as text."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
LINES, COLUMNS = 40, 120


class RawTerminal:
    """A terminal of 120×40. Use it as a context manager."""

    def __init__(self, arguments: list[str], environ: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._child = subprocess.Popen(
            arguments,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environ,
            cwd=ROOT,
            start_new_session=True,
        )
        os.close(theirs)
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._seen = 0
        self.written = ""

    def __enter__(self) -> RawTerminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.kill()
        self._child.wait()
        os.close(self._ours)

    def press(self, keys: str) -> None:
        """Type; what was written before is no longer fresh."""
        self._seen = len(self.written)
        os.write(self._ours, keys.encode())

    def read_until(self, condition: Callable[[str], bool]) -> None:
        """Read until the condition holds of what was written since the last key."""
        give_up = time.monotonic() + PATIENCE_S
        while not condition(self.written[self._seen :]):
            assert time.monotonic() < give_up, self.written[self._seen :][-3000:]
            self._read()

    def end(self) -> int:
        """Read on until the child has ended; its exit code."""
        give_up = time.monotonic() + PATIENCE_S
        while self._child.poll() is None:
            assert time.monotonic() < give_up, self.written[-3000:]
            self._read()
        return self._child.returncode

    def _read(self) -> None:
        if select.select([self._ours], [], [], 0.1)[0]:
            try:
                self.written += self._decoder.decode(os.read(self._ours, 65536))
            except OSError:  # the child has closed its end
                return
