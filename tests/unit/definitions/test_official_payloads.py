"""What is sent for a config equals what the official SDK sends for it.

``golden/*.json`` was recorded from the official SDK by ``tests/support/record_official.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from api_client.submission.config_file import load_deploy_checkpoints_config, load_training_project
from api_client.submission.payload import job_payload, project_payload

EXAMPLES = Path(__file__).parents[1] / "submission" / "config_file" / "examples"
GOLDEN = Path(__file__).parent / "golden"
ALL = {
    path.stem: EXAMPLES.joinpath(*path.stem.split("-")).with_suffix(".py") for path in GOLDEN.glob("*.json")
}
JOBS = sorted(name for name in ALL if not name.startswith("deploy"))
DEPLOYMENTS = sorted(name for name in ALL if name.startswith("deploy"))

SENDER = {"truss_client_version": "bt-tui 0.2.0", "git_info": None}


def recorded(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return document


def test_there_is_a_record_of_every_example() -> None:
    scripts = {EXAMPLES / "submit.py"}
    assert set(EXAMPLES.rglob("*.py")) - scripts == set(ALL.values())


@pytest.mark.parametrize("name", JOBS)
def test_a_job_is_sent_as_the_official_sdk_sends_it(name: str) -> None:
    project = load_training_project(ALL[name])
    payload = job_payload(project.job, artifact=("bucket", "key"), user_env=SENDER)
    assert payload.pop("truss_user_env") == SENDER
    assert payload == recorded(name)["training_job"]
    assert project_payload(project) == recorded(name)["training_project"]
    json.dumps(payload)


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_deployment_is_read_as_the_official_sdk_reads_it(name: str) -> None:
    config = load_deploy_checkpoints_config(ALL[name])
    assert config.model_dump(mode="json") == recorded(name)["definition"]


def test_without_an_archive_nothing_is_referred_to() -> None:
    job = load_training_project(ALL["minimal"]).job
    payload = job_payload(job, artifact=None, user_env=None)
    assert payload["runtime"]["artifacts"] == []
    assert payload["truss_user_env"] is None


def test_the_deprecated_cache_switch_assigned_later_is_sent_as_a_cache() -> None:
    job = load_training_project(ALL["minimal"]).job
    job.runtime.enable_cache = True
    job.runtime.start_commands = ["python train.py"]
    runtime = job_payload(job, artifact=None, user_env=None)["runtime"]
    assert runtime["enable_cache"] is None
    assert runtime["cache_config"]["enabled"] is True
    assert runtime["cache_config"]["enable_legacy_hf_mount"] is True
    assert runtime["start_commands"] == ["python train.py"]
