"""push with somebody at the terminal: warnings ask, and progress is drawn."""

import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from api_client.emulator.processes import EmulatorChild
from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten
from support.terminal import AtTerminal
from tui.commands.support.output import ProgressLine, progress_text

RISKY = """
from truss_train import TrainingProject, TrainingJob, Image, Compute, Runtime
job = TrainingJob(
    image=Image(base_image="a"),
    compute=Compute(node_count=2),
    runtime=Runtime(start_commands=["echo hello"]),
)
project = TrainingProject(name="risky", job=job)
"""
QUESTION = "submit anyway?"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two nodes without checkpoints: something to be asked about."""
    path = tmp_path / "config.py"
    path.write_text(RISKY)
    return path


def test_a_no_sends_nothing(
    cli: RunCli, baseten: FakeBaseten, typed: Callable[[str], None], config: Path
) -> None:
    baseten.on("GET", "/v1/teams", Answer({"teams": []}))
    typed("n")
    result = cli("push", str(config))
    assert (result.code, result.out) == (130, "")
    assert "checkpointing is off for 2" in result.err and QUESTION in result.err
    assert {each.method for each in baseten.asked} == {"GET"}


def test_a_yes_sends_it_and_progress_is_drawn_and_wiped(emulator: EmulatorChild, config: Path) -> None:
    environ = {**os.environ, **emulator.remote_environ(), "COLUMNS": "100", "TERM": "xterm"}
    with AtTerminal("push", str(config), environ=environ, output_apart=True) as push:
        push.answers((QUESTION, b"y\n"))
        code, out = push.end(), push.output
    assert (code, b"risky" in out, b"\x1b" in out) == (0, True, False)
    assert b"--follow" in push.shown
    assert "█".encode() in push.shown
    assert b"\r\x1b[K" in push.shown.split(b"uploading")[-1]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_ten_times_a_second_at_most() -> None:
    terminal, now_s = Terminal(), [0.0]
    line = ProgressLine(terminal, monotonic=lambda: now_s[0])
    for done in range(1, 100):
        now_s[0] += 0.01
        line.show("uploading", done, 1000)
    line.show("uploading", 1000, 1000)
    assert terminal.getvalue().count("uploading") == 11


def test_progress_in_words() -> None:
    assert progress_text("creating", 0, 0) == "creating …"
    assert progress_text("uploading", 512, 1024, "again in 2 s") == (
        "uploading  ████████████░░░░░░░░░░░░  50 %  512 B of 1.00 KiB  again in 2 s"
    )
    assert progress_text("uploading", 4096, 1024).count("█") == 24
