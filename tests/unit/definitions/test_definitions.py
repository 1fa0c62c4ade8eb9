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


def test_defaults() -> None:
    job = d.TrainingJob(image=IMAGE)

    assert (job.compute.node_count, job.compute.cpu_count, job.compute.memory) == (1, 1, "2Gi")
    assert job.compute.accelerator is None
    assert job.compute.availability_model is d.AvailabilityModel.DEDICATED
    assert job.runtime.start_commands == []
    assert job.runtime.environment_variables == {}
    assert job.runtime.checkpointing_config == d.CheckpointingConfig(enabled=False)
    assert job.runtime.cache_config is job.runtime.load_checkpoint_config is None
    assert job.interactive_session is job.workspace is job.name is job.priority is None
    assert job.weights == []
    assert job.enable_baseten_workdir is True
    assert d.CacheConfig().model_dump() == {
        "enabled": False,
        "enable_legacy_hf_mount": False,
        "require_cache_affinity": True,
        "mount_base_path": "/root/.cache",
    }
    assert d.LoadCheckpointConfig().download_folder == "/tmp/loaded_checkpoints"
    assert d.LoadCheckpointConfig().checkpoints == [d.LatestCheckpoint()]
    assert d.CheckpointList().download_folder == "/tmp/training_checkpoints"
    assert d.LoRADetails().rank == 16
    assert d.LoRADetails(rank=7).rank == 7  # as the SDK has it: what can be served is judged when deploying
    session = d.InteractiveSession()
    assert session.trigger is d.InteractiveSessionTrigger.ON_DEMAND
    assert session.timeout_minutes == 480
    assert session.session_provider is d.InteractiveSessionProvider.VS_CODE
    assert session.auth_provider is d.InteractiveSessionAuthProvider.MICROSOFT


def test_defaults_are_not_shared() -> None:
    one, other = d.TrainingJob(image=IMAGE), d.TrainingJob(image=IMAGE)
    one.runtime.environment_variables["A"] = "b"
    one.runtime.start_commands.append("x")
    one.compute.node_count = 2

    assert other.runtime.environment_variables == {}
    assert other.runtime.start_commands == []
    assert other.compute.node_count == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: d.Compute(node_count="2"), ["node_count", "valid integer", "'2'"]),
        (lambda: d.Compute(node_count=True), ["node_count", "valid integer", "True"]),
        (lambda: d.Compute(node_count=2.0), ["node_count", "valid integer", "2.0"]),
        (lambda: d.Compute(memory=2), ["memory", "valid string"]),
        (lambda: d.Compute(node_cout=2), ["node_cout", "did you mean 'node_count'", "cpu_count", "memory"]),
        (
            lambda: d.Compute(availability_model="spot"),
            ["availability_model", "'spot'", "AvailabilityModel.DEDICATED", "AvailabilityModel.SPOT"],
        ),
        (
            lambda: d.InteractiveSession(trigger="on_startup"),
            ["trigger", "'on_startup'", "InteractiveSessionTrigger.ON_STARTUP"],
        ),
        (lambda: d.CacheConfig(enable_legacy_hf_cache=True), ["did you mean 'enable_legacy_hf_mount'"]),
        (lambda: d.Runtime(run_commands=["x"]), ["run_commands", "did you mean 'start_commands'"]),
        (lambda: d.Runtime(start_commands="x"), ["start_commands", "valid list", "'x'"]),
        (lambda: d.Runtime(start_commands=("x",)), ["start_commands", "valid list"]),
        (
            lambda: d.Runtime(environment_variables={"A": None}),
            ["environment_variables.A", "a string or a SecretReference", "None"],
        ),
        (lambda: d.Runtime(environment_variables={"A": 1}), ["environment_variables.A", "1"]),
        (lambda: d.TrainingJob(image=None), ["image", "Image"]),
        (d.TrainingJob, ["image", "required"]),
        (lambda: d.TrainingJob(image=IMAGE, priority="1"), ["priority", "valid integer", "'1'"]),
        (lambda: d.TrainingProject(name="x"), ["job", "required"]),
        (d.SecretReference, ["name", "required"]),
        (lambda: d.Workspace(external_dirs=None), ["external_dirs", "valid list"]),
        (lambda: d.CheckpointingConfig(volume_size_gib="5"), ["volume_size_gib", "'5'"]),
        (lambda: d.FullCheckpoint(training_job_id="x"), ["checkpoint_name", "required"]),
        (
            lambda: d.LoopsCheckpoint.from_checkpoint("r", "c", target="both"),
            ["target", "'trainer'", "'both'"],
        ),
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
    [
        "H100:2:3",
        "h100",
        "H100:0",
        "H100:",
        ":8",
        "",
        "H100:-1",
        "H100:x",
        "H100: 8",
        "A100-40GB",
        "H100:²",
        "X9:8",
    ],
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
def test_each_docker_login_wants_its_own_block(method: d.DockerAuthType) -> None:
    block = f"{method.value.lower()}_docker_auth"
    message = refusal(lambda: d.DockerAuth(auth_method=method, registry="r"))
    assert block in message
    assert method.value in message

    foreign = d.RegistrySecretDockerAuth(secret_ref=d.SecretReference(name="s"))
    if method is not d.DockerAuthType.REGISTRY_SECRET:
        role = {"role_arn": "a", "region": "b"}
        blocks = {
            d.DockerAuthType.AWS_IAM: d.AWSIAMDockerAuth(
                access_key_secret_ref=d.SecretReference(name="a"),
                secret_access_key_secret_ref=d.SecretReference(name="b"),
            ),
            d.DockerAuthType.AWS_OIDC: d.AWSOIDCDockerAuth(**role),
            d.DockerAuthType.AWS_ASSUME_ROLE: d.AWSAssumeRoleDockerAuth(**role),
            d.DockerAuthType.GCP_OIDC: d.GCPOIDCDockerAuth(
                service_account="a", workload_identity_provider="b"
            ),
            d.DockerAuthType.GCP_SERVICE_ACCOUNT_JSON: d.GCPServiceAccountJSONDockerAuth(
                service_account_json_secret_ref=d.SecretReference(name="a")
            ),
        }
        own: dict[str, Any] = {block: blocks[method]}
        d.DockerAuth(auth_method=method, registry="r", **own)
        message = refusal(
            lambda: d.DockerAuth(auth_method=method, registry="r", registry_secret_docker_auth=foreign, **own)
        )
        assert "registry_secret_docker_auth cannot be specified" in message


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


@pytest.mark.parametrize(
    "source",
    [
        "hf://Qwen/Qwen3-0.6B",
        "hf://meta-llama/Llama-3.1-8B@main",
        "s3://my-bucket/training-data",
        "gs://my-bucket/data",
        "r2://account_id.bucket/path",
        "azure://account/container/path",
        "cw://bucket/path",
        "https://example.com/model.bin",
        "file:///srv/weights",
    ],
)
def test_sources_of_weights(source: str) -> None:
    assert weights(source=source).scheme == source.partition("://")[0]


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


def test_members_look_in_text_as_those_of_the_official_sdk() -> None:
    assert f"{d.Accelerator.H100}" == "Accelerator.H100"
    assert d.Accelerator.H100 == "H100"
