"""What is sent for a config equals what the official SDK sends for it.

``golden/*.json`` was recorded from the official SDK by ``tests/support/record_official.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from api_client import definitions
from api_client.submission import config_file
from api_client.submission.config_file import (
    execution,
    load_deploy_checkpoints_config,
    load_training_project,
)
from api_client.submission.config_file.stand_ins import official_modules
from api_client.submission.payload import job_payload, project_payload
from api_client.version import __version__
from support.example_configs import NAMES, example_config

GOLDEN = Path(__file__).parent / "golden"
SENDER = {"truss_client_version": f"bt-tui {__version__}", "git_info": None}


@pytest.fixture(autouse=True)
def _configs_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run configs in this process; test_config_loading.py has them in one of their own, as users do."""

    def own() -> Any:
        for name, module in official_modules(execution.raise_on_push).items():
            monkeypatch.setitem(sys.modules, name, module)
        return definitions

    def finished(path: Path, _python: Path, kind: str, _stop: object) -> tuple[int, bytes, str]:
        return 0, json.dumps({"definition": execution._document(str(path), kind)}).encode(), ""

    monkeypatch.setattr(execution, "_own_definitions", own)
    monkeypatch.setattr(config_file, "_run_process", finished)


def recorded(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return document


def test_there_is_a_record_of_every_example() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("deploy")])
@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_a_job_is_sent_as_the_official_sdk_sends_it(name: str, tmp_path: Path) -> None:
    project = load_training_project(example_config(name, tmp_path))
    payload = job_payload(project.job, artifact=("bucket", "key"), user_env=SENDER)
    assert payload.pop("truss_user_env") == SENDER
    assert payload == recorded(name)["training_job"]
    assert project_payload(project) == recorded(name)["training_project"]
    json.dumps(payload)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("deploy")])
def test_a_deployment_is_read_as_the_official_sdk_reads_it(name: str, tmp_path: Path) -> None:
    config = load_deploy_checkpoints_config(example_config(name, tmp_path))
    assert config.model_dump(mode="json") == recorded(name)["definition"]


def test_without_an_archive_nothing_is_referred_to_and_a_cache_switched_on_later_is_one(
    tmp_path: Path,
) -> None:
    job = load_training_project(example_config("minimal", tmp_path)).job
    payload = job_payload(job, artifact=None, user_env=None)
    assert (payload["runtime"]["artifacts"], payload["truss_user_env"]) == ([], None)
    job.runtime.enable_cache = True
    runtime = job_payload(job, artifact=None, user_env=None)["runtime"]
    assert runtime["enable_cache"] is None
    assert runtime["cache_config"]["enabled"] and runtime["cache_config"]["enable_legacy_hf_mount"]
