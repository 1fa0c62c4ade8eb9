"""Each way to fail has its own exit code, which docs/commands.md and ``--help`` list, and says what to do."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job
from support.fake_runs import live_run
from tui.commands.support.exit_codes import ExitCode

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
FOLLOW = ("logs", "job1", "--follow", "--drain", "0")
Provoke = Callable[[FakeBaseten], tuple[str, ...]]


def ended(status: str, *words: str) -> Provoke:
    """The job is followed to that end."""

    def provoke(baseten: FakeBaseten) -> tuple[str, ...]:
        baseten.jobs = [job("job1", status)]
        return words

    return provoke


def answered(status: int) -> Provoke:
    def provoke(baseten: FakeBaseten) -> tuple[str, ...]:
        baseten.on("GET", "/v1/training_projects", Answer({"message": "no"}, status=status))
        return ("projects",)

    return provoke


def watched(use: float, silent_s: float) -> Provoke:
    """``health`` of a run whose GPUs are that busy and whose log has been silent for that long."""

    def provoke(baseten: FakeBaseten) -> tuple[str, ...]:
        live_run(baseten, "runs", silent_s=silent_s, use=use)
        return ("health", "runs")

    return provoke


def interrupted(baseten: FakeBaseten) -> tuple[str, ...]:
    """Ctrl-c comes while an answer is waited for."""

    def press(_asked: ReceivedRequest) -> Answer:
        os.kill(os.getpid(), signal.SIGINT)
        return Answer(hangs=True)

    baseten.on("GET", "/v1/training_projects", press)
    return ("projects",)


def nowhere(_baseten: FakeBaseten) -> tuple[str, ...]:
    return ("job", "nosuch")


WAYS: list[tuple[ExitCode, Provoke]] = [
    (ExitCode.OK, ended("COMPLETED", *FOLLOW)),
    (ExitCode.UNEXPECTED, answered(422)),
    (ExitCode.USAGE, ended("RUNNING", "--readonly", "stop", "job1")),
    (ExitCode.JOB_FAILED, ended("FAILED", *FOLLOW)),
    (ExitCode.JOB_FAILED, ended("OF_THE_FUTURE", *FOLLOW)),
    (ExitCode.JOB_STOPPED, ended("STOPPED", *FOLLOW)),
    (ExitCode.JOB_STOPPED, ended("PREEMPTED", *FOLLOW)),
    (ExitCode.DEPLOY_FAILED, ended("DEPLOY_FAILED", *FOLLOW)),
    (ExitCode.AUTH, answered(401)),
    (ExitCode.NOT_FOUND, nowhere),
    (ExitCode.UNREACHABLE, answered(503)),
    (ExitCode.TIMED_OUT, ended("RUNNING", "wait", "job1", "--timeout", "0s")),
    (ExitCode.WARNING, watched(use=0.0, silent_s=0)),
    (ExitCode.CRITICAL, watched(use=0.95, silent_s=1800)),
    (ExitCode.INTERRUPTED, interrupted),
]


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize(("code", "provoke"), WAYS)
def test_the_code_of(cli: RunCli, baseten: FakeBaseten, code: ExitCode, provoke: Provoke) -> None:
    result = cli(*provoke(baseten))
    assert result.code == code, result.err
    assert "Traceback" not in result.err


def test_every_code_has_a_way_and_is_published() -> None:
    rows = re.search(r"^\| Exit code \|.*?\n\n", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert rows is not None
    cells = re.findall(r"^\| ([\d, ]+) \|", rows[0], re.MULTILINE)
    told = {int(number) for cell in cells for number in cell.split(",")}
    assert told == {code for code, _ in WAYS} == set(ExitCode)


def test_without_a_remote_or_with_a_wrong_key_the_way_is_named(cli: RunCli, baseten: FakeBaseten) -> None:
    none, wrong = cli("jobs", environ={}), cli("jobs", environ=baseten.environ(key="wrong-key-77"))
    assert (none.code, wrong.code, none.out, wrong.out) == (6, 6, "", "")
    assert all(words in none.err for words in ("BASETEN_API_KEY", ".trussrc", "bt-tui demo"))
    for words in ("<environment>", "BASETEN_API_KEY", "this key opens nothing here"):
        assert words in wrong.err
    assert "wrong-key-77" not in wrong.err


def test_our_own_faults_are_a_sentence(cli: RunCli, baseten: FakeBaseten, monkeypatch: Any) -> None:
    """The details are one variable away."""

    def broken(*_arguments: object, **_named: object) -> str:
        raise ZeroDivisionError("nobody saw this coming")

    monkeypatch.setattr("tui.commands.jobs.listing.print_list", broken)
    brief = cli("jobs")
    detailed = cli("jobs", environ=baseten.environ() | {"BT_TUI_DEBUG": "1"})
    assert brief.code == detailed.code == 1
    assert "nobody saw this coming" in brief.err and "BT_TUI_DEBUG=1" in brief.err
    assert ("Traceback" in brief.err, "Traceback" in detailed.err) == (False, True)


def test_help_lists_every_exit_code_and_the_examples(cli: RunCli) -> None:
    result = cli("-h")
    assert result.code == 0
    for code in ("0", "1", "2", "3", "4", "5", "6", "7", "8", "130"):
        assert f" {code}  " in result.out
    assert "bt-tui logs JOB_ID --follow" in result.out
    assert cli("logs -h").out.startswith("Usage: bt-tui logs")
    version = cli("--version")
    assert (version.code, version.out.startswith("bt-tui ")) == (0, True)
