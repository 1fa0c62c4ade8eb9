"""Fields that are sent without being known."""

from __future__ import annotations

import pytest

from api_client import definitions as d
from api_client.errors import ConfigurationError
from api_client.submission.payload import job_payload, project_payload, unknown_fields


def a_project() -> d.TrainingProject:
    weights = d.WeightsSource(source="s3://bucket/data", mount_location="/data", fast=True)
    compute = d.Compute(accelerator=d.AcceleratorSpec(accelerator="H100", colour="green"))
    job = d.TrainingJob(image=d.Image(base_image="x"), compute=compute, weights=[weights])
    return d.TrainingProject(name="p", job=job)


def test_fields_of_lax_classes_and_of_a_newer_sdk_are_named_when_they_are_set_and_always_sent() -> None:
    project = a_project()
    assert set(unknown_fields(project)) == {"compute.accelerator.colour", "weights.0.fast"}
    project.keep_newer_field(("region",), "eu")
    project.job.keep_newer_field(("compute", "zone"), "a")
    project.job.keep_newer_field(("runtime", "shell"), None)
    assert {"region", "compute.zone"} < set(unknown_fields(project))
    assert not [field for field in unknown_fields(project) if "shell" in field]
    assert project_payload(project) == {"name": "p", "region": "eu"}
    payload = job_payload(project.job, artifact=None, user_env=None)
    assert payload["compute"]["zone"] == "a"
    assert payload["runtime"]["shell"] is None


def test_newer_fields_survive_a_copy_and_go_with_the_part_they_belong_to() -> None:
    project = a_project()
    project.job.keep_newer_field(("weights", 0, "mirror"), "m")
    copy = project.model_copy(deep=True)
    copy.job.weights = []
    assert job_payload(project.job, artifact=None, user_env=None)["weights"][0]["mirror"] == "m"
    assert job_payload(copy.job, artifact=None, user_env=None)["weights"] == []


def test_a_value_that_json_cannot_hold_is_refused_in_words() -> None:
    project = a_project()
    project.job.weights[0] = d.WeightsSource(source="s3://b/c", mount_location="/x", odd=object())
    with pytest.raises(ConfigurationError, match="cannot be written as JSON"):
        job_payload(project.job, artifact=None, user_env=None)
