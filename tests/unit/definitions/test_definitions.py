"""Defaults, strictness and checks of the definitions, as the SDK's page and the facts have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from api_client import definitions as d

IMAGE = d.Image(base_image="python:3.12-slim")


def refusal(make: Callable[[], Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        make()
    return str(caught.value)


def weights(**fields: Any) -> d.WeightsSource:
    return d.WeightsSource(**{"source": "s3://bucket/data", "mount_location": "/data", **fields})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: d.Compute(node_count="2"), ["node_count", "valid integer", "'2'"]),
        (lambda: d.Compute(node_cout=2), ["node_cout", "did you mean 'node_count'", "cpu_count", "memory"]),
        (lambda: d.Compute(availability_model="spot"), ["'spot'", "AvailabilityModel.DEDICATED"]),
        (lambda: d.InteractiveSession(trigger="on_startup"), ["InteractiveSessionTrigger.ON_STARTUP"]),
        (lambda: d.CacheConfig(enable_legacy_hf_cache=True), ["did you mean 'enable_legacy_hf_mount'"]),
        (lambda: d.Runtime(run_commands=["x"]), ["run_commands", "did you mean 'start_commands'"]),
        (lambda: d.Runtime(start_commands="x"), ["start_commands", "valid list", "'x'"]),
        (lambda: d.Runtime(start_commands=("x",)), ["start_commands", "valid list"]),
        (lambda: d.Runtime(environment_variables={"A": 1}), ["environment_variables.A", "SecretReference"]),
        (lambda: d.TrainingJob(image=None), ["image", "Image"]),
        (d.TrainingJob, ["image", "required"]),
        (lambda: d.LoopsCheckpoint.from_checkpoint("r", "c", target="both"), ["'trainer'", "'both'"]),
        (d.BasetenCheckpoint.from_latest_checkpoint, ["project_name", "job_id"]),
        (lambda: d.BasetenCheckpoint.from_latest_checkpoint(project_name=""), ["project_name", "job_id"]),
    ],
)
def test_wrong_values_are_refused_in_words(make: Callable[[], Any], words: list[str]) -> None:
    message = refusal(make)
    assert not [word for word in words if word not in message], message


def test_assignments_are_checked() -> None:
    compute = d.Compute()
    assert "node_count" in refusal(lambda: setattr(compute, "node_count", "2"))
    assert "nodes" in refusal(lambda: setattr(compute, "nodes", 2))
    assert compute == d.Compute()


@pytest.mark.parametrize(
    ("text", "accelerator", "count"),
    [
        ("H100:8", d.Accelerator.H100, 8),
        ("H100", d.Accelerator.H100, 1),
        (" A100_40GB:4 ", d.Accelerator.A100_40GB, 4),
        ("RTX_PRO_6000:2", d.Accelerator.RTX_PRO_6000, 2),
    ],
)
def test_accelerators_in_the_short_form(text: str, accelerator: d.Accelerator, count: int) -> None:
    spec = d.Compute(accelerator=text).accelerator
    assert spec == d.AcceleratorSpec(accelerator=accelerator, count=count)
    assert str(spec) == text.strip()
    assert d.AcceleratorSpec.model_validate(text) == spec


@pytest.mark.parametrize(
    "text",
    ["H100:2:3", "h100", "H100:0", "H100:", ":8", "", "H100:-1", "H100:x", "H100: 8", "A100-40GB", "H100:²"],
)
def test_other_texts_are_no_accelerators(text: str) -> None:
    message = refusal(lambda: d.Compute(accelerator=text))
    assert f"input_value={text!r}" in message
    assert "accelerator" in message


def test_an_unknown_accelerator_comes_with_the_known_ones() -> None:
    for make in (
        lambda: d.Compute(accelerator="X9"),
        lambda: d.AcceleratorSpec(accelerator="X9"),
        lambda: d.Compute(accelerator={"accelerator": "X9"}),
    ):
        message = refusal(make)
        assert "A10G" in message
        assert "H100_40GB" in message
        assert "B10," not in message
    assert "H100:8" in refusal(lambda: d.Compute(accelerator=8))
    assert "count" in refusal(lambda: d.AcceleratorSpec(accelerator="H100", count=-1))


@pytest.mark.parametrize("method", list(d.DockerAuthType))
def test_each_docker_login_wants_its_own_block_alone(method: d.DockerAuthType) -> None:
    block = f"{method.value.lower()}_docker_auth"
    registry_secret = "registry_secret_docker_auth"
    foreign = "aws_oidc_docker_auth" if block == registry_secret else registry_secret
    message = refusal(lambda: d.DockerAuth(auth_method=method, registry="r"))
    assert f"{block} must be provided when auth_method is {method.value}" in message
    blocks = {name: d.DockerAuth.model_fields[name].annotation.__args__[0] for name in (block, foreign)}
    both = {name: kind.model_construct() for name, kind in blocks.items()}
    message = refusal(lambda: d.DockerAuth(auth_method=method, registry="r", **both))
    assert f"{foreign} cannot be specified" in message


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"source": "bucket/data"}, ["hf://", "s3://", "gs://", "r2://", '"bucket/data"']),
        ({"source": "ftp://bucket/data"}, ["s3://", '"ftp://bucket/data"']),
        ({"source": "S3://bucket"}, ["s3://"]),
        ({"source": "s3://"}, ["s3://bucket/path"]),
        ({"source": "s3:///data"}, ["s3://bucket/path"]),
        ({"source": "gs://bucket/data@main"}, ["revision", "hf://"]),
        ({"source": "hf:///repo"}, ["hf://owner/repository"]),
        ({"source": "https:///x"}, ["https://host/path"]),
        ({"source": "file://data"}, ["file:///path"]),
        ({"source": ""}, ["source"]),
        ({"mount_location": "data"}, ["mount_location", '"data"', "absolute"]),
        ({"auth": {"auth_method": "PASSWORD"}}, ["auth_method", "CUSTOM_SECRET", "'PASSWORD'"]),
        ({"auth": {"auth_method": "CUSTOM_SECRET"}}, ["auth_secret_name must be provided"]),
        (
            {"auth": {"auth_method": "AWS_OIDC", "aws_oidc_region": "r"}},
            ["aws_oidc_role_arn must be provided"],
        ),
        (
            {"auth": {"auth_method": "custom_secret", "auth_secret_name": "s", "aws_oidc_region": "r"}},
            ["aws_oidc_region cannot be specified"],
        ),
        (
            {"auth_secret_name": "s", "auth": {"auth_method": "CUSTOM_SECRET", "auth_secret_name": "t"}},
            ["twice"],
        ),
    ],
)
def test_wrong_weights_are_refused_in_words(fields: dict[str, Any], words: list[str]) -> None:
    message = refusal(lambda: weights(**fields))
    assert not [word for word in words if word not in message], message


@pytest.mark.parametrize("scheme", ["hf", "s3", "gs", "r2", "azure", "cw", "https"])
def test_sources_of_weights(scheme: str) -> None:
    assert weights(source=f"{scheme}://a.b/c").scheme == scheme


def test_both_spellings_of_a_cache_cannot_be_mixed() -> None:
    cache = d.CacheConfig(enabled=True)
    assert "cache_config" in refusal(lambda: d.Runtime(enable_cache=True, cache_config=cache))
    runtime = d.Runtime(cache_config=cache)
    assert "cache_config" in refusal(lambda: setattr(runtime, "enable_cache", True))
    assert runtime.cache_config == cache


def test_checkpoints_of_jobs_and_of_loops_cannot_be_deployed_together() -> None:
    full = d.FullCheckpoint(training_job_id="j", checkpoint_name="c")
    assert "Cannot mix" in refusal(lambda: d.CheckpointList(checkpoints=[full], loops_checkpoint_ids=["l"]))


def test_checkpoints_written_as_dicts_get_the_class_of_their_format() -> None:
    names = {"training_job_id": "j", "checkpoint_name": "c"}
    formats = ("lora", "full", "whisper")
    listed = d.CheckpointList(checkpoints=[{**names, "model_weight_format": form} for form in formats])
    classes = [type(checkpoint) for checkpoint in listed.checkpoints]
    assert classes == [d.LoRACheckpoint, d.FullCheckpoint, d.WhisperCheckpoint]
    assert d.CheckpointList.model_validate_json(listed.model_dump_json()) == listed


def test_a_job_survives_being_written_and_read() -> None:
    session = d.InteractiveSession(trigger=d.InteractiveSessionTrigger.ON_STARTUP)
    spot = d.Compute(accelerator="H100:8", availability_model=d.AvailabilityModel.SPOT)
    job = d.TrainingJob(image=IMAGE, compute=spot, interactive_session=session, weights=[weights(odd=1)])
    assert d.TrainingJob.model_validate_json(job.model_dump_json()) == job
    assert f"{d.Accelerator.H100}" == "Accelerator.H100"  # as in the official SDK
