"""The dashboard in a real pseudo-terminal: what it writes there, byte by byte."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from api_client import TrainingClient, resolve_remote
from support.emulator import running_emulator
from support.stranger import Stranger

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0
LINES, COLUMNS = 24, 80
HOSTILE = (
    r"printf '\033[2J\033[31mcleared?\033]52;c;QUJD\007\033]0;title\007\n';"
    r"printf 'nul\000bell\007back\010\033c\n';"
    r"printf '[bold red]markup[/]\n';"
    r"head -c 1000000 /dev/zero | tr '\000' x; echo; printf 'the end\n'; sleep 60"
)
FOREIGN = (
    b"\x1b]52;c;QUJD",
    b"\x1b]0;title",
    b"\x1bc",
    b"\x1b[31mcleared",
    b"\x1b[2J\x1b[31m",
    b"bell\x07",
    b"back\x08",
)


class Terminal:
    """A child in a pseudo-terminal of 80×24; all that it writes is kept."""

    def __init__(self, arguments: list[str], environ: dict[str, str], *, stderr: int | None = None) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.child = subprocess.Popen(
            arguments,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs if stderr is None else stderr,
            env=environ,
            cwd=ROOT,
            start_new_session=True,
        )
        os.close(theirs)
        self.written = b""

    def read_until(self, condition: Callable[[bytes], bool]) -> None:
        give_up = time.monotonic() + PATIENCE_S
        while not condition(self.written):
            assert time.monotonic() < give_up, self.written[-2000:]
            if select.select([self._ours], [], [], 0.2)[0]:
                try:
                    self.written += os.read(self._ours, 65536)
                except OSError:  # the child has closed its end
                    return

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def hang_up(self) -> int:
        """Take the terminal away; without being its session's leader the child gets no signal of it."""
        os.close(self._ours)
        try:
            return self.child.wait(PATIENCE_S)
        finally:
            self.child.kill()
            self.child.wait()

    def close(self) -> int:
        try:
            return self.child.wait(PATIENCE_S)
        finally:
            self.child.kill()
            self.child.wait()
            os.close(self._ours)


async def test_nothing_of_a_hostile_log_reaches_the_terminal_as_a_command() -> None:
    with running_emulator("empty") as emulator:
        key = emulator.key
        environ = {**os.environ, **emulator.remote_environ(), "TERM": "xterm-256color"}
        async with TrainingClient(resolve_remote(environ=environ)) as client:
            project = await client.projects.upsert("hostile")
            job = await client.jobs.create(
                project.id,
                {"image": {"base_image": "x"}, "runtime": {"start_commands": [HOSTILE]}, "name": "hostile"},
            )
        terminal = Terminal([sys.executable, "-m", "tui", "watch", job.id], environ)
        terminal.read_until(lambda written: b"cleared?" in written and b"the end" in written)
        terminal.press(b"2")
        terminal.read_until(lambda written: written.count(b"the end") > 1)
        terminal.press(b"q")
        terminal.read_until(lambda written: b"\x1b[?1049l" in written)
        assert terminal.close() == 0
    assert b"[bold red]markup[/]" in terminal.written
    for sequence in FOREIGN:
        assert sequence not in terminal.written
    assert key.encode() not in terminal.written


def on_a_stranger(stranger: Stranger) -> dict[str, str]:
    return {**os.environ, **stranger.environ(), "TERM": "xterm-256color"}


def is_drawn(written: bytes) -> bool:
    return b"job1" in written or b"live" in written


def test_a_dashboard_whose_terminal_is_gone_ends() -> None:
    with Stranger() as stranger:
        terminal = Terminal([sys.executable, "-m", "tui"], on_a_stranger(stranger))
        terminal.read_until(is_drawn)
        assert terminal.hang_up() == 0


def test_with_stderr_elsewhere_it_is_drawn_on_the_terminal_and_nothing_in_the_file(tmp_path: Path) -> None:
    remarks = tmp_path / "remarks"
    with Stranger() as stranger, remarks.open("wb") as file:
        terminal = Terminal([sys.executable, "-m", "tui"], on_a_stranger(stranger), stderr=file.fileno())
        terminal.read_until(is_drawn)
        terminal.press(b"q")
        terminal.read_until(lambda written: b"\x1b[?1049l" in written)
        assert terminal.close() == 0
    assert remarks.read_bytes() == b""


@pytest.mark.parametrize(("stream", "words"), [("stdin", "standard input"), ("stdout", "standard output")])
def test_without_a_terminal_it_says_which_stream_leads_elsewhere(stream: str, words: str) -> None:
    ours, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs, stream: subprocess.DEVNULL}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tui"],
            check=False,
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            **streams,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 2
    assert words in done.stderr
