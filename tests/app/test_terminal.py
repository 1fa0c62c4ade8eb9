"""The dashboard in a real pseudo-terminal: what it writes there, byte by byte."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from textual import messages
from textual.pilot import Pilot

from api_client import TrainingClient, resolve_remote
from api_client.emulator.processes import EmulatorChild
from support.fake_baseten import FakeBaseten
from support.terminal import DASHBOARD_ENDS, PATIENCE_S, ROOT, AtTerminal
from tui.app.shell import BtTuiApp
from tui.app.terminal import EXIT_HUNG_UP

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


@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_nothing_of_a_hostile_log_reaches_the_terminal_as_a_command() -> None:
    with EmulatorChild(world="empty") as emulator:
        key = emulator.key
        environ = {**os.environ, **emulator.remote_environ(), "TERM": "xterm-256color"}
        async with TrainingClient(resolve_remote(environ=environ)) as client:
            project = await client.projects.upsert("hostile")
            job = await client.jobs.create(
                project.id,
                {"image": {"base_image": "x"}, "runtime": {"start_commands": [HOSTILE]}, "name": "hostile"},
            )
        with AtTerminal("watch", job.id, environ=environ) as terminal:
            terminal.read_until(lambda shown: b"cleared?" in shown and b"the end" in shown)
            terminal.types(b"2")
            terminal.read_until(lambda shown: shown.count(b"the end") > 1)
            terminal.types(b"q")
            assert terminal.end() == 0, terminal.text[-4000:]
    assert DASHBOARD_ENDS in terminal.shown
    assert b"[bold red]markup[/]" in terminal.shown
    for sequence in FOREIGN:
        assert sequence not in terminal.shown
    assert key.encode() not in terminal.shown


def environ_of(baseten: FakeBaseten) -> dict[str, str]:
    return {**os.environ, **baseten.environ(), "TERM": "xterm-256color"}


def is_drawn(shown: bytes) -> bool:
    return b"job1" in shown or b"live" in shown


def test_a_dashboard_whose_terminal_is_gone_ends() -> None:
    with FakeBaseten() as baseten, AtTerminal(environ=environ_of(baseten)) as terminal:
        terminal.read_until(is_drawn)
        assert terminal.hang_up() == EXIT_HUNG_UP


def test_a_dashboard_that_can_no_longer_be_drawn_ends() -> None:
    display, theirs = pty.openpty()
    with FakeBaseten() as baseten, AtTerminal(environ=environ_of(baseten), stderr=theirs) as terminal:
        os.close(theirs)
        shown = b""
        while not is_drawn(shown):
            shown += os.read(display, 65536)
        os.close(display)
        terminal.types(b"?")  # the terminal that it reads from is still there
        assert terminal.process.wait(PATIENCE_S) == EXIT_HUNG_UP


def test_with_stderr_elsewhere_it_is_drawn_on_the_terminal_and_nothing_in_the_file(tmp_path: Path) -> None:
    remarks = tmp_path / "remarks"
    with (
        FakeBaseten() as baseten,
        remarks.open("wb") as file,
        AtTerminal(environ=environ_of(baseten), stderr=file.fileno()) as terminal,
    ):
        terminal.read_until(is_drawn)
        terminal.types(b"q")
        assert terminal.end() == 0
    assert DASHBOARD_ENDS in terminal.shown
    assert remarks.read_bytes() == b""


@pytest.mark.parametrize(("stream", "words"), [("stdin", "standard input"), ("stdout", "standard output")])
def test_without_a_terminal_it_says_which_stream_leads_elsewhere(stream: str, words: str) -> None:
    ours, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs, stream: subprocess.DEVNULL}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tui"], check=False, cwd=ROOT, stderr=subprocess.PIPE, text=True, **streams
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 2
    assert words in done.stderr


async def test_dashboard_that_its_browser_left_has_not_crashed() -> None:
    async def leave(pilot: Pilot[object]) -> None:
        pilot.app.post_message(messages.ExitApp())

    app = BtTuiApp(None)
    await app.run_async(headless=True, auto_pilot=leave)
    assert not app.ended_without_request
