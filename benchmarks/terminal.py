"""A program in a pseudo-terminal of its own: when it painted what, what a key costs, what it uses."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

import psutil
from harness import ROOT, Figure

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")
KEPT_BYTES = 512 * 1024
QUIET_S = 0.15
SETTLING_S = 40.0
"""In the first minute Home reads the older logs of the running jobs, beside whatever else happens."""
MIB = 1024 * 1024


class Terminal:
    """Runs ``command`` in a pty of 120 × 40; what it writes is read at once and kept."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self.begun = time.perf_counter()
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            kind = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
            os.execvpe(command[0], list(command), {**environ, **kind})
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = psutil.Process(self.pid)
        self._changed = threading.Condition()
        self._written = bytearray()
        self._last_at = self.begun
        self._last_cpu_s = 0.0
        self.bytes_written = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            os.kill(self.pid, signal.SIGTERM)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        self._reader.join(2)
        os.close(self._descriptor)

    def _read(self) -> None:
        while True:
            try:
                readable, _, _ = select.select([self._descriptor], [], [], 1.0)
                if not readable:
                    continue
                part = os.read(self._descriptor, 65536)
            except (OSError, ValueError):
                part = b""
            if not part:
                return
            cpu_s = self.cpu_s
            with self._changed:
                self._last_cpu_s = cpu_s
                self._written += part
                self.bytes_written += len(part)
                if len(self._written) > KEPT_BYTES:
                    del self._written[: -KEPT_BYTES // 2]
                self._last_at = time.perf_counter()
                self._changed.notify_all()

    @property
    def text(self) -> str:
        """What it wrote of late, escapes left out."""
        with self._changed:
            return ESCAPES.sub(b"", bytes(self._written)).decode(errors="replace")

    def forget(self) -> None:
        """Look only at what is written from now on."""
        with self._changed:
            self._written.clear()

    def wait_for(self, words: str | re.Pattern[str], timeout_s: float = 60.0) -> float:
        """Seconds from the start until the words, or a match, were written. Raises TimeoutError."""
        pattern = re.compile(re.escape(words)) if isinstance(words, str) else words
        deadline = time.perf_counter() + timeout_s
        while not pattern.search(self.text):
            with self._changed:
                if not self._changed.wait(0.5) and time.perf_counter() > deadline:
                    raise TimeoutError(f"no {pattern} after {timeout_s:.0f} s; last: {self.text[-2000:]!r}")
        return self._last_at - self.begun

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._descriptor, keys.encode())

    def key_to_paint(self, keys: str, *, rest_s: float) -> tuple[float, float]:
        """Return CPU and wall time (ms) from a key to the first bytes that it makes the program write.

        The CPU time (of all threads) does not depend on what else the machine has to do. Waits for rest
        first. Raises TimeoutError.
        """
        self.rest(most_s=rest_s)
        with self._changed:
            before, cpu_s = self.bytes_written, self.cpu_s
            begun = time.perf_counter()
            os.write(self._descriptor, keys.encode())
            while self.bytes_written == before:
                if not self._changed.wait(5.0):
                    raise TimeoutError(f"nothing was painted after {keys!r}")
            return (self._last_cpu_s - cpu_s) * 1000, (self._last_at - begun) * 1000

    def rest(self, most_s: float = 3.0) -> None:
        """Wait until nothing was written for a while, or not longer than ``most_s``."""
        deadline = time.perf_counter() + most_s
        while time.perf_counter() - self._last_at < QUIET_S and time.perf_counter() < deadline:
            time.sleep(0.01)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the process so far, of all its threads; 0 once it has ended."""
        try:
            if sys.platform == "linux":
                # Another process's clock (clock_getcpuclockid(3)), to the ns: others tick in 10 ms.
                return time.clock_gettime((~self.pid << 3) | 2)
            return float(sum(self.process.cpu_times()[:2]))
        except (OSError, psutil.Error):
            return 0.0

    def cpu_percent(self, seconds: float) -> float:
        """CPU time of the process (not of its children) over so many seconds, % of a core."""
        before, begun = self.cpu_s, time.perf_counter()
        time.sleep(seconds)
        return 100 * (self.cpu_s - before) / (time.perf_counter() - begun)

    @property
    def resident_mib(self) -> float:
        """Resident memory."""
        return float(self.process.memory_info().rss) / MIB


@contextmanager
def nobody(environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The environment of somebody who has no settings and remembers nothing, with this tree's code."""
    with tempfile.TemporaryDirectory() as home:
        folders = {f"XDG_{kind}_HOME": f"{home}/{kind}" for kind in ("CONFIG", "STATE", "DATA", "CACHE")}
        yield {**environ, "HOME": home, **folders, "PYTHONPATH": str(ROOT)}


@contextmanager
def dashboard(environ: Mapping[str, str], *arguments: str) -> Iterator[Terminal]:
    """bt-tui from this tree in a terminal, with settings and state of nobody."""
    command = [sys.executable, "-m", "tui", *arguments]
    with nobody(environ) as own, Terminal(command, own) as terminal:
        yield terminal


def key_figures(
    name: str, terminal: Terminal, keys: Sequence[str], *, cause: str, rest_s: float = 3.0
) -> Iterator[Figure]:
    """Yield the median and the worst key: the budget judges CPU time, the wall's is beside it.

    Each key waits for rest, ``rest_s`` at most: beside a live log there is none.
    """
    costs = [terminal.key_to_paint(key, rest_s=rest_s) for key in keys]
    for which, choose in (("median", statistics.median), (f"worst of {len(costs)}", max)):
        title = f"{name}: key to paint, {which}"
        cpu_ms, wall_ms = map(choose, zip(*costs, strict=True))
        yield Figure(f"{title}, CPU", cpu_ms, unit="ms", at_most=50, cause=cause)
        yield Figure(f"{title}, wall", wall_ms, unit="ms")
