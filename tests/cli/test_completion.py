"""What shells and programs are told about the commands: completion, and help as JSON."""

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import BashComplete

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, job, project
from support.fake_runs import finished_run
from support.warm_python import ROOT
from tui.cli import cli as program, cli as root
from tui.commands.support.catalogue import complete_parameters, name_kind_of, walk_commands
from tui.commands.support.options import CHECKPOINTS, JOBS, METRICS
from tui.commands.support.output import ExitCode


def test_the_script_names_program_and_variable(cli: RunCli) -> None:
    for shell in ("bash", "zsh", "fish"):
        result = cli("completion", shell)
        assert "bt-tui" in result.out
        assert f"_BT_TUI_COMPLETE={shell}_complete" in result.out
    assert cli("--version", environ={"_BT_TUI_COMPLETE": ""}).out.startswith("bt-tui "), "nothing is asked"


Tab = Callable[..., list[list[str]]]


@pytest.fixture
def tab(baseten: FakeBaseten, clean_environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Tab:
    """Press tab after each of these command lines; the words that are offered each time."""
    complete_parameters(root)

    def offered(line: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        words = BashComplete(root, {}, "bt-tui", "_BT_TUI_COMPLETE").complete().split("\n")
        assert all(word.startswith("plain,") for word in words if word)
        return [word.removeprefix("plain,") for word in words if word]

    def press(*lines: str, environ: dict[str, str] | None = None) -> list[list[str]]:
        wanted = clean_environ | (baseten.environ() if environ is None else environ)
        wanted |= {f"XDG_{place}_HOME": wanted["HOME"] for place in ("CONFIG", "STATE", "CACHE", "DATA")}
        for name, value in (wanted | {"_BT_TUI_COMPLETE": "bash_complete"}).items():
            monkeypatch.setenv(name, value)
        return [offered(line) for line in lines]

    return press


@pytest.mark.proves("docs/commands.md", "`completion`")
def test_jobs_and_projects_are_those_of_the_server_and_none_twice(tab: Tab, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("abc1"), job("abd2"), job("xyz3")]
    baseten.projects = [project("p1", "llama-sft"), project("p2", "two words")]
    assert tab(
        "bt-tui logs ",
        "bt-tui stop --job-id abc1 --job-id ab",
        "bt-tui compare abc1 ab",
        "bt-tui jobs --project ",
        "bt-tui view --project-id ",
    ) == [["abc1", "abd2", "xyz3"], ["abd2"], ["abd2"], ["llama-sft", "p2"], ["llama-sft", "p2"]]
    assert len(baseten.asked) == 2  # the rest is remembered


def test_jobs_are_offered_by_name_and_once_begun_by_id_too(tab: Tab, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("abc1", name="llama"), job("abd2", name="twice"), job("abe3", name="twice")]
    baseten.jobs.append(job("xyz4", name="$(id)"))
    assert tab("bt-tui job ", "bt-tui job ll", "bt-tui job ab", "bt-tui job t", "bt-tui job x") == [
        ["llama", "abd2", "abe3", "xyz4"],
        ["llama"],
        ["abc1", "abd2", "abe3"],
        [],
        ["xyz4"],
    ]


def test_words_that_a_shell_would_run_are_not_offered(tab: Tab, baseten: FakeBaseten) -> None:
    baseten.jobs = [job(name) for name in ("$(id)", "`id`", "a;b", "-rf", "a\nplain,b", "a b", "good")]
    assert tab("bt-tui job ") == [["good"]]


def test_a_server_that_does_not_answer_is_not_waited_for(tab: Tab, baseten: Any, tmp_path: Path) -> None:
    """What it answered last is offered."""
    baseten.jobs = [job("abc1", name="llama", error_message="s3cret")]
    assert tab("bt-tui job ") == [["llama"]]
    (kept,) = tmp_path.rglob("completion-*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    answer = json.loads(kept.read_text())
    assert answer["words"] == [["abc1", "llama"]]
    assert baseten.key not in kept.read_text()
    answer["asked_s"] -= 3600
    kept.write_text(json.dumps(answer))
    baseten.on("POST", ".*", Answer(hangs=True))
    assert tab("bt-tui job ") == [["llama"]]
    assert len(baseten.asked) == 2
    kept.write_text("[")
    baseten.on("POST", ".*", Answer({}, status=401))
    assert tab("bt-tui job ") == [[]]


def test_checkpoints_are_those_of_the_job_that_is_named(tab: Tab, baseten: FakeBaseten) -> None:
    listed = [{"training_job_id": "job1", "checkpoint_id": f"checkpoint-{step}"} for step in (100, 200)]
    path = "/v1/training_projects/proj1/jobs/job1/checkpoints"
    baseten.jobs = [job("job1", name="run1")]
    baseten.on("GET", path, Answer({"checkpoints": listed}))
    assert tab(
        "bt-tui checkpoints show --job-id job1 ",
        "bt-tui checkpoints show --job-id run1 ",
        "bt-tui checkpoints download --job-id other ",
        "bt-tui checkpoints show ",
    ) == [["checkpoint-100", "checkpoint-200"]] * 2 + [[], []]


def test_metrics_are_those_in_the_log_of_the_job(tab: Tab, baseten: FakeBaseten) -> None:
    finished_run(baseten, "run1", losses=[3.0, 2.0], metrics=" reward=0.5 critic/kl=nan $(id)=7")
    assert tab(
        "bt-tui progress run1 --metric ", "bt-tui progress run1 --metric c", "bt-tui progress --metric "
    ) == [
        ["loss", "learning_rate", "tokens_per_s", "critic/kl", "reward"],
        ["critic/kl"],
        [],
    ]


def test_the_remote_that_is_named_is_asked(tab: Tab, baseten: FakeBaseten, trussrc: Path) -> None:
    trussrc.write_text(
        f"[here]\nremote_provider = baseten\napi_key = {baseten.key}\nremote_url = {baseten.url}\n"
        "[there]\nremote_provider = baseten\napi_key = k\nremote_url = http://127.0.0.1:1\n"
    )
    assert tab(
        "bt-tui --remote here job ",
        "bt-tui job --remote there ",
        "bt-tui job --remote ",
        "bt-tui --remote local job ",  # it is not started
        "bt-tui job ",  # which one is not said
        "bt-tui remo",
        environ={},
    ) == [["job1"], [], ["local", "here", "there"], [], [], ["remotes"]]
    assert not [*trussrc.parent.rglob("emulator*")]


def test_no_screen_is_loaded_for_it(baseten: FakeBaseten, clean_environ: dict[str, str]) -> None:
    asked = {"_BT_TUI_COMPLETE": "bash_complete", "COMP_WORDS": "bt-tui job ", "COMP_CWORD": "2"}
    command = [sys.executable, "-X", "importtime", "-m", "tui"]
    environ = clean_environ | baseten.environ() | asked
    done = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, check=False)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert (done.returncode, done.stdout, "httpx" in loaded) == (0, "plain,job1\n", True)
    assert loaded & {"textual", "rich.console", "plotext", "questionary"} == set()


def test_parameters_shown_as_a_job_or_checkpoint_complete_as_such() -> None:
    for words, command in walk_commands(root):
        for parameter in command.params:
            shown, kind = parameter.metavar or "", name_kind_of(parameter)
            assert ("JOB_ID" in shown) == (kind == JOBS), (words, parameter.name)
            assert "CHECKPOINT" not in shown or kind == CHECKPOINTS, (words, parameter.name)
            assert shown != "METRIC" or kind == METRICS, (words, parameter.name)
            assert shown != "PROJECT" or kind == "projects", (words, parameter.name)


def test_help_json_has_every_listed_command_and_every_exit_code(cli: RunCli) -> None:
    document = cli("--help-json", environ={}).json
    shown = {words for words, command in walk_commands(program) if words and not command.hidden}
    assert {each["name"] for each in document["commands"]} == shown
    assert {each["code"] for each in document["exit_codes"]} == set(map(int, ExitCode))


def test_help_json_describes_parameters_as_help_does(cli: RunCli) -> None:
    commands = {each["name"]: each for each in cli("--help-json", environ={}).json["commands"]}
    (argument,) = commands["compare"]["arguments"]
    assert (argument["names"], argument["required"], argument["repeatable"]) == (["job_ids"], True, True)
    options = {each["names"][-1]: each for each in commands["stop"]["options"]}
    assert (options["--all"]["value"], options["--project"]["value"]) == (None, "PROJECT")
    assert "json" in next(each for each in commands["jobs"]["options"] if "-o" in each["names"])["choices"]
    assert not any("--non-interactive" in each["names"] for each in commands["stop"]["options"])


def test_no_two_options_of_a_command_have_the_same_help(cli: RunCli) -> None:
    for command in cli("--help-json", environ={}).json["commands"]:
        helps = [option["help"] for option in command["options"] if option["help"]]
        assert len(set(helps)) == len(helps), command["name"]
