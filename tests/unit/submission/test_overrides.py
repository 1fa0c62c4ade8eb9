"""What a caller's values do to a config, and what is said about the values they replace."""

import pytest

from api_client import definitions as d
from api_client.errors import ConfigurationError
from api_client.submission.payload import Overrides, apply_overrides


def warned(values: dict[str, object], **job: object) -> tuple[str, ...]:
    wanted = d.TrainingJob(image=d.Image(base_image="python:3.12"), **job)
    return apply_overrides(d.TrainingProject(name="sft", job=wanted), Overrides(**values))[1]


def test_values_that_were_set_are_named_when_replaced() -> None:
    values = {
        "job_name": "other",
        "accelerator": "H100",
        "node_count": 1,
        "entrypoint": "true",
        "priority": 9,
    }
    session = d.InteractiveSession(trigger=d.InteractiveSessionTrigger.ON_STARTUP, timeout_minutes=10)
    assert warned(
        values | {"interactive_trigger": "on_demand", "interactive_timeout_minutes": 5},
        name="mine",
        priority=0,
        compute=d.Compute(node_count=2, accelerator="H200:4"),
        runtime=d.Runtime(start_commands=["pip install x", "python train.py"]),
        interactive_session=session,
    ) == (
        "name: other replaces the config's mine",
        "interactive trigger: on_demand replaces the config's on_startup",
        "interactive timeout: 5 replaces the config's 10",
        "accelerator: H100 replaces the config's H200:4",
        "node_count: 1 replaces the config's 2",
        "start_commands: ['true'] replaces the config's ['pip install x', 'python train.py']",
        "priority: 9 replaces the config's 0",
    )


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"accelerator": "H100:2:3"}, "the accelerator 'H100:2:3' is invalid"),
        ({"interactive_trigger": "always"}, "'always' must be one of on_startup, on_failure, on_demand"),
        ({"priority": "high"}, "the priority 'high' is invalid"),
    ],
)
def test_a_value_that_no_job_can_have_is_named(values: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        warned(values)
