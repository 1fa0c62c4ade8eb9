"""deploy_checkpoints without a terminal: options, config files, what is missing, what is printed."""

import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.cli import RunCli
from support.deploying_server import (
    LLAMA,
    TRUSS_CONFIG,
    DeployingServer,
    Trouble,
    broken_loss,
    listed_checkpoint,
)
from support.stranger_runs import iso

ENOUGH = ("--job-id", "job1", "--checkpoint", "checkpoint-100", "--model-name", "tuned", "--gpu", "H100:2")
ALL = (*ENOUGH, "--base-model", LLAMA, "--lora-rank", "32", "--hf-secret", "hf_access_token")


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeployingServer]:
    monkeypatch.chdir(tmp_path)
    with DeployingServer() as server:
        yield server


def test_with_all_options_it_is_one_document_and_one_request(cli: RunCli, stranger: DeployingServer) -> None:
    options = (*ALL, "--env", "A=b=c", "--secret", "W=hf_access_token", "-o", "json")
    result = cli("deploy_checkpoints", *options, "--yes")

    assert result.code == 0
    document = result.json
    assert (document["model_id"], document["deployment_id"]) == ("model0", "dep0")
    assert document["link"] == f"{stranger.url}/models/model0/logs/dep0"
    assert document["models"] == ["checkpoint-100"]
    assert "checkpoint-100" in document["curl"]
    assert "checkpoint-100" in document["python"]
    assert "the emulator serves no models" in result.err  # a server of this machine is taken for one
    (request,) = stranger.requests
    assert (request["metadata"], request["instance_type_id"]) == ({"oracle_name": "tuned"}, "h100:2x1")
    assert request["inference_stack"]["environment_variables"] == [
        {"name": "HF_TOKEN", "value": "hf_access_token", "is_secret_reference": True},
        {"name": "A", "value": "b=c", "is_secret_reference": False},
        {"name": "W", "value": "hf_access_token", "is_secret_reference": True},
    ]
    for name in ("deploy-checkpoints", "deploy"):
        assert cli(name, *options, "--dry-run").code == 0
    assert stranger.requests[1:] == [request | {"dry_run": True}] * 2


def test_a_dry_run_writes_the_truss_config_and_creates_nothing(
    cli: RunCli, stranger: DeployingServer, tmp_path: Path
) -> None:
    result = cli("deploy", *ENOUGH, "--dry-run", "-o", "json")
    assert result.code == 0
    document = result.json
    assert document["dry_run"] is True
    assert document["truss_config"] == TRUSS_CONFIG
    written = tmp_path / document["truss_config_path"]
    assert yaml.safe_load(written.read_text()) == TRUSS_CONFIG
    assert written.parent.parent == tmp_path / "truss_configs"
    assert written.parent.name.startswith("dry_run_")
    told = cli("deploy", *ENOUGH, "--dry-run", "--yes", "--truss-config-output-dir", str(tmp_path / "out"))
    assert (tmp_path / "out" / "config.yaml").exists()
    assert "gpu           H100:2 · $12.00 an hour" in told.out
    assert stranger.wet == []
    assert len(stranger.requests) == 2


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ((), ("--job-id", "--checkpoint", "--model-name", "--gpu", "--yes")),
        ((*ENOUGH[:6], "--yes"), ("--gpu",)),
        (ALL, ("--yes",)),
    ],
)
def test_missing_answers_are_named_before_anything_is_asked(
    cli: RunCli, stranger: DeployingServer, options: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    result = cli("deploy", *options, "-o", "json")
    assert (result.code, result.out) == (2, "")
    assert all(flag in result.err for flag in missing)
    assert stranger.requests == []


@pytest.mark.parametrize(("r", "rank"), [(24, 32), ("abc", 16)])
def test_the_rank_is_read_off_the_adapter_and_told(
    cli: RunCli, stranger: DeployingServer, r: int | str, rank: int
) -> None:
    stranger.checkpoints = [listed_checkpoint("checkpoint-100", r=r)]
    result = cli("deploy", *ENOUGH, "--dry-run", "-o", "json")
    details = result.json["config"]["checkpoint_details"]
    assert details["checkpoints"][0]["lora_details"]["rank"] == rank
    assert f"LoRA rank {rank}" in result.err


@pytest.mark.parametrize(("listed", "known"), [(["a", "c"], "a, c"), ([], "none")])
def test_a_checkpoint_that_does_not_exist_ends_with_those_that_do(
    cli: RunCli, stranger: DeployingServer, listed: list[str], known: str
) -> None:
    stranger.checkpoints = [listed_checkpoint(name) for name in listed]
    result = cli("deploy --job-id job1 --checkpoint b --model-name m --gpu H100 --yes")
    assert (result.code, result.err) == (7, f"bt-tui: job job1 has no checkpoint 'b' (it has: {known})\n")


@pytest.mark.parametrize(
    ("checkpoints", "names", "words"),
    [
        ([listed_checkpoint("a"), listed_checkpoint("b", "full")], ("a", "b"), "only LoRA checkpoints"),
        ([listed_checkpoint("a", r=600)], ("a",), "512"),
        ([listed_checkpoint("a", base=None)], ("a",), "--base-model"),
    ],
)
def test_checkpoints_that_cannot_be_deployed_stop_it(
    cli: RunCli, stranger: DeployingServer, checkpoints: list[Any], names: tuple[str, ...], words: str
) -> None:
    stranger.checkpoints = checkpoints
    chosen = [part for name in names for part in ("--checkpoint", name)]
    result = cli("deploy", "--job-id", "job1", *chosen, "--model-name", "m", "--gpu", "H100", "--yes")
    assert result.code == 2
    assert words in result.err
    assert stranger.requests == []


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        *((("--lora-rank", rank), 2, "8, 16, 32, 64, 128, 256, 320, 512") for rank in ("24", "16.5")),
        (("--lora-rank=-8",), 2, "8, 16, 32, 64, 128, 256, 320, 512"),
        (("--gpu", "H100:3"), 2, "--gpu: no instance type"),
        (("--hf-secret", "nope"), 2, "no secret 'nope'"),
        (("--secret", "A=nope"), 2, "no secret 'nope'"),
        (("--env", "A"), 2, "NAME=value"),
        (("--env", "A=1", "--env", "A=2"), 2, "set twice"),
        (("--job-id", "nonesuch"), 7, "nonesuch"),
        (("--project", "nonesuch"), 7, "nonesuch"),
    ],
)
def test_wrong_answers_are_named(
    cli: RunCli, stranger: DeployingServer, options: tuple[str, ...], code: int, words: str
) -> None:
    result = cli("deploy", *ENOUGH, *options, "--yes")
    assert result.code == code
    assert words in result.err
    assert stranger.requests == []


def test_the_value_of_a_variable_is_never_printed(cli: RunCli, stranger: DeployingServer) -> None:
    result = cli("deploy", *ENOUGH, "--env", "TOKEN=s3cret", "--yes")
    wrong = cli("deploy", *ENOUGH, "--env", "s3cret", "--yes")
    assert result.code == 0
    assert "s3cret" not in result.out + result.err + wrong.out + wrong.err


def test_a_config_file_is_enough_and_options_win(
    cli: RunCli, stranger: DeployingServer, tmp_path: Path
) -> None:
    path = tmp_path / "deploy.py"
    path.write_text(
        f"""
from truss_train import definitions
from truss.base import truss_config

config = definitions.DeployCheckpointsConfig(
    model_name="from-file",
    checkpoint_details=definitions.CheckpointList(
        base_model_id="{LLAMA}",
        checkpoints=[definitions.LoRACheckpoint(
            training_job_id="job1", checkpoint_name="checkpoint-100",
            lora_details=definitions.LoRADetails(rank=32),
        )],
    ),
    compute=definitions.Compute(
        accelerator=truss_config.AcceleratorSpec(accelerator=truss_config.Accelerator.H100, count=1)
    ),
)
"""
    )

    plain = cli("deploy", "--config", str(path), "--dry-run", "-o", "json")
    changed = cli(
        *("deploy", "--config", str(path), "--dry-run", "-o", "json"), *("--gpu", "L4", "--model-name", "x")
    )
    other = cli("deploy", "--config", str(path), "--dry-run", "--job-id", "job9")

    assert (plain.code, changed.code, other.code) == (0, 0, 2)
    first, second = stranger.requests
    assert (first["metadata"], first["instance_type_id"]) == ({"oracle_name": "from-file"}, "h100:1x1")
    assert (second["metadata"], second["instance_type_id"]) == ({"oracle_name": "x"}, "l4:1x1")
    details = plain.json["config"]["checkpoint_details"]
    assert details["checkpoints"][0]["lora_details"]["rank"] == 32
    assert "job1" in other.err


@pytest.mark.parametrize(
    ("kind", "name", "more", "words"),
    [
        ("LoRACheckpoint", "checkpoint-100", ", lora_details=LoRADetails(rank=24)", "16"),
        ("FullCheckpoint", "checkpoint-1", "", "checkpoint-1"),
    ],
)
def test_a_config_file_that_will_not_do_is_refused(
    cli: RunCli, stranger: DeployingServer, tmp_path: Path, kind: str, name: str, more: str, words: str
) -> None:
    path = tmp_path / "deploy.py"
    chosen = f"{kind}(training_job_id='job1', checkpoint_name='{name}'{more})"
    path.write_text(
        "from truss_train.definitions import *\n"
        f"config = DeployCheckpointsConfig(model_name='m', compute=Compute(accelerator='H100'),"
        f" checkpoint_details=CheckpointList(checkpoints=[{chosen}]))"
    )
    result = cli("deploy", "--config", str(path), "--yes")
    assert result.code == 2
    assert words in result.err
    assert stranger.requests == []


def test_the_command_of_a_dry_run_sends_the_same_request(cli: RunCli, stranger: DeployingServer) -> None:
    first = cli("deploy", *ALL, "--env", "A=it's $HOME", "--dry-run", "-o", "json")
    program, *arguments = shlex.split(first.json["command"])
    cli(*arguments, "--dry-run")
    assert program == "bt-tui"
    assert stranger.requests[0] == stranger.requests[1]


def test_waiting_tells_the_statuses_and_fails_with_the_deployment(
    cli: RunCli, stranger: DeployingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api_client.clock.SystemClock.sleep", _no_sleep)
    stranger.created_at = iso(time.time())
    stranger.statuses = ["BUILDING", "LOADING_MODEL", "ACTIVE"]
    good = cli("deploy", *ENOUGH, "--yes", "--wait", "-o", "json")
    stranger.statuses = ["BUILDING", "BUILD_FAILED"]
    bad = cli("deploy", *ENOUGH, "--yes", "--wait", "-o", "json")
    assert (good.code, good.json["status"]) == (0, "ACTIVE")
    assert "status: LOADING_MODEL" in good.err
    assert (bad.code, bad.json["status"]) == (5, "BUILD_FAILED")


@pytest.mark.parametrize(
    ("trouble", "code", "words"),
    [("refused", 1, "no such checkpoint"), ("bad gateway", 1, "Check the workspace's models")],
)
def test_what_goes_wrong_is_told_and_never_sent_twice(
    cli: RunCli,
    stranger: DeployingServer,
    trouble: Trouble,
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("api_client.clock.SystemClock.sleep", _no_sleep)
    stranger.trouble, stranger.makes_it = trouble, False
    result = cli("deploy", *ENOUGH, "--yes", "-o", "json")
    assert (result.code, result.out) == (code, "")
    assert words in result.err
    assert len(stranger.requests) == 1


async def _no_sleep(_self: object, _seconds: float) -> None:
    """Do not wait."""


@pytest.mark.parametrize("how", ["--dry-run", "--yes"])
def test_a_checkpoint_after_a_broken_loss_is_deployed_with_a_warning(
    cli: RunCli, stranger: DeployingServer, how: str
) -> None:
    broken_loss(stranger)
    options = ("--job-id", "job1", "--model-name", "x", "--gpu", "L4")
    bad = cli("deploy_checkpoints", *options, "--checkpoint", "checkpoint-200", how)
    good = cli("deploy_checkpoints", *options, "--checkpoint", "checkpoint-100", how)
    assert (bad.code, good.code) == (0, 0)
    assert "'checkpoint-200' was written" in bad.err and "after the loss became NaN (" in bad.err
    assert "best: 'checkpoint-100'" in bad.err
    assert "NaN" not in good.err
