"""Each way to fail has its own exit code, which docs/commands.md and ``--help`` list, and says what to do."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api_client.http.retry import RetryPolicy
from support.cli import RunCli
from support.fake_backend import START
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job
from support.fake_runs import live_run
from support.faulty import FaultyServer, faulty_server
from support.served_platform import KEY, served_platform
from tui.commands.support.output import ExitCode

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
ENDS = ("COMPLETED", "FAILED", "OF_THE_FUTURE", "STOPPED", "PREEMPTED", "EXPIRED", "DEPLOY_FAILED", "RUNNING")
WAYS = {
    "logs completed -f --drain 0": ExitCode.OK,
    "--readonly stop running": ExitCode.USAGE,
    "logs failed -f --drain 0": ExitCode.JOB_FAILED,
    "logs of_the_future -f --drain 0": ExitCode.JOB_FAILED,
    "logs stopped -f --drain 0": ExitCode.JOB_STOPPED,
    "logs preempted -f --drain 0": ExitCode.JOB_STOPPED,
    "logs expired -f --drain 0": ExitCode.JOB_STOPPED,
    "logs deploy_failed -f --drain 0": ExitCode.DEPLOY_FAILED,
    "job nosuch": ExitCode.NOT_FOUND,
    "wait running --timeout 0s": ExitCode.TIMED_OUT,
    "health idle": ExitCode.WARNING,
    "health silent": ExitCode.CRITICAL,
    "projects": ExitCode.INTERRUPTED,
    "projects -o json": ExitCode.TERMINATED,
    "projects -o jsonl": ExitCode.HUNG_UP,
}
SIGNALS = {
    "projects": signal.SIGINT,
    "projects -o json": signal.SIGTERM,
    "projects -o jsonl": signal.SIGHUP,
}
"""The signal that arrives while the command waits for the server."""
OF_FAULTS = {ExitCode.UNEXPECTED, ExitCode.AUTH, ExitCode.UNREACHABLE}
"""Those that every command has, as is tested with each fault."""


@pytest.mark.usefixtures("no_waits", "own_signals")
@pytest.mark.parametrize("command", WAYS)
@pytest.mark.proves("docs/commands.md", "Exit codes")
def test_the_code_of(cli: RunCli, baseten: FakeBaseten, command: str) -> None:
    def interrupted(_asked: ReceivedRequest) -> Answer:
        os.kill(os.getpid(), SIGNALS[command])
        return Answer(hangs=True)

    if command in SIGNALS:
        baseten.on("GET", "/v1/training_projects", interrupted)
    baseten.jobs = [job(status.lower(), status) for status in ENDS]
    for name, silent_s in (("idle", 0), ("silent", 1800)):
        live_run(baseten, name, silent_s=silent_s, use=0.0)
    result = cli(command, code=WAYS[command])
    assert "Traceback" not in result.err, result.err


@pytest.mark.proves("docs/commands.md", "Exit codes")
def test_every_code_has_a_way_and_is_published(cli: RunCli) -> None:
    rows = re.search(r"^\| Exit code \|.*?\n\n", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert rows is not None
    cells = re.findall(r"^\| ([\d, ]+) \|", rows[0], re.MULTILINE)
    told = {int(number) for cell in cells for number in cell.split(",")}
    assert told == OF_FAULTS.union(WAYS.values()) == set(ExitCode)
    shown = cli("-h").out
    assert all(f" {code}  " in shown for code in told) and "bt-tui logs JOB_ID --follow" in shown


def test_without_a_remote_or_with_a_wrong_key_the_way_is_named(cli: RunCli, baseten: FakeBaseten) -> None:
    none = cli("jobs", environ={}, code=6)
    wrong = cli("jobs", environ=baseten.environ(key="wrong-key-77"), code=6)
    assert (none.out, wrong.out) == ("", "")
    assert all(words in none.err for words in ("BASETEN_API_KEY", ".trussrc", "bt-tui demo"))
    for words in ("<environment>", "BASETEN_API_KEY", "this key opens nothing here"):
        assert words in wrong.err
    assert "wrong-key-77" not in wrong.err


def test_address_without_a_key_is_a_missing_key(cli: RunCli) -> None:
    environ = {"BASETEN_MANAGEMENT_API_URL_OVERRIDE": "http://127.0.0.1:9"}
    assert "BASETEN_API_KEY" in cli("jobs", environ=environ, code=6).err


@pytest.mark.parametrize("command", ["health", "logs", "progress", "progress --each-line"])
def test_file_that_is_not_there_is_not_found(cli: RunCli, command: str) -> None:
    assert "nosuch.btrun: No such file" in cli(f"{command} --file nosuch.btrun", code=7).err


def test_our_own_faults_are_a_sentence(cli: RunCli, baseten: FakeBaseten, monkeypatch: Any) -> None:
    """The details are one variable away."""

    def broken(*_arguments: object, **_named: object) -> str:
        raise ZeroDivisionError("nobody saw this coming")

    monkeypatch.setattr("tui.commands.jobs.listing.print_list", broken)
    brief = cli("jobs", code=1)
    detailed = cli("jobs", environ=baseten.environ() | {"BT_TUI_DEBUG": "1"}, code=1)
    assert "nobody saw this coming" in brief.err and "BT_TUI_DEBUG=1" in brief.err
    assert ("Traceback" in brief.err, "Traceback" in detailed.err) == (False, True)


OF_A_JOB = ["job", "logs", "metrics", "stop", "cost", "recreate", "download", "health", "wait"]
COMMANDS = [f"{name} job00001" for name in OF_A_JOB]
COMMANDS += ["projects", "jobs", "capacity view", "deployments", "delete job00001 --yes"]
COMMANDS += ["checkpoints list --job-id job00001", "cache summarize llama-sft"]
FAULTS = {
    "401": (6, "refused the key of remote"),
    "403": (6, "may not do this"),
    "404": (7, ""),
    "422": (1, "422"),
    "429": (8, "429"),
    "503": (8, "503"),
    "html": (1, "HTML"),
    "malformed": (1, "unexpected data"),
    "reset": (8, "broke off the connection"),
    "redirect": (1, "elsewhere.invalid"),
}
PATIENT = {"logs job00001", "wait job00001"}
"""They wait for what may pass, as the streams do …"""
LASTING = {"401", "403", "404", "422", "redirect"}
"""… and this will not."""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    with faulty_server() as server, served_platform(server, tmp_path_factory.mktemp("platform")) as served:
        served.clock.moment = START
        yield server


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.proves("docs/commands.md", "Exit codes")
def test_every_command_tells_it_by_its_exit_code(
    fault: str, faulty: FaultyServer, cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = RetryPolicy.__init__.__defaults__
    monkeypatch.setattr(RetryPolicy.__init__, "__defaults__", (1, *defaults[1:]))
    code, words = FAULTS[fault]
    wrong = []
    for command in COMMANDS:
        if command in PATIENT and fault not in LASTING:
            continue
        faulty.set_faults(fault)
        result = cli(command, environ=faulty.environ(), code=None)
        if result.code != code or words not in result.err or result.out or "Traceback" in result.err:
            wrong.append(f"{command}: {result.code} {result.out[:60]!r} {result.err[-300:]!r}")
        if KEY in result.out + result.err:
            wrong.append(f"{command} shows the key")
    assert wrong == []
