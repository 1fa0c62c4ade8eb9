"""Defaults, strictness and checks of the definitions, and fields that are sent without being known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from api_client import definitions as d
from api_client.definitions.base import FROM_SDK, unknown_fields
from api_client.errors import ConfigurationError
from api_client.submission.payload import Overrides, apply_overrides, job_payload, project_payload

IMAGE = d.Image(base_image="python:3.12-slim")


def refusal(make: Callable[[], Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        make()
    return str(caught.value)


def weights(**fields: Any) -> d.WeightsSource:
    return d.WeightsSource(**{"source": "s3://bucket/data", "mount_location": "/data", **fields})


def login(method: str, **fields: str) -> d.WeightsSource:
    return weights(auth={"auth_method": method, **fields})


SECRET = {"auth_method": "CUSTOM_SECRET", "auth_secret_name": "t"}
FULL = d.FullCheckpoint(training_job_id="j", checkpoint_name="c")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: d.Compute(node_count="2"), ["node_count", "valid integer", "'2'"]),
        (lambda: d.Compute(node_cout=2), ["node_cout", "did you mean 'node_count'", "cpu_count", "memory"]),
        (lambda: d.Compute(availability_model="spot"), ["'spot'", "AvailabilityModel.DEDICATED"]),
        (lambda: d.InteractiveSession(trigger="on_startup"), ["InteractiveSessionTrigger.ON_STARTUP"]),
        (lambda: d.Runtime(start_commands="x"), ["start_commands", "valid list", "'x'"]),
        (lambda: d.Runtime(environment_variables={"A": 1}), ["environment_variables.A", "SecretReference"]),
        (d.TrainingJob, ["image", "required"]),
        (lambda: d.LoopsCheckpoint.from_checkpoint("r", "c", target="both"), ["'trainer'", "'both'"]),
        (d.BasetenCheckpoint.from_latest_checkpoint, ["project_name", "job_id"]),
        (lambda: d.BasetenCheckpoint.from_latest_checkpoint(project_name=""), ["project_name", "job_id"]),
        *((lambda text=text: weights(source=text), words) for text, words in {
            "bucket/data": ["hf://", "s3://", "gs://", "r2://", '"bucket/data"'],
            "ftp://bucket/data": ["s3://", '"ftp://bucket/data"'],
            "s3://": ["s3://bucket/path"],
            "gs://bucket/data@main": ["revision", "hf://"],
            "hf:///repo": ["hf://owner/repository"],
            "https:///x": ["https://host/path"],
            "file://data": ["file:///path"],
        }.items()),
        (lambda: weights(mount_location="data"), ["mount_location", '"data"', "absolute"]),
        (lambda: login("PASSWORD"), ["auth_method", "CUSTOM_SECRET", "'PASSWORD'"]),
        (lambda: login("AWS_OIDC", aws_oidc_region="r"), ["aws_oidc_role_arn must be provided"]),
        (lambda: login("custom_secret", auth_secret_name="s", aws_oidc_region="r"),
         ["aws_oidc_region cannot be specified"]),
        (lambda: weights(auth_secret_name="s", auth=SECRET), ["twice"]),
        *((lambda text=text: d.Compute(accelerator=text), [f"input_value={text!r}", "accelerator"])
          for text in ("H100:2:3", "h100", "H100:0", ":8", "", "H100: 8", "A100-40GB", "H100:²")),
        (lambda: d.Compute(accelerator="X9"), ["A10G", "H100_40GB"]),
        (lambda: d.Compute(accelerator={"accelerator": "X9"}), ["A10G", "H100_40GB"]),
        (lambda: d.Compute(accelerator=8), ["H100:8"]),
        (lambda: d.AcceleratorSpec(accelerator="H100", count=-1), ["count"]),
        (lambda: d.Runtime(enable_cache=True, cache_config=d.CacheConfig(enabled=True)), ["cache_config"]),
        (lambda: d.CheckpointList(checkpoints=[FULL], loops_checkpoint_ids=["l"]), ["Cannot mix"]),
    ],
)  # fmt: skip
def test_wrong_values_are_refused_in_words(make: Callable[[], Any], words: list[str]) -> None:
    message = refusal(make)
    assert not [word for word in words if word not in message], message


def test_assignments_are_checked() -> None:
    compute = d.Compute()
    assert "node_count" in refusal(lambda: setattr(compute, "node_count", "2"))
    assert "nodes" in refusal(lambda: setattr(compute, "nodes", 2))
    assert compute == d.Compute()


@pytest.mark.parametrize(("text", "name", "count"), [("H100", "H100", 1), (" A100_40GB:4 ", "A100_40GB", 4)])
def test_accelerators_in_the_short_form(text: str, name: str, count: int) -> None:
    spec = d.Compute(accelerator=text).accelerator
    assert spec == d.AcceleratorSpec(accelerator=d.Accelerator(name), count=count)
    assert str(spec) == text.strip()
    assert d.AcceleratorSpec.model_validate(text) == spec


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


def test_sources_of_weights() -> None:
    schemes = ["hf", "s3", "gs", "r2", "azure", "cw", "https"]
    assert [weights(source=f"{scheme}://a.b/c").scheme for scheme in schemes] == schemes


def test_both_spellings_of_a_cache_cannot_be_mixed() -> None:
    cache = d.CacheConfig(enabled=True)
    runtime = d.Runtime(cache_config=cache)
    assert "cache_config" in refusal(lambda: setattr(runtime, "enable_cache", True))
    assert runtime.cache_config == cache


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


def test_fields_of_lax_classes_and_of_a_newer_sdk_are_named_if_they_are_set_and_always_sent() -> None:
    job = {"image": {"base_image": "x"}, "compute": {"zone": "a"}, "runtime": {"shell": None}}
    job["weights"] = [{"source": "s3://bucket/data", "mount_location": "/data", "fast": True}]
    sent = {"name": "p", "region": "eu", "job": job}
    with pytest.raises(ValidationError, match="region"):
        d.TrainingProject.model_validate(sent)
    project = d.TrainingProject.model_validate(sent, context=FROM_SDK)
    assert set(unknown_fields(project)) == {"region", "job.compute.zone", "job.weights.0.fast"}
    changed, _ = apply_overrides(project, Overrides(node_count=2))
    assert project_payload(changed) == {"name": "p", "region": "eu"}
    payload = job_payload(changed.job, artifact=None, user_env=None)
    assert (payload["compute"]["zone"], payload["compute"]["node_count"]) == ("a", 2)
    assert payload["runtime"]["shell"] is None
    assert payload["weights"][0]["fast"] is True


def test_a_value_that_json_cannot_hold_is_refused_in_words() -> None:
    job = d.TrainingJob(image=IMAGE, weights=[weights(odd=object())])
    with pytest.raises(ConfigurationError, match="cannot be written as JSON"):
        job_payload(job, artifact=None, user_env=None)
