"""deploy_checkpoints without a terminal: options, config files, what is missing, what is printed."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from deployer import BASE, Deployer, broken_loss, checkpoint

from support.cli import RunCli
from support.stranger import Answer, FakeBaseten

ENOUGH = ("--job-id", "job1", "--checkpoint", "checkpoint-100", "--model-name", "tuned", "--gpu", "H100:2")
ALL = (*ENOUGH, "--base-model", BASE, "--lora-rank", "32", "--hf-secret", "hf_access_token")


@pytest.fixture
def deployer(stranger: FakeBaseten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployer:
    monkeypatch.chdir(tmp_path)
    return Deployer(stranger)


def test_with_all_options_it_is_one_document_and_one_request(cli: RunCli, deployer: Deployer) -> None:
    options = (*ALL, "--env", "A=b=c", "--secret", "W=hf_access_token", "-o", "json")
    result = cli("deploy_checkpoints", *options, "--yes")

    assert result.code == 0
    document = json.loads(result.out)
    assert (document["model_id"], document["deployment_id"]) == ("m1", "d1")
    assert document["link"] == f"{deployer.stranger.url}/models/m1/logs/d1"
    assert document["models"] == ["checkpoint-100"]
    assert "checkpoint-100" in document["curl"]
    assert "checkpoint-100" in document["python"]
    assert "the emulator serves no models" in result.err  # a server of this machine is taken for one
    (request,) = deployer.requests
    assert (request["metadata"], request["instance_type_id"]) == ({"oracle_name": "tuned"}, "H100-2")
    assert request["inference_stack"]["environment_variables"] == [
        {"name": "HF_TOKEN", "value": "hf_access_token", "is_secret_reference": True},
        {"name": "A", "value": "b=c", "is_secret_reference": False},
        {"name": "W", "value": "hf_access_token", "is_secret_reference": True},
    ]
    for name in ("deploy-checkpoints", "deploy"):
        assert cli(name, *options, "--dry-run").code == 0
    assert deployer.requests[1:] == [request | {"dry_run": True}] * 2


def test_a_dry_run_writes_the_truss_config_and_creates_nothing(
    cli: RunCli, deployer: Deployer, tmp_path: Path
) -> None:
    result = cli("deploy", *ENOUGH, "--dry-run", "-o", "json")

    assert result.code == 0
    document = json.loads(result.out)
    assert document["dry_run"] is True
    assert document["truss_config"] == {"model_name": "tuned"}
    written = tmp_path / document["truss_config_path"]
    assert written.read_text() == "model_name: tuned\n"
    assert written.parent.parent == tmp_path / "truss_configs"
    assert written.parent.name.startswith("dry_run_")
    told = cli("deploy", *ENOUGH, "--dry-run", "--yes", "--truss-config-output-dir", str(tmp_path / "out"))
    assert (tmp_path / "out" / "config.yaml").exists()
    assert "gpu           H100:2 · $12.00 an hour" in told.out
    assert deployer.wet == []
    assert len(deployer.requests) == 2


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ((), ("--job-id", "--checkpoint", "--model-name", "--gpu", "--yes")),
        ((*ENOUGH[:6], "--yes"), ("--gpu",)),
        (ALL, ("--yes",)),
    ],
)
def test_missing_answers_are_named_before_anything_is_asked(
    cli: RunCli, deployer: Deployer, options: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    result = cli("deploy", *options, "-o", "json")

    assert (result.code, result.out) == (2, "")
    assert all(flag in result.err for flag in missing)
    assert deployer.requests == []


@pytest.mark.parametrize(("r", "rank"), [(24, 32), ("abc", 16)])
def test_the_rank_is_read_off_the_adapter_and_told(
    cli: RunCli, deployer: Deployer, r: int | str, rank: int
) -> None:
    deployer.checkpoints = [checkpoint("checkpoint-100", lora_adapter_config={"r": r})]

    result = cli("deploy", *ENOUGH, "--dry-run", "-o", "json")

    details = json.loads(result.out)["config"]["checkpoint_details"]
    assert details["checkpoints"][0]["lora_details"]["rank"] == rank
    assert f"LoRA rank {rank}" in result.err


@pytest.mark.parametrize("rank", ["24", "-8", "16.5"])
def test_other_ranks_are_refused_with_the_list(cli: RunCli, deployer: Deployer, rank: str) -> None:
    result = cli("deploy", *ENOUGH, f"--lora-rank={rank}", "--yes")

    assert result.code == 2
    assert "8, 16, 32, 64, 128, 256, 320, 512" in result.err
    assert deployer.requests == []


@pytest.mark.parametrize(("listed", "known"), [(["a", "c"], "a, c"), ([], "none")])
def test_a_checkpoint_that_does_not_exist_ends_with_those_that_do(
    cli: RunCli, deployer: Deployer, listed: list[str], known: str
) -> None:
    deployer.checkpoints = [checkpoint(name) for name in listed]

    result = cli(
        "deploy", "--job-id", "job1", "--checkpoint", "b", "--model-name", "m", "--gpu", "H100", "--yes"
    )

    assert (result.code, result.err) == (7, f"bt-tui: job job1 has no checkpoint 'b' (it has: {known})\n")


@pytest.mark.parametrize(
    ("checkpoints", "names", "words"),
    [
        ([checkpoint("a"), checkpoint("b", "full")], ("a", "b"), "only LoRA checkpoints"),
        ([checkpoint("a", lora_adapter_config={"r": 600})], ("a",), "512"),
        ([checkpoint("a", base_model=None)], ("a",), "--base-model"),
    ],
)
def test_checkpoints_that_cannot_be_deployed_stop_it(
    cli: RunCli, deployer: Deployer, checkpoints: list[Any], names: tuple[str, ...], words: str
) -> None:
    deployer.checkpoints = checkpoints
    chosen = [part for name in names for part in ("--checkpoint", name)]

    result = cli("deploy", "--job-id", "job1", *chosen, "--model-name", "m", "--gpu", "H100", "--yes")

    assert result.code == 2
    assert words in result.err
    assert deployer.requests == []


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
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
    cli: RunCli, deployer: Deployer, options: tuple[str, ...], code: int, words: str
) -> None:
    result = cli("deploy", *ENOUGH, *options, "--yes")

    assert result.code == code
    assert words in result.err
    assert deployer.requests == []


def test_the_value_of_a_variable_is_never_printed(cli: RunCli, deployer: Deployer) -> None:
    result = cli("deploy", *ENOUGH, "--env", "TOKEN=s3cret", "--yes")
    wrong = cli("deploy", *ENOUGH, "--env", "s3cret", "--yes")

    assert result.code == 0
    assert "s3cret" not in result.out + result.err + wrong.out + wrong.err


def test_a_config_file_is_enough_and_options_win(cli: RunCli, deployer: Deployer, tmp_path: Path) -> None:
    path = tmp_path / "deploy.py"
    path.write_text(
        f"""
from truss_train import definitions
from truss.base import truss_config

config = definitions.DeployCheckpointsConfig(
    model_name="from-file",
    checkpoint_details=definitions.CheckpointList(
        base_model_id="{BASE}",
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
    first, second = deployer.requests
    assert (first["metadata"], first["instance_type_id"]) == ({"oracle_name": "from-file"}, "H100-1")
    assert (second["metadata"], second["instance_type_id"]) == ({"oracle_name": "x"}, "L4-1")
    details = json.loads(plain.out)["config"]["checkpoint_details"]
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
    cli: RunCli, deployer: Deployer, tmp_path: Path, kind: str, name: str, more: str, words: str
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
    assert deployer.requests == []


def test_the_command_of_a_dry_run_sends_the_same_request(cli: RunCli, deployer: Deployer) -> None:
    first = cli("deploy", *ALL, "--env", "A=it's $HOME", "--dry-run", "-o", "json")
    program, *arguments = shlex.split(json.loads(first.out)["command"])
    cli(*arguments, "--dry-run")

    assert program == "bt-tui"
    assert deployer.requests[0] == deployer.requests[1]


def test_waiting_tells_the_statuses_and_fails_with_the_deployment(
    cli: RunCli, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api_client.clock.SystemClock.sleep", _no_sleep)
    deployer.statuses = ["BUILDING", "LOADING_MODEL", "ACTIVE"]
    good = cli("deploy", *ENOUGH, "--yes", "--wait", "-o", "json")
    deployer.statuses = ["BUILDING", "BUILD_FAILED"]
    bad = cli("deploy", *ENOUGH, "--yes", "--wait", "-o", "json")

    assert (good.code, json.loads(good.out)["status"]) == (0, "ACTIVE")
    assert "status: LOADING_MODEL" in good.err
    assert (bad.code, json.loads(bad.out)["status"]) == (5, "BUILD_FAILED")


def test_a_refusal_of_the_server_is_its_own_words_and_is_not_repeated(
    cli: RunCli, deployer: Deployer
) -> None:
    deployer.fails = Answer(
        body={
            "errors": [
                {"message": "x", "extensions": {"code": "RESOURCE_NOT_FOUND", "description": "no GPUs"}}
            ]
        }
    )

    result = cli("deploy", *ENOUGH, "--yes")

    assert result.code == 1
    assert "no GPUs" in result.err
    assert len(deployer.requests) == 1


def test_a_lost_answer_never_deploys_twice(
    cli: RunCli, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api_client.clock.SystemClock.sleep", _no_sleep)
    deployer.fails = Answer(502, {"message": "lost"})

    result = cli("deploy", *ENOUGH, "--yes", "-o", "json")

    assert result.code != 0
    assert result.out == ""
    assert len(deployer.requests) == 1


async def _no_sleep(_self: object, _seconds: float) -> None:
    """Do not wait."""


@pytest.mark.parametrize("how", ["--dry-run", "--yes"])
def test_a_checkpoint_after_a_broken_loss_is_deployed_with_a_warning(
    cli: RunCli, deployer: Deployer, how: str
) -> None:
    broken_loss(deployer)
    options = ("--job-id", "job1", "--model-name", "x", "--gpu", "L4")
    bad = cli("deploy_checkpoints", *options, "--checkpoint", "checkpoint-200", how)
    good = cli("deploy_checkpoints", *options, "--checkpoint", "checkpoint-100", how)

    assert (bad.code, good.code) == (0, 0)
    assert "'checkpoint-200' was written" in bad.err and "after the loss became NaN (" in bad.err
    assert "best: 'checkpoint-100'" in bad.err
    assert "NaN" not in good.err
