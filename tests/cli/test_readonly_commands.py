"""``--readonly``, ``BT_TUI_READONLY`` and ``readonly`` in the file: no command changes anything then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.cli import RunCli
from support.stranger import Answer, FakeBaseten, job
from tui.analysis.deployments import DeploymentVerb
from tui.commands.support.exit_codes import ExitCode

READS_BY_POST = "/v1/training_jobs/search"
CONFIG = """from truss_train import Image, TrainingJob, TrainingProject
project = TrainingProject(name="llama-sft", job=TrainingJob(image=Image(base_image="python:3.12")))
"""
CHANGING = {
    "stop": ("stop", "job1"),
    "stop --all": ("stop", "--all", "--yes"),
    "delete": ("delete", "job1", "--yes"),
    "delete --project": ("delete", "--project", "llama-sft", "--yes"),
    "recreate": ("recreate", "job1"),
    "update": ("update", "job1", "--priority", "3"),
    "push": ("push", "config.py", "--skip-checks"),
    "workstation": ("workstation", "--accelerator", "H100", "--skip-checks", "--yes"),
    "deploy": (
        *("deploy", "--job-id", "job1", "--checkpoint", "checkpoint-1", "--model-name", "m"),
        *("--gpu", "H100:1", "--base-model", "b", "--yes"),
    ),
    **{f"deployments {verb}": ("deployments", verb, "d1", "--yes") for verb in DeploymentVerb},
    "secrets": ("secrets", "delete", "hf_token", "--yes"),
    "capacity": ("capacity", "update", "--team", "t", "--gpu-type", "H100", "--capacity", "1"),
}


def changes_of(stranger: FakeBaseten) -> list[str]:
    changes = [asked for asked in stranger.asked if asked.method != "GET" and asked.path != READS_BY_POST]
    return [f"{asked.method} {asked.path}" for asked in changes]


@pytest.fixture
def world(stranger: FakeBaseten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeBaseten:
    stranger.jobs = [job("job1", "RUNNING")]
    stranger.on("GET", "/v1/teams", Answer(body={"teams": [{"id": "t", "name": "t", "default": True}]}))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.py").write_text(CONFIG)
    return stranger


@pytest.mark.parametrize("name", CHANGING)
def test_no_command_changes_anything(cli: RunCli, world: FakeBaseten, name: Any) -> None:
    done = cli(*CHANGING[name], environ=world.environ() | {"BT_TUI_READONLY": "true"})
    assert done.code == ExitCode.USAGE, done.err
    assert "read-only by environment BT_TUI_READONLY" in done.err
    assert done.out == ""
    assert changes_of(world) == []


def test_the_message_names_the_setting_that_forbids_it(
    cli: RunCli, world: FakeBaseten, tmp_path: Path
) -> None:
    settings = tmp_path / "config.toml"
    settings.write_text('remote = "lab"\nreadonly = true\n')
    by_file = cli("stop", "job1", environ=world.environ() | {"BT_TUI_CONFIG": str(settings)})
    by_flag = cli("--readonly stop job1")
    environ = {"BT_TUI_CONFIG": str(settings), "BT_TUI_READONLY": "false"}
    allowed = cli("stop", "job1", environ=world.environ() | environ)
    assert f"read-only by {settings}:2" in by_file.err
    assert "read-only by flag --readonly" in by_flag.err
    assert "read-only" not in allowed.err
    assert changes_of(world) == ["POST /v1/training_projects/proj1/jobs/job1/stop"]
    assert "job1" in cli("--readonly jobs -o json").out
