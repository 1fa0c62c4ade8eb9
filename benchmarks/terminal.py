"""Run a program in a pseudo-terminal; measure when it paints a text, and its CPU time and memory."""

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
MAX_OUTPUT_BYTES = 512 * 1024
QUIET_S = 0.15
SETTLING_S = 40.0
"""Wait before idle measurements, because Home first reads the older logs of the running jobs."""
MIB = 1024 * 1024


class Terminal:
    """Runs ``command`` in a pseudo-terminal of 120 × 40; a thread reads all output at once."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self.started_s = time.perf_counter()
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            terminal_environ = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
            os.execvpe(command[0], list(command), {**environ, **terminal_environ})
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = psutil.Process(self.pid)
        self._output_changed = threading.Condition()
        self._output = bytearray()
        self._last_output_s = self.started_s
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
                chunk = os.read(self._descriptor, 65536)
            except (OSError, ValueError):
                chunk = b""
            if not chunk:
                return
            cpu_s = self.cpu_s
            with self._output_changed:
                self._last_cpu_s = cpu_s
                self._output += chunk
                self.bytes_written += len(chunk)
                if len(self._output) > MAX_OUTPUT_BYTES:
                    del self._output[: -MAX_OUTPUT_BYTES // 2]
                self._last_output_s = time.perf_counter()
                self._output_changed.notify_all()

    @property
    def text(self) -> str:
        """The newest output, without escape sequences."""
        with self._output_changed:
            return ESCAPES.sub(b"", bytes(self._output)).decode(errors="replace")

    def forget(self) -> None:
        """Discard the output so far, so that ``wait_for`` finds only new text."""
        with self._output_changed:
            self._output.clear()

    def wait_for(self, words: str | re.Pattern[str], timeout_s: float = 60.0) -> float:
        """Seconds from the start until the words, or a match, were written. Raises TimeoutError."""
        pattern = re.compile(re.escape(words)) if isinstance(words, str) else words
        deadline = time.perf_counter() + timeout_s
        while not pattern.search(self.text):
            with self._output_changed:
                if not self._output_changed.wait(0.5) and time.perf_counter() > deadline:
                    raise TimeoutError(f"no {pattern} after {timeout_s:.0f} s; last: {self.text[-2000:]!r}")
        return self._last_output_s - self.started_s

    def press(self, keys: str) -> None:
        """Type keys."""
        os.write(self._descriptor, keys.encode())

    def key_to_paint(self, keys: str, *, rest_s: float) -> tuple[float, float]:
        """Return CPU and wall time (ms) from a key to the first output after it.

        The CPU time (of all threads) does not depend on the load of the machine. First, wait until there is
        no output (``wait_until_quiet``). Raises TimeoutError.
        """
        self.wait_until_quiet(most_s=rest_s)
        with self._output_changed:
            bytes_before, cpu_s = self.bytes_written, self.cpu_s
            started_s = time.perf_counter()
            os.write(self._descriptor, keys.encode())
            while self.bytes_written == bytes_before:
                if not self._output_changed.wait(5.0):
                    raise TimeoutError(f"nothing was painted after {keys!r}")
            return (self._last_cpu_s - cpu_s) * 1000, (self._last_output_s - started_s) * 1000

    def wait_until_quiet(self, most_s: float = 3.0) -> None:
        """Wait until the program has written nothing for ``QUIET_S``, but at most ``most_s`` seconds."""
        deadline = time.perf_counter() + most_s
        while time.perf_counter() - self._last_output_s < QUIET_S and time.perf_counter() < deadline:
            time.sleep(0.01)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the process so far, of all its threads; 0 once it has ended."""
        try:
            if sys.platform == "linux":
                # The CPU clock of another process (clock_getcpuclockid(3)); others have steps of 10 ms.
                return time.clock_gettime((~self.pid << 3) | 2)
            return float(sum(self.process.cpu_times()[:2]))
        except (OSError, psutil.Error):
            return 0.0

    def cpu_percent(self, seconds: float) -> float:
        """Measure the CPU time of the process (not of its children) for some seconds, in % of a core."""
        cpu_before_s, started_s = self.cpu_s, time.perf_counter()
        time.sleep(seconds)
        return 100 * (self.cpu_s - cpu_before_s) / (time.perf_counter() - started_s)

    @property
    def resident_mib(self) -> float:
        """Resident memory."""
        return float(self.process.memory_info().rss) / MIB


@contextmanager
def fresh_user_environ(environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield an environment with an empty home folder, so without settings and state, and this tree's code."""
    with tempfile.TemporaryDirectory() as home:
        folders = {f"XDG_{kind}_HOME": f"{home}/{kind}" for kind in ("CONFIG", "STATE", "DATA", "CACHE")}
        yield {**environ, "HOME": home, **folders, "PYTHONPATH": str(ROOT)}


@contextmanager
def dashboard(environ: Mapping[str, str], *arguments: str) -> Iterator[Terminal]:
    """Run this tree's bt-tui in a terminal, without the user's settings and state."""
    command = [sys.executable, "-m", "tui", *arguments]
    with fresh_user_environ(environ) as user_environ, Terminal(command, user_environ) as terminal:
        yield terminal


def key_figures(
    name: str, terminal: Terminal, keys: Sequence[str], *, cause: str, rest_s: float = 3.0
) -> Iterator[Figure]:
    """Yield the median and the worst time from a key to paint: CPU time, which has a budget, and wall time.

    Before each key, wait until the program has finished painting, but at most ``rest_s``, because a live log
    never stops painting.
    """
    costs = [terminal.key_to_paint(key, rest_s=rest_s) for key in keys]
    for label, choose in (("median", statistics.median), (f"worst of {len(costs)}", max)):
        title = f"{name}: key to paint, {label}"
        cpu_ms, wall_ms = map(choose, zip(*costs, strict=True))
        yield Figure(f"{title}, CPU", cpu_ms, unit="ms", at_most=50, cause=cause)
        yield Figure(f"{title}, wall", wall_ms, unit="ms")
