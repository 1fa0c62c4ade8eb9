"""The submit form: what its fields override, and what it shows before a job is submitted."""

from __future__ import annotations

from api_client.definitions import (
    Accelerator,
    AcceleratorSpec,
    AvailabilityModel,
    CacheConfig,
    Compute,
    Image,
    Runtime,
    SecretReference,
    TrainingJob,
    TrainingProject,
)
from api_client.submission.payload import Overrides
from tui.forms.submission import FIELDS, overrides_of, summary

JOB = TrainingJob(
    image=Image(base_image="python:3.12"),
    compute=Compute(
        node_count=2,
        accelerator=AcceleratorSpec(accelerator=Accelerator.H100, count=8),
        availability_model=AvailabilityModel.SPOT,
    ),
    runtime=Runtime(
        start_commands=["sh a.sh", "sh b.sh"],
        environment_variables={"A": "s3cret", "TOKEN": SecretReference(name="hf")},
        cache_config=CacheConfig(enabled=True),
    ),
)


def test_empty_field_and_half_a_number_override_nothing() -> None:
    typed = dict.fromkeys((field.name for field in FIELDS), " ")
    assert overrides_of(typed) == Overrides()
    assert overrides_of(typed | {"node_count": "-", "priority": "3"}) == Overrides(priority=3)
    assert overrides_of(typed | {"node_count": "0", "job_name": " x "}) == Overrides(
        job_name="x", node_count=0
    )


def test_field_shows_the_value_of_the_config() -> None:
    own = {field.name: field.config_value(JOB) for field in FIELDS}
    assert own == {
        "job_name": "",
        "accelerator": "H100:8",
        "node_count": "2",
        "entrypoint": "sh a.sh && sh b.sh",
        "priority": "",
        "availability": "spot",
    }


def test_summary_names_variables_and_secrets_without_values() -> None:
    rows = summary(TrainingProject(name="p\x1b[2J", job=JOB), None)
    assert rows[:3] == [("project", "p"), ("job", "(unnamed)"), ("hardware", "2×8 H100, spot")]
    assert ("environment", "A, TOKEN (secret hf)") in rows
    assert ("cache", f"on, at {CacheConfig().mount_base_path}") in rows
    assert ("checkpoints", "off") in rows
