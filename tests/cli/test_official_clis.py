"""The pages for people who come from the official CLIs: what they name works with `bt-tui` in place of it."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from support.cli import RunCli
from support.every_command import ENDED, JOB, PROJECT, SERVED, WAITING
from support.fake_baseten import FakeBaseten, job, project
from support.warm_python import ROOT
from tui.cli import cli as program

PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("truss", "baseten")}
RECORDED = json.loads((Path(__file__).parent / "golden" / "official_commands.json").read_text())
TREES = {name: recorded["commands"] for name, recorded in RECORDED.items()}
ROW = re.compile(r"^\| `(?P<theirs>[^`]+)` \| (?P<ours>.+?) \| (?P<difference>.*?) ?\|$", re.MULTILINE)
ROWS = {
    name: {row["theirs"].removesuffix(" CONFIG"): row for row in ROW.finditer(page)}
    for name, page in PAGES.items()
}


def command_of(words: str) -> click.Command:
    """The command that a command line runs."""
    command: click.Command = program
    rest = words.split()
    while isinstance(command, click.Group) and rest:
        _name, found, rest = command.resolve_command(click.Context(command), rest)
        assert found is not None
        command = found
    return command


def options_of(command: click.Command) -> set[str]:
    return {name for option in command.params for name in (*option.opts, *option.secondary_opts)}


def test_every_command_that_is_named_is_there() -> None:
    for words in set(re.findall(r"`bt-tui ([^`]+)`", "".join(PAGES.values()))):
        assert set(re.findall(r"--[\w-]+", words)) <= options_of(command_of(words)), words


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.proves("README.md", "On your own workspace")
def test_every_official_command_and_option_is_there_or_named_as_missing(name: Any) -> None:
    commands = {words for words in ROWS[name] if not words.startswith("-") and "…" not in words}
    assert commands == set(TREES[name])
    nowhere = {option for option, row in ROWS[name].items() if row["ours"] == "–"}
    for words in commands:
        known = options_of(command_of(words))
        named = set(re.findall(r"no `(--[\w-]+)`", ROWS[name][words]["difference"]))
        assert named <= set(TREES[name][words]) - known <= named | nowhere, words
        assert not nowhere & known, words


class Run(NamedTuple):
    """Arguments to try, and keys of the JSON that `-o json` gives then."""

    arguments: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


OF_JOB = ("--job-id", JOB)
TABLE_SORT = ("--sort", "size", "--order", "desc")
TRUSS: dict[str, Run] = {
    "ssh setup": Run(("--python", "/usr/bin/python3", "--default-remote", "baseten")),
    "train cache summarize": Run((PROJECT, *TABLE_SORT, "--log", "W"), ("total_files", "files")),
    "train capacity update": Run(("--team", "Research", "--gpu-type", "H100", "--capacity", "8")),
    "train capacity view": Run((), ("gpu_capacities",)),
    "train checkpoints list": Run((*OF_JOB, *TABLE_SORT), ("job_id", "checkpoints")),
    "train deploy_checkpoints": Run((*SERVED, "--truss-config-output-dir", "out", "--yes")),
    "train download": Run((*OF_JOB, "--target-directory", "code", "--no-unzip")),
    "train get_checkpoint_urls": Run(OF_JOB),
    "train init": Run(("--target-directory", "mine", "--non-interactive", "--log", "INFO")),
    "train isession": Run((*OF_JOB, "--format", "JSON"), ("auth_codes",)),
    "train logs": Run(("--job-id", ENDED, "--tail")),
    "train metrics": Run(OF_JOB),
    "train push": Run(("code/config.py", "--interactive", "ON_FAILURE", "--priority", "1", "--spot")),
    "train recreate": Run(OF_JOB),
    "train stop": Run(OF_JOB),
    "train update": Run(("--job-id", WAITING, "--availability-model", "spot")),
    "train view": Run(("--project", PROJECT)),
    "train workstation": Run(("--accelerator", "h100", "--gpu-count", "2"), ("job_id", "nodes")),
}
BASETEN: dict[str, Run] = {
    "ssh setup": Run(("--profile", "work")),
    "train capacity describe": Run((), ("gpu_capacities", "team_gpu_capacities")),
    "train capacity update": Run(
        ("--team", "Research", "--gpu-type", "H100", "--max-gpus", "8"), ("team_gpu_capacity",)
    ),
    "train checkpoint deploy": Run((*SERVED, "--config-out-dir", "out", "--yes")),
    "train checkpoint files": Run(OF_JOB, ("url", "relative_file_name")),
    "train checkpoint list": Run((*OF_JOB, "--direction", "asc"), ("checkpoints",)),
    "train init": Run(("--dir", "mine", "--example", "cpu-quickstart", "--example", "lora-finetune")),
    "train job describe": Run(OF_JOB, ("training_job", "training_project")),
    "train job download": Run((*OF_JOB, "--out-dir", "unpacked"), ("job_id", "out_dir")),
    "train job list": Run(("--project", PROJECT, "--status", "running"), ("training_jobs",)),
    "train job logs": Run((*OF_JOB, "--limit", "2", "--since", "1d", "--min-level", "info"), ("message",)),
    "train job metrics": Run((*OF_JOB, "--start", "2026-01-01", "--end", "now"), ("series",)),
    "train job recreate": Run(OF_JOB, ("training_job",)),
    "train job session describe": Run(OF_JOB, ("auth_codes",)),
    "train job stop": Run((*OF_JOB, "--yes"), ("training_job",)),
    "train job update": Run(("--job-id", WAITING, "--priority", "7"), ("training_job",)),
    "train project cache describe": Run(("--project", PROJECT, "--sort", "path"), ("file_summaries",)),
    "train project list": Run((), ("training_projects",)),
    "train push": Run(
        ("--config", "code/config.py", "--interactive", "on-failure", "--interactive-timeout", "90m"),
        ("training_job", "training_project"),
    ),
    "train workstation create": Run(("--project", "mine", "--gpu-count", "2", "-v"), ("job_id",)),
}
RUNS = {f"truss {words}": run for words, run in TRUSS.items()}
RUNS |= {f"baseten {words}": run for words, run in BASETEN.items()}
ELSEWHERE = {"login", "train update_session"}
"""Tested against a server that has what they need: test_remotes_command.py, test_sessions_command.py."""


@pytest.mark.parametrize("line", RUNS)
@pytest.mark.proves("README.md", "On your own workspace")
@pytest.mark.proves("docs/baseten.md", "Coming from the baseten CLI")
@pytest.mark.proves("docs/truss.md", "Coming from the truss CLI")
def test_a_row_runs_with_our_name_in_it(cli: RunCli, world: Any, tmp_path: Path, line: Any) -> None:
    (name, _, words), run = line.partition(" "), RUNS[line]
    environ = world | {"BT_TUI_LOG_DRAIN_S": "0", "BASETEN_SSH_CONFIG_PATH": str(tmp_path / "ssh_config")}
    asks_for_json = ("-o", "json") if name == "baseten" and run.keys else ()
    result = cli(*words.split(), *run.arguments, *asks_for_json, environ=environ)
    if asks_for_json or "JSON" in run.arguments:
        document = result.json
        assert set(run.keys) <= set(document[0] if isinstance(document, list) else document)


def test_every_row_is_run() -> None:
    assert TRUSS.keys() | ELSEWHERE == TREES["truss"].keys()
    assert BASETEN.keys() == TREES["baseten"].keys()


@pytest.mark.proves("docs/commands.md", "Output formats")
def test_json_by_line_has_a_line_for_each_record(cli: RunCli, world: Any) -> None:
    jobs = cli("jobs -o jsonl", environ=world).ndjson
    lines = cli("train", "job", "logs", *OF_JOB, "-o", "jsonl", environ=world).ndjson
    assert {each["id"] for each in jobs} >= {JOB, ENDED, WAITING}
    assert lines[1]["message"].startswith("two")


def test_jobs_are_sorted_by_creation_in_either_direction(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.projects = [project()]
    baseten.jobs = [job(name, created_at=f"2026-05-0{day}T12:00:00Z") for day, name in enumerate("acb", 1)]
    for direction, expected in (("asc", "acb"), ("desc", "bca")):
        listed = cli("train", "job", "list", "--direction", direction, "-o", "json").json
        assert "".join(each["id"] for each in listed["training_jobs"]) == expected


def test_the_official_word_for_looking(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.projects, baseten.jobs = [project()], [job("one"), job("two")]
    assert cli("view").out == cli("projects").out + "\n" + cli("jobs").out
    for arguments in (("--project-id", "proj1"), ("--project", "llama-sft")):
        assert cli("view", *arguments).out == cli("jobs", "--project", "proj1").out
    assert cli("view", "--job-id", "two", "-o", "json").out == cli("job", "two", "-o", "json").out
    assert cli("view", "-o", "json").out == cli("jobs", "-o", "json").out
    cli("view", "--job-id", "three", code=7)


def test_only_the_jobs_of_a_project_are_stopped(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.projects = [project(), project("proj2", "other")]
    baseten.jobs = [job("mine", "RUNNING"), job("theirs", "RUNNING", training_project_id="proj2")]
    asked = cli("stop", "--project", "other", "--non-interactive", code=2)
    assert ("theirs" in asked.err, "mine" in asked.err) == (True, False)
