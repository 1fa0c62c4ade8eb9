"""A child in a pseudo-terminal: everything that it writes there is kept, and what a person sees of it."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from rich.cells import cell_len

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
LINES, COLUMNS = 40, 120

_WRITTEN = re.compile(
    r"\x1b\[(?P<row>[0-9]*);?(?P<column>[0-9]*)H"
    r"|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[^\[\]]"  # looks, modes, titles
    r"|(?P<character>[^\x1b])"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?)?\Z")


class Picture:
    """The characters on a terminal that only goes to places and writes there: the dashboard does no more."""

    def __init__(self) -> None:
        self._rows = [[" "] * COLUMNS for _ in range(LINES)]
        self._row = self._column = 0
        self._rest = ""

    def __str__(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._rows)

    def write(self, text: str) -> None:
        """Take what was written next; a sequence may come in two parts."""
        text = self._rest + text
        cut = _UNFINISHED.search(text)
        self._rest = text[cut.start() :] if cut else ""
        for found in _WRITTEN.finditer(text, 0, cut.start() if cut else len(text)):
            if found["row"] is not None:
                self._row, self._column = int(found["row"] or 1) - 1, int(found["column"] or 1) - 1
            elif found["character"] == "\n":
                self._row, self._column = self._row + 1, 0
            elif found["character"] is not None:
                self._put(found["character"])

    def _put(self, character: str) -> None:
        cells = cell_len(character)
        if cells and self._row < LINES and self._column + cells <= COLUMNS:
            self._rows[self._row][self._column : self._column + cells] = [character, *[""] * (cells - 1)]
        self._column += cells


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
        self.written = ""
        self.picture = Picture()

    def __enter__(self) -> RawTerminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.kill()
        self._child.wait()
        os.close(self._ours)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._ours, keys.encode())

    def read_until(self, shown: Callable[[str], bool]) -> None:
        """Read until that holds of the picture; fails with the picture when it never does."""
        give_up = time.monotonic() + PATIENCE_S
        while not shown(str(self.picture)):
            assert time.monotonic() < give_up, str(self.picture)
            self._read()

    def end(self) -> int:
        """Read on until the child has ended; its exit code."""
        give_up = time.monotonic() + PATIENCE_S
        while self._child.poll() is None:
            assert time.monotonic() < give_up, str(self.picture)
            self._read()
        return self._child.returncode

    def _read(self) -> None:
        if select.select([self._ours], [], [], 0.1)[0]:
            try:
                fresh = self._decoder.decode(os.read(self._ours, 65536))
            except OSError:  # the child has closed its end
                return
            self.written += fresh
            self.picture.write(fresh)
