"""The table for people who come from the truss CLI: what it names is there."""

import re
from pathlib import Path
from typing import Any

import click
import pytest

from support.cli import RunCli
from support.stranger import FakeBaseten, job, project
from tui.cli import cli as program

PAGE = Path(__file__).parents[2] / "docs" / "truss.md"
ROW = re.compile(r"^\| `(?P<theirs>[^`]+)` \| (?P<ours>.+?) \| (?P<difference>.*?) ?\|$", re.MULTILINE)
NAMED = re.findall(r"`bt-tui ([^`]+)`", PAGE.read_text())
OFFICIAL = (
    "push recreate logs stop view metrics deploy_checkpoints download get_checkpoint_urls init"
    " cache checkpoints update update_session isession capacity workstation"
)


@pytest.mark.parametrize("words", sorted(set(NAMED)))
def test_every_command_that_is_named_is_there(words: Any) -> None:
    command: click.Command = program
    for word in words.split():
        if word.startswith("--"):
            names = [name for option in command.params for name in option.opts]
            assert word in names, f"{command.name} has no {word}"
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            assert found is not None, f"{command.name} has no command {word}"
            command = found


def test_every_official_command_has_a_row_that_says_what_to_do() -> None:
    rows = list(ROW.finditer(PAGE.read_text()))
    theirs = [tuple(row["theirs"].split()[:2]) for row in rows]
    assert [word for word in OFFICIAL.split() if ("train", word) not in theirs] == []
    assert all("bt-tui" in row["ours"] or "not there" in row["difference"] for row in rows[1:])


def test_the_official_word_for_looking(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.projects, stranger.jobs = [project()], [job("one"), job("two")]
    alone = cli("view").out
    assert alone == cli("projects").out + "\n" + cli("jobs").out
    for arguments in (("--project-id", "proj1"), ("--project", "llama-sft")):
        assert cli("view", *arguments).out == cli("jobs --project proj1").out
    assert cli("view --job-id two -o json").out == cli("job two -o json").out
    assert cli("view -o json").out == cli("jobs -o json").out
    assert cli("view --job-id three").code == 7


OFFICIAL_OPTIONS = {
    "push": "tail job-name team interactive interactive-timeout-minutes accelerator node-count entrypoint"
    " priority spot",
    "recreate": "job-id tail",
    "logs": "project-id project job-id tail",
    "stop": "project-id project job-id all",
    "view": "project-id project job-id",
    "metrics": "project-id project job-id",
    "deploy_checkpoints": "project-id project job-id config dry-run truss-config-output-dir",
    "download": "job-id target-directory no-unzip",
    "get_checkpoint_urls": "job-id",
    "init": "list-examples target-directory examples",
    "cache summarize": "sort order output",
    "checkpoints list": "project-id project job-id checkpoint-name sort order output",
    "update": "job-id priority",
    "update_session": "trigger timeout-minutes",
    "isession": "job-id update-timeout update-trigger format",
    "capacity view": "remote",
    "capacity update": "team gpu-type capacity",
    "workstation": "accelerator gpu-count node-count project-id orchestrator image enable-checkpointing"
    " checkpoint-path checkpoint-volume-size checkpoint-from-job team tail spot output",
}
"""truss 0.18.35, ``truss train … --help`` (API facts, 8)."""


@pytest.mark.parametrize("words", OFFICIAL_OPTIONS)
def test_the_official_options_are_understood(words: Any) -> None:
    command: click.Command = program
    for word in words.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    ours = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    missing = {f"--{name}" for name in OFFICIAL_OPTIONS[words].split()} - ours
    assert missing == set()
    if words != "init":
        assert {"--remote", "--non-interactive", "--log"} <= ours


def test_only_the_jobs_of_a_project_are_stopped(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.projects = [project(), project("proj2", "other")]
    stranger.jobs = [job("mine", "RUNNING"), job("theirs", "RUNNING", training_project_id="proj2")]
    asked = cli("stop --project other --non-interactive")
    assert asked.code == 2
    assert "theirs" in asked.err
    assert "mine" not in asked.err


def test_a_starter_project_by_the_official_option(cli: RunCli, tmp_path: Path) -> None:
    assert cli("init", "--target-directory", str(tmp_path / "there")).code == 0
    assert (tmp_path / "there" / "config.py").is_file()
