"""What is sent equals what the official CLI sends for the same file; files and commands give the same again.

``golden/*.json`` was recorded from the official CLI by ``support/record_official.py``.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from deployable import CHECKPOINTS, EXAMPLES, JOB_ID, LISTED_INSTANCES
from hypothesis import example, given, settings, strategies as st

from api_client.definitions import (
    CheckpointList,
    DeployCheckpointsConfig,
    DeployCheckpointsRuntime,
    FullCheckpoint,
)
from api_client.deployment import (
    DEPLOY_MUTATION,
    DeployAnswers,
    build_config,
    calls_of,
    deployment_request,
    equivalent_command,
    render_python,
)
from api_client.remotes import Remote
from api_client.submission.config_file import load_deploy_checkpoints_config
from api_client.submission.config_file.stand_ins import official_modules

HERE = Path(__file__).parent


BASETEN = Remote("baseten", "https://app.baseten.co", "https://api.baseten.co", key=None, key_origin="a test")


@pytest.mark.parametrize("is_whisper", [False, True])
def test_calls_of_a_deployment_run_as_they_are_shown_on_80_columns(is_whisper: bool, tmp_path: Path) -> None:
    shown = calls_of(BASETEN, "d13gzdnq", "hxb6k4z1", "checkpoint-1800", is_whisper=is_whisper)
    assert max(map(len, [*shown.curl.splitlines(), *shown.python.splitlines()])) <= 78
    ast.parse(shown.python)
    (tmp_path / "curl").write_text('#!/bin/sh\nprintf "%s\\n\\0" "$@"\n')
    (tmp_path / "curl").chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "BASETEN_API_KEY": "k"}
    sent = subprocess.run(["sh", "-c", shown.curl], env=environ, capture_output=True, text=True, check=True)
    url, *arguments = sent.stdout.split("\n\0")[:-1]
    assert url.startswith(f"{shown.url}/") and "Authorization: Api-Key k" in arguments
    if not is_whisper:
        assert json.loads(arguments[-1])["model"] == "checkpoint-1800"


def reloaded(config: DeployCheckpointsConfig) -> object:
    """What the saved file creates."""
    names: dict[str, object] = {}
    with patch.dict(sys.modules, official_modules(print)):
        exec(compile(render_python(config).encode(), "saved.py", "exec"), names)
    return names["deploy_config"]


@pytest.mark.parametrize("name", sorted(EXAMPLES))
@pytest.mark.proves("docs/commands.md", "Inspect, download and deploy checkpoints")
def test_the_request_and_the_saved_file_are_those_of_the_official_cli(name: str) -> None:
    body: dict[str, Any] = json.loads((HERE / "golden" / f"{name}.json").read_text(encoding="utf-8"))
    wanted, config = body["variables"]["request"], build_config(EXAMPLES[name], CHECKPOINTS)
    instance_id = wanted["instance_type_id"]
    assert deployment_request(config, instance_type_id=instance_id, dry_run=True) == wanted
    assert DEPLOY_MUTATION.split() == body["query"].split()
    assert instance_id in [each["id"] for each in LISTED_INSTANCES]
    saved = HERE / "examples" / f"{name}.py"
    assert ast.dump(ast.parse(render_python(config))) == ast.dump(ast.parse(saved.read_bytes()))
    assert load_deploy_checkpoints_config(saved).model_dump() == config.model_dump()


def test_checkpoints_of_loops_runs_are_sent_by_their_ids() -> None:
    details = CheckpointList(loops_checkpoint_ids=["l1"])
    config = DeployCheckpointsConfig(model_name="m", checkpoint_details=details)
    [source] = deployment_request(config, instance_type_id="i", dry_run=True)["weights_sources"]
    assert source == {
        "weight_source_type": "B10_LOOPS_CHECKPOINTING",
        "b10_loops_checkpoint_weights_source": {"checkpoint": {"loops_checkpoint_id": "l1"}},
    }


@example(name="\ud800 \u202e", value="'\"\\\n\x1b", extra={"ﬀ": None, "class": 1, "a b": "c"})
@given(
    name=st.text(st.characters(), min_size=1),
    value=st.text(st.characters()),
    extra=st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text(), max_size=4),
)
@settings(max_examples=40)
def test_any_text_survives_a_saved_file(name: str, value: str, extra: dict[str, Any]) -> None:
    taken = {*FullCheckpoint.model_fields, *dir(FullCheckpoint)}
    more = {key: each for key, each in extra.items() if key not in taken}
    checkpoint = FullCheckpoint.model_validate({"training_job_id": value, "checkpoint_name": name, **more})
    config = DeployCheckpointsConfig(
        model_name=name,
        checkpoint_details=CheckpointList(base_model_id=value, checkpoints=[checkpoint]),
        runtime=DeployCheckpointsRuntime(environment_variables={name: value}),
    )
    assert reloaded(config) == config
    assert "\x1b" not in render_python(config)


def test_a_file_of_next_to_nothing_is_read_again() -> None:
    bare = build_config(replace(EXAMPLES["whisper"], hf_secret=None), CHECKPOINTS)
    assert reloaded(bare) == bare
    assert reloaded(DeployCheckpointsConfig()) == DeployCheckpointsConfig()


def test_a_shell_reads_the_names_as_they_are() -> None:
    value = "a\nb\t'\\\x1b[31m é \u202e $HOME `id`"
    job = {"job_id": JOB_ID, "checkpoint_names": ("-x", "$(id)")}
    answers = DeployAnswers(**job, model_name="-m", environment=(("LINES", value),))
    script = f"printf '%s\\0' {equivalent_command(answers).removeprefix('bt-tui ')}"
    said = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout.decode()
    with_options = equivalent_command(answers, ("--remote", "my lab"))
    assert with_options.startswith("bt-tui --remote 'my lab' deploy_checkpoints --job-id ")
    assert said.split("\0")[:-1] == [
        "deploy_checkpoints", "--job-id", JOB_ID, "--checkpoint=-x", "--checkpoint", "$(id)",
        "--model-name=-m", "--env", f"LINES={value}",
    ]  # fmt: skip
