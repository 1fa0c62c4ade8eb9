"""Values of the caller that no job can have."""

import pytest

from api_client.definitions import Image, TrainingJob, TrainingProject
from api_client.errors import ConfigurationError
from api_client.submission.payload import Overrides, apply_overrides


def test_a_value_that_no_job_can_have_is_named() -> None:
    project = TrainingProject(name="sft", job=TrainingJob(image=Image(base_image="python:3.12")))
    for field, value, reason in (
        ("accelerator", "H100:2:3", "the accelerator 'H100:2:3' is invalid"),
        ("interactive_trigger", "always", "'always' must be one of on_startup, on_failure, on_demand"),
        ("availability", "sopt", "the availability 'sopt' must be one of dedicated, spot"),
        ("priority", "high", "the priority 'high' is invalid"),
    ):
        with pytest.raises(ConfigurationError, match=reason):
            apply_overrides(project, Overrides(**{field: value}))
