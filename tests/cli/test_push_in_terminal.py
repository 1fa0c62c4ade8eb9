"""push with somebody at the terminal: warnings ask, and progress is drawn."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest

from support.emulator import running_emulator
from support.stranger import Answer, Stranger
from tui.commands.progress_line import ProgressLine, progress_text

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0
RISKY = """
from truss_train import TrainingProject, TrainingJob, Image, Compute, Runtime
job = TrainingJob(
    image=Image(base_image="a"),
    compute=Compute(node_count=2),
    runtime=Runtime(start_commands=["echo hello"]),
)
project = TrainingProject(name="risky", job=job)
"""
QUESTION = b"submit it all the same?"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two nodes without checkpoints: something to be asked about."""
    path = tmp_path / "config.py"
    path.write_text(RISKY)
    return path


class AtTerminal:
    """A command whose standard input and error are a terminal; its output is a pipe."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self.terminal = terminal
        self.shown = b""

    def read_until(self, words: bytes) -> None:
        deadline = time.monotonic() + LIMIT_S
        while words not in self.shown:
            readable, _, _ = select.select([self.terminal], [], [], max(0.0, deadline - time.monotonic()))
            assert readable, f"{words!r} was not shown: {self.shown!r}"
            self.shown += self._read()

    def type(self, text: bytes) -> None:
        os.write(self.terminal, text)

    def finish(self) -> tuple[int, bytes]:
        """Exit code and standard output."""
        while chunk := self._read():
            self.shown += chunk
        out, _ = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out

    def _read(self) -> bytes:
        try:
            return os.read(self.terminal, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            return b""


@contextmanager
def at_terminal(environ: dict[str, str], *arguments: str) -> Iterator[AtTerminal]:
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", *arguments],
        cwd=ROOT,
        env={**os.environ, **environ, "COLUMNS": "100", "TERM": "xterm"},
        stdin=other_end,
        stdout=subprocess.PIPE,
        stderr=other_end,
    )
    os.close(other_end)
    try:
        yield AtTerminal(process, terminal)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        os.close(terminal)


def test_a_no_sends_nothing(config):
    with Stranger() as stranger:
        stranger.on("GET", "/v1/teams", Answer(body={"teams": []}))
        with at_terminal(stranger.environ(), "push", str(config)) as push:
            push.read_until(QUESTION)
            push.type(b"n\n")
            code, out = push.finish()

    assert (code, out) == (130, b"")
    assert b"checkpointing is off for 2" in push.shown
    assert {each.method for each in stranger.asked} == {"GET"}


def test_a_yes_sends_it_and_progress_is_drawn_and_wiped(config):
    with running_emulator() as emulator:
        environ = emulator.remote_environ()
        with at_terminal(environ, "push", str(config)) as push:
            push.read_until(QUESTION)
            push.type(b"y\n")
            code, out = push.finish()
        with at_terminal(environ, "push", str(config), "--yes") as unasked:
            unasked_code, _ = unasked.finish()

    assert code == 0
    assert b"risky" in out
    assert b"\x1b" not in out
    assert b"uploading" in push.shown
    assert "█".encode() in push.shown
    assert b"\r\x1b[K" in push.shown.split(b"uploading")[-1]
    assert unasked_code == 0
    assert QUESTION not in unasked.shown


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_ten_times_a_second_at_most():
    terminal, now_s = Terminal(), [0.0]
    line = ProgressLine(terminal, monotonic=lambda: now_s[0])

    for done in range(1, 100):
        now_s[0] += 0.01
        line.show("uploading", done, 1000)
    line.show("uploading", 1000, 1000)

    assert terminal.getvalue().count("uploading") == 11


def test_progress_is_nothing_where_there_is_no_terminal():
    stream = StringIO()
    line = ProgressLine(stream)

    line.show("uploading", 1, 2)
    line.clear()

    assert stream.getvalue() == ""


def test_progress_in_words():
    assert progress_text("creating", 0, 0) == "creating …"
    assert progress_text("uploading", 512, 1024, "again in 2 s") == (
        "uploading  ████████████░░░░░░░░░░░░  50 %  512 B of 1.00 KiB  again in 2 s"
    )
    assert progress_text("uploading", 4096, 1024).count("█") == 24
