"""SIGTERM and SIGHUP end the program as ctrl-c does: the terminal restored, a recording complete."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from api_client.recordings.reading import Recording
from support.fake_baseten import FakeBaseten
from support.fake_runs import live_run
from support.terminal import DASHBOARD, DASHBOARD_ENDS, ROOT, AtTerminal

LINES = 40


def environ_of(baseten: FakeBaseten, folder: Path) -> dict[str, str]:
    own = {"TERM": "xterm-256color", "XDG_STATE_HOME": str(folder), "PYTHONPATH": str(ROOT)}
    return {**os.environ, **baseten.environ(), **own}


@pytest.fixture
def run(baseten: FakeBaseten) -> str:
    live_run(baseten, "run1", losses=[2.0] * LINES)
    return "run1"


IN_BACKGROUND = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
from tui.cli import main
sys.exit(main())
"""
"""As a script without job control starts a command with ``&``."""
COUNTING = """
import threading
from tui.cli import main
count, start = [], threading.Thread.start
def counted(thread):
    count.append(thread.name)
    start(thread)
threading.Thread.start = counted
main()
print("input threads:", count.count("textual-input"))
"""
BACKGROUND = ("-c", IN_BACKGROUND)


@pytest.mark.parametrize(("number", "program"), [(signal.SIGTERM, DASHBOARD), (signal.SIGHUP, BACKGROUND)])
def test_dashboard_restores_terminal_and_completes_recording(
    number: signal.Signals, program: tuple[str, ...], baseten: FakeBaseten, run: str, tmp_path: Path
) -> None:
    environ = environ_of(baseten, tmp_path)
    with AtTerminal("watch", run, environ=environ, folder=tmp_path, program=program) as terminal:
        terminal.sees("step 39")
        terminal.types(b"\x12")
        terminal.sees("Recording to")
        terminal.process.send_signal(number)
        assert terminal.end() == 128 + number
    screen, ended, words = terminal.shown.rpartition(DASHBOARD_ENDS)
    assert ended and b"\x1b[?25h" in words
    assert screen.rfind(b"?1000l") > screen.rfind(b"?1000h")
    with Recording(tmp_path / "run1.btrun") as recording:
        assert recording.problems == []


@pytest.mark.parametrize(("number", "program"), [(signal.SIGHUP, DASHBOARD), (signal.SIGTERM, BACKGROUND)])
def test_record_follow_completes_its_file(
    number: signal.Signals, program: tuple[str, ...], baseten: FakeBaseten, run: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.btrun"
    arguments = ("record", run, "--follow", "-o", str(path))
    environ = environ_of(baseten, tmp_path)
    with AtTerminal(*arguments, environ=environ, folder=tmp_path, program=program) as terminal:
        terminal.sees(f"{LINES} lines")
        terminal.process.send_signal(number)
        assert terminal.end() == 128 + number
    assert "interrupted" in terminal.text
    with Recording(path) as recording:
        assert len(list(recording.log.entries())) == LINES


MISSING = """
import signal, sys
from tui.screens.job.log_pane import LogPane
on_mount = LogPane.on_mount
def interrupted(self):
    signal.raise_signal(signal.SIGTERM)
    self.query_one("#removed")
LogPane.on_mount = interrupted
from tui.cli import main
sys.exit(main())
"""
"""A signal ends the dashboard while a screen is being built."""
IN_THE_MIDDLE = """
import signal, sys
from tui.system.keyboard import TerminalDriver
disable_input = TerminalDriver.disable_input
def interrupted(self):
    signal.raise_signal({number})
    disable_input(self)
TerminalDriver.disable_input = interrupted
from tui.cli import main
sys.exit(main())
"""
"""A second signal arrives while the terminal is being restored."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_second_signal_does_not_keep_terminal_from_being_restored(
    number: signal.Signals, baseten: FakeBaseten, tmp_path: Path
) -> None:
    program = ("-c", IN_THE_MIDDLE.format(number=int(number)))
    with AtTerminal(environ=environ_of(baseten, tmp_path), program=program) as terminal:
        terminal.sees("live")
        terminal.process.send_signal(number)
        assert terminal.end() == 128 + number
    screen, ended, words = terminal.shown.rpartition(DASHBOARD_ENDS)
    assert ended and b"\x1b[?25h" in words
    assert screen.rfind(b"?1000l") > screen.rfind(b"?1000h")


def test_continue_signal_starts_no_second_input_thread(baseten: FakeBaseten, tmp_path: Path) -> None:
    """A closed terminal sends it after SIGHUP; the process would wait for the first thread forever."""
    with AtTerminal(environ=environ_of(baseten, tmp_path), program=("-c", COUNTING)) as terminal:
        terminal.sees("live")
        terminal.process.send_signal(signal.SIGCONT)
        terminal.types(b"q")
        terminal.end()
    assert "input threads: 1" in terminal.text


def test_error_of_a_missing_widget_while_ending_is_no_crash(
    baseten: FakeBaseten, run: str, tmp_path: Path
) -> None:
    program = ("-c", MISSING)
    with AtTerminal("watch", run, environ=environ_of(baseten, tmp_path), program=program) as terminal:
        assert terminal.end() == 143
    assert "report" not in terminal.text


WHILE_STARTING = """
import signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "tui.cli":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from tui.__main__ import run
run()
"""


def test_interrupt_while_starting_is_no_traceback() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WHILE_STARTING], cwd=ROOT, capture_output=True, check=False, text=True
    )
    assert (ended.returncode, ended.stderr) == (130, "")


def test_signal_that_the_parent_ignores_stays_ignored(baseten: FakeBaseten, tmp_path: Path) -> None:
    ignoring = IN_BACKGROUND.replace("SIGINT", "SIGHUP")
    environ = environ_of(baseten, tmp_path)
    with AtTerminal(environ=environ, program=("-c", ignoring)) as terminal:
        terminal.sees("live")
        terminal.process.send_signal(signal.SIGHUP)
        terminal.types(b"?")
        terminal.sees("Keyboard shortcuts")
        terminal.types(b"qq")
        assert terminal.end() == 0
