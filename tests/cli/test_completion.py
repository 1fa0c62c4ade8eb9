"""Completion of words in shells: commands, and what the server has."""

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from support.cli import RunCli
from support.stranger import Answer, FakeBaseten, job, project
from tui.cli import cli as root
from tui.commands.support.catalogue import COMMANDS
from tui.commands.support.word_kinds import CHECKPOINTS, JOBS, KINDS

ROOT = Path(__file__).parents[2]
ANSWERS = """
import json, os, sys
from click.shell_completion import BashComplete
from tui.cli import cli
from tui.commands.support.completing import complete_parameters
complete_parameters(cli)
offered = []
for line in sys.argv[1:]:
    os.environ |= {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    offered.append(BashComplete(cli, {}, "bt-tui", "_BT_TUI_COMPLETE").complete())
print(json.dumps(offered))
"""
"""Several lines at once, as each alone is answered."""
LOADED = """
import os, sys
leave = os._exit
def tell(code):
    print([name for name in ("textual", "rich.console", "plotext", "questionary") if name in sys.modules])
    sys.stdout.flush()
    leave(code)
os._exit = tell
from tui.cli import main
main()
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_program_and_variable(cli: RunCli, shell: str) -> None:
    result = cli("completion", shell)
    assert (result.code, "bt-tui" in result.out) == (0, True)
    assert f"_BT_TUI_COMPLETE={shell}_complete" in result.out


@pytest.fixture
def run_asked(stranger: FakeBaseten, clean_environ: dict[str, str]) -> Callable[..., str]:
    """Run this Python as a shell would at tab."""

    def run(
        *arguments: str, environ: dict[str, str] | None = None, line: str = "", at: str = "bash_complete"
    ) -> str:
        asked = {"_BT_TUI_COMPLETE": at, "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        done = subprocess.run(
            [sys.executable, *arguments],
            env=clean_environ | (stranger.environ() if environ is None else environ) | asked,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.fixture
def tab(run_asked: Callable[..., str]) -> Callable[..., list[list[str]]]:
    """Press tab after each of these command lines; the words that are offered each time."""

    def press(*lines: str, environ: dict[str, str] | None = None) -> list[list[str]]:
        answers = json.loads(run_asked("-c", ANSWERS, *lines, environ=environ))
        words = [[word for word in answer.split("\n") if word] for answer in answers]
        assert all(word.startswith("plain,") for offered in words for word in offered)
        return [[word.removeprefix("plain,") for word in offered] for offered in words]

    return press


def test_commands_are_offered_without_a_server(run_asked: Callable[..., str]) -> None:
    assert run_asked("-m", "tui", environ={}, line="bt-tui remo") == "plain,remotes\n"


def test_a_shell_that_asks_nothing_has_its_command_run(run_asked: Callable[..., str]) -> None:
    assert run_asked("-m", "tui", "--version", at="").startswith("bt-tui ")


def test_jobs_and_projects_are_those_of_the_server_and_none_twice(
    tab: Callable[..., list[list[str]]], stranger: FakeBaseten
) -> None:
    stranger.jobs = [job("abc1"), job("abd2"), job("xyz3")]
    stranger.projects = [project("p1", "llama-sft"), project("p2", "two words")]
    assert tab(
        "bt-tui logs ",
        "bt-tui stop --job-id abc1 --job-id ab",
        "bt-tui compare abc1 ab",
        "bt-tui jobs --project ",
        "bt-tui view --project-id ",
    ) == [["abc1", "abd2", "xyz3"], ["abd2"], ["abd2"], ["llama-sft", "p2"], ["p1", "p2"]]
    assert len(stranger.asked) == 2  # the rest is remembered


def test_words_that_a_shell_would_run_are_not_offered(
    tab: Callable[..., list[list[str]]], stranger: FakeBaseten
) -> None:
    stranger.jobs = [job(name) for name in ("$(id)", "`id`", "a;b", "-rf", "a\nplain,b", "a b", "good")]
    assert tab("bt-tui job ") == [["good"]]


def test_a_server_that_does_not_answer_is_not_waited_for_and_what_it_said_last_is_offered(
    run_asked: Callable[..., str], stranger: FakeBaseten, clean_environ: dict[str, str]
) -> None:
    def jobs() -> str:
        return run_asked("-m", "tui", line="bt-tui job ")

    stranger.jobs = [job("abc1", name="llama", error_message="s3cret")]
    assert jobs() == "plain,abc1\n"
    (kept,) = Path(clean_environ["HOME"]).rglob("completion-*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    tables = json.loads(kept.read_text())
    assert tables["jobs"]["words"] == [["abc1", "llama"]]
    assert stranger.key not in kept.read_text()

    tables["jobs"]["asked_s"] -= 3600
    kept.write_text(json.dumps(tables))
    stranger.on("POST", ".*", Answer(hangs=True))
    assert jobs() == "plain,abc1\n"
    assert len(stranger.asked) == 2
    kept.write_text("[")
    stranger.on("POST", ".*", Answer(401, {}))
    assert jobs() == "\n"


def test_checkpoints_are_those_of_the_job_that_is_named(
    tab: Callable[..., list[list[str]]], stranger: FakeBaseten
) -> None:
    listed = [
        {"training_job_id": "job1", "checkpoint_id": name, "size_bytes": 1}
        for name in ("checkpoint-100", "checkpoint-200")
    ]
    path = "/v1/training_projects/proj1/jobs/job1/checkpoints"
    stranger.on("GET", path, Answer(body={"checkpoints": listed}))
    assert tab(
        "bt-tui checkpoints show --job-id job1 ",
        "bt-tui checkpoints download --job-id other ",
        "bt-tui checkpoints show ",
    ) == [["checkpoint-100", "checkpoint-200"], [], []]


def test_the_remote_that_is_named_is_asked(
    tab: Callable[..., list[list[str]]], stranger: FakeBaseten, clean_environ: dict[str, str]
) -> None:
    Path(clean_environ["USER_TRUSSRC_PATH"]).write_text(
        f"[here]\nremote_provider = baseten\napi_key = {stranger.key}\nremote_url = {stranger.url}\n"
        "[there]\nremote_provider = baseten\napi_key = k\nremote_url = http://127.0.0.1:1\n"
    )
    assert tab(
        "bt-tui --remote here job ",
        "bt-tui job --remote there ",
        "bt-tui job --remote ",
        "bt-tui --remote local job ",  # it is not started
        "bt-tui job ",  # which one is not said
        environ={},
    ) == [["job1"], [], ["local", "here", "there"], [], []]
    assert not [*Path(clean_environ["HOME"]).rglob("emulator*")]


def test_no_screen_is_loaded_for_it(run_asked: Callable[..., str]) -> None:
    assert run_asked("-c", LOADED, line="bt-tui job ") == "plain,job1\n[]\n"


def all_parameters(command: click.Command) -> list[click.Parameter]:
    below = list(command.commands.values()) if isinstance(command, click.Group) else []
    return [*command.params, *(one for child in below for one in all_parameters(child))]


def test_every_parameter_that_takes_a_job_or_a_checkpoint_is_known() -> None:
    for name in COMMANDS:
        command = root.get_command(click.Context(root), name)
        for parameter in all_parameters(command):
            wanted = parameter.metavar or ""
            kind = KINDS.get(parameter.name or "")
            assert ("JOB_ID" in wanted) == (kind == JOBS), (command.name, parameter.name)
            assert "CHECKPOINT" not in wanted or kind == CHECKPOINTS, (command.name, parameter.name)
            assert wanted != "PROJECT" or kind == "projects", (command.name, parameter.name)
