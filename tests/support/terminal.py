"""Run ``bt-tui`` in a pseudo-terminal and type into it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from support.warm_python import ROOT, WarmPython

PATIENCE_S = 100.0
DASHBOARD = ("-m", "tui")
DASHBOARD_ENDS = b"\x1b[?1049l"
"""The terminal gets back the screen that it had before."""
_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\r")


class AtTerminal:
    """The program, as a context manager; all that it writes on the terminal is kept in ``shown``.

    ``environ`` is its whole environment. It leads a session that the terminal does not govern: no signal
    tells it when that goes. ``output_apart`` makes standard output a pipe, read by ``end`` into ``output``;
    ``stderr`` sends that elsewhere. ``program`` is what runs instead of bt-tui.
    """

    def __init__(
        self,
        *arguments: str,
        environ: Mapping[str, str],
        lines: int = 24,
        columns: int = 80,
        folder: Path = ROOT,
        output_apart: bool = False,
        stderr: int | None = None,
        program: tuple[str, ...] = DASHBOARD,
    ) -> None:
        places = os.pathsep.join(filter(None, (str(ROOT), environ.get("PYTHONPATH"))))
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = WarmPython(
            [sys.executable, *program, *arguments],
            cwd=folder,
            env={**environ, "PYTHONPATH": places},
            stdin=theirs,
            stdout=subprocess.PIPE if output_apart else theirs,
            stderr=theirs if stderr is None else stderr,
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = b""
        self.output = b""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_about: object) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        if self._ours >= 0:
            os.close(self._ours)

    @property
    def text(self) -> str:
        return self.shown.decode("utf-8", "backslashreplace")

    def types(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def sees(self, *words: str) -> None:
        """Wait until all these come, after those seen before; how they are painted does not matter."""

        def come(shown: bytes) -> bool:
            # The terminal's own line breaks at its edge are no part of the words.
            fresh = _CONTROL.sub(b"", shown[self._seen :]).replace(b"\n", b"")
            return all(each.encode() in fresh for each in words)

        self.read_until(come, ", ".join(words))
        self._seen = len(self.shown)

    def answers(self, *questions_and_keys: tuple[str, bytes]) -> None:
        """Type the keys once the question is there, one after the other."""
        for words, keys in questions_and_keys:
            self.sees(words)
            self.types(keys)

    def read_until(self, holds: Callable[[bytes], bool], what: str = "") -> None:
        """Wait until it holds of everything shown so far."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not holds(self.shown):
            assert self._read(deadline_s), f"it ended without {what!r}:\n{self.so_far()}"

    def end(self) -> int:
        deadline_s = time.monotonic() + PATIENCE_S
        while self._read(deadline_s):
            pass
        self.output = self.process.communicate(timeout=PATIENCE_S)[0] or b""
        return self.process.returncode

    def hang_up(self) -> int:
        """Take the terminal away; the program gets no signal of it. Returns its exit code."""
        os.close(self._ours)
        self._ours = -1
        return self.process.wait(PATIENCE_S)

    def take(self, chunk: bytes) -> None:
        """Keep what has just been written: the place to look at it as a terminal does."""
        self.shown += chunk

    def so_far(self) -> str:
        return repr(self.shown[-3000:])

    def _read(self, deadline_s: float) -> bool:
        """Take what comes next; False when the program has closed its end."""
        readable, _, _ = select.select([self._ours], [], [], max(0.0, deadline_s - time.monotonic()))
        assert readable, f"nothing more was shown in time:\n{self.so_far()}"
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            return False
        self.take(chunk)
        return bool(chunk)
