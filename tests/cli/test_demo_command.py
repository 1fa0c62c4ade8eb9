"""``bt-tui demo`` in a terminal: however it ends, its emulator ends with it."""

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0
COLUMNS, LINES = 100, 30


@dataclass
class InTerminal:
    """A program at the other end of a terminal."""

    pid: int
    terminal: int

    def read_until(self, words: bytes) -> bytes:
        """Everything it draws, until these words are among it."""
        drawn = b""
        deadline = time.monotonic() + LIMIT_S
        while words not in drawn:
            left_s = deadline - time.monotonic()
            readable, _, _ = select.select([self.terminal], [], [], max(0.0, left_s))
            assert readable, f"{words!r} was not drawn in time: {drawn[-2000:]!r}"
            drawn += os.read(self.terminal, 65536)
        return drawn

    def drain_until_gone(self) -> int:
        """Read on until it has closed the terminal; its exit code."""
        while True:
            try:
                if not os.read(self.terminal, 65536):
                    break
            except OSError:  # Linux's way to say that the other end is closed
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children(recursive=True)


@contextmanager
def in_terminal(arguments: list[str], environ: dict[str, str]) -> Iterator[InTerminal]:
    """Start ``bt-tui`` with a terminal of its own."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execve(sys.executable, [sys.executable, "-m", "tui", *arguments], environ)
    try:
        yield InTerminal(pid, terminal)
    finally:
        os.close(terminal)


@pytest.fixture
def terminal_environ(clean_environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    size = {"COLUMNS": str(COLUMNS), "LINES": str(LINES)}
    return clean_environ | size | {"TERM": "xterm-256color", "TMPDIR": str(tmp_path)}


def assert_all_gone(processes: list[psutil.Process], folder: Path) -> None:
    assert processes, "there was no emulator to begin with"
    _gone, alive = psutil.wait_procs(processes, timeout=LIMIT_S)
    assert alive == []
    assert list(folder.glob("bt-tui-demo-*")) == []


def test_quitting_leaves_no_process_and_no_data(terminal_environ, tmp_path):
    with in_terminal(["demo", "--world", "empty"], terminal_environ) as program:
        program.read_until(b"demo")
        started = program.descendants()
        os.write(program.terminal, b"q")
        code = program.drain_until_gone()

    assert code == 0
    assert_all_gone(started, tmp_path)


def test_being_killed_leaves_no_process_and_no_data(terminal_environ, tmp_path):
    with in_terminal(["demo", "--world", "empty"], terminal_environ) as program:
        program.read_until(b"demo")
        started = program.descendants()
        os.kill(program.pid, signal.SIGKILL)
        program.drain_until_gone()

    assert_all_gone(started, tmp_path)


def test_without_any_remote_the_welcome_screen_opens(terminal_environ):
    with in_terminal([], terminal_environ) as program:
        program.read_until(b"emulator")
        os.write(program.terminal, b"q")

        assert program.drain_until_gone() == 0
