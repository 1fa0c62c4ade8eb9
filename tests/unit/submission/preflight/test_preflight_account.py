"""What the pre-flight says of a job once it knows the account."""

from datetime import UTC, datetime, timedelta

import pytest
from preflight_listed import Listing, cached, capacity, machine, price, problems, project

from api_client.definitions import (
    AvailabilityModel,
    AWSIAMDockerAuth,
    DockerAuth,
    DockerAuthType,
    Image,
    SecretReference,
    WeightsSource,
)
from api_client.models import InstanceType, Team, TrainingJob
from api_client.submission.preflight import AccountFacts, check

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
H100S = (machine("H100", 1), machine("H100", 8))
RESEARCH = Team(id="t1", name="Research", default=True)


def findings(wanted, **facts):
    return check(wanted, Listing(), AccountFacts(**facts), now=NOW)


def waiting(gpus: int, minutes: int, nodes: int = 1) -> TrainingJob:
    return TrainingJob(
        id="w",
        current_status="TRAINING_JOB_PENDING",
        created_at=NOW - timedelta(minutes=minutes),
        instance_type=InstanceType(gpu_type="H100", gpu_count=gpus),
        node_count=nodes,
    )


def test_every_missing_secret_is_named_with_the_field_that_wants_it():
    wanted = project(
        "./run",
        environment_variables={
            "HF_TOKEN": SecretReference(name="hf"),
            "WANDB": SecretReference(name="wandb"),
            "PLAIN": "text",
        },
        weights=[
            WeightsSource(
                source="hf://a/b",
                mount_location="/m",
                auth={"auth_method": "CUSTOM_SECRET", "auth_secret_name": "hub"},
            ),
            WeightsSource(source="hf://a/b", mount_location="/n", auth_secret_name="other"),
        ],
    )
    wanted.job.image = Image(
        base_image="a",
        docker_auth=DockerAuth(
            auth_method=DockerAuthType.AWS_IAM,
            registry="r",
            aws_iam_docker_auth=AWSIAMDockerAuth(
                access_key_secret_ref=SecretReference(name="key"),
                secret_access_key_secret_ref=SecretReference(name="secret"),
            ),
        ),
    )

    found = check(wanted, Listing(), AccountFacts(secret_names=frozenset({"hf"})), now=NOW)

    assert [each for each in problems(found, "error") if "secret" in each] == [
        "image.docker_auth.aws_iam_docker_auth.access_key_secret_ref: the workspace has no secret 'key'",
        "image.docker_auth.aws_iam_docker_auth.secret_access_key_secret_ref:"
        " the workspace has no secret 'secret'",
        "runtime.environment_variables.WANDB: the workspace has no secret 'wandb'",
        "weights[0].auth.auth_secret_name: the workspace has no secret 'hub'",
        "weights[1].auth_secret_name: the workspace has no secret 'other'",
    ]


def test_secrets_that_could_not_be_listed_are_not_called_missing():
    wanted = project("sleep 1", environment_variables={"A": SecretReference(name="hf")})

    found = findings(wanted, unknown_facts=(("secrets", "403 no"),))

    assert problems(found, "error") == []
    assert problems(found, "info") == ["account: secrets could not be checked: 403 no"]


def test_a_gpu_that_no_machine_has_is_an_error():
    found = findings(project("sleep 1", gpus="B200"), instance_types=(*H100S, machine("A100-40GB", 1)))

    assert problems(found, "error") == ["compute.accelerator: the account has no instance with B200"]
    assert found[0].remedy == "it has A100_40GB, H100"


@pytest.mark.parametrize("spelling", ["A100-40GB", "A100_40GB"])
def test_both_spellings_of_a_gpu_type_are_one(spelling):
    found = findings(
        project("sleep 1", gpus="A100_40GB"),
        instance_types=(machine(spelling, 1),),
        capacity=capacity(spelling, limit=8),
    )

    assert found == ()


def test_a_type_with_training_capacity_but_no_machine_is_only_a_warning():
    found = findings(
        project("sleep 1", gpus="H200"), instance_types=H100S, capacity=capacity("H200", limit=8)
    )

    assert [each.severity for each in found] == ["warning"]


def test_more_gpus_than_a_machine_has():
    found = findings(project("sleep 1", gpus="H100:16"), instance_types=H100S)

    assert problems(found, "error") == ["compute.accelerator: no instance has 16 H100; the largest has 8"]


def test_no_capacity_is_listed_for_the_type():
    found = findings(project("sleep 1", gpus="H100"), capacity=capacity("A10G", limit=8))

    assert problems(found, "warning") == ["compute.accelerator: no training capacity is listed for H100"]


def test_capacity_enough():
    assert findings(project("sleep 1", gpus="H100"), capacity=capacity("H100", limit=8, used=7)) == ()


@pytest.mark.parametrize(
    ("queue", "tail"),
    [
        (None, ""),
        ((), "; no other job is queued"),
        ((waiting(8, 3),), "; 1 job with 8 GPUs already queued, the oldest for 3 min"),
        (
            (waiting(8, 3), waiting(8, 41, nodes=2)),
            "; 2 jobs with 24 GPUs already queued, the oldest for 41 min",
        ),
    ],
)
def test_too_little_free_tells_how_long_the_queue_is(queue, tail):
    found = findings(
        project("sleep 1", gpus="H100"), capacity=capacity("H100", limit=96, used=96), waiting=queue
    )

    assert problems(found, "warning") == [
        "compute.accelerator: the job will be queued: 1 H100 requested, 0 of 96 free for the "
        "organization" + tail
    ]


def test_more_than_the_limit_would_wait_for_ever():
    job = project("sleep 1", gpus="H100:8", nodes=2)

    found = findings(job, capacity=capacity("H100", limit=8))

    assert problems(found, "error") == [
        "compute.accelerator: 16 H100 exceed the limit of the organization: 8"
    ]


def test_spot_may_go_over_the_limit():
    job = project("sleep 1", gpus="H100", availability_model=AvailabilityModel.SPOT)

    assert problems(findings(job, capacity=capacity("H100", limit=0)), "error") == []


def test_the_team_s_own_limit_counts():
    found = findings(
        project("sleep 1", gpus="H100:8", team_name="Research"),
        capacity=capacity("H100", limit=96, used=4, team=(RESEARCH, 8)),
        teams=(RESEARCH,),
        team=RESEARCH,
    )

    (warning,) = [each for each in problems(found, "warning") if "queued" in each]
    assert warning.endswith("8 H100 requested, 4 of 8 free for team Research")


def test_a_team_that_is_not_there():
    found = findings(project("sleep 1", team_name="Resaerch"), teams=(RESEARCH,))

    assert problems(found, "error") == ["team_name: no team 'Resaerch'"]
    assert found[0].remedy == "teams of this key: Research"


def test_a_cache_on_other_gpus_is_a_warning():
    job = project("sleep 1", gpus="H200", cache_config=cached())

    found = findings(job, cache_gpu_types=frozenset({"H100"}))

    (warning,) = problems(found, "warning")
    assert warning.startswith("runtime.cache_config.require_cache_affinity: the project's cache was written")


@pytest.mark.parametrize(
    ("gpus", "cache"),
    [("H100", cached()), ("H200", cached(require_cache_affinity=False)), ("H200", None), (None, cached())],
)
def test_a_cache_that_can_be_had_or_is_not_wanted(gpus, cache):
    job = project("sleep 1", gpus=gpus, cache_config=cache)

    assert findings(job, cache_gpu_types=frozenset({"H100"})) == ()


def test_a_machine_with_more_gpus_than_asked_for_is_said_beforehand():
    machines = (machine("H100", 4), machine("H100", 1), machine("H100", 8))

    found = findings(project("sleep 1", gpus="H100:3"), instance_types=machines)
    exact = findings(project("sleep 1", gpus="H100:4"), instance_types=machines)

    assert any("no instance has 3 H100: the job gets 4" in each for each in problems(found, "warning"))
    assert not any("the job gets" in each for each in problems(exact, "warning"))


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"gpus": "H100:8", "nodes": 2}, "about $104.40 per hour of run time (2 × H100:8)"),
        ({"gpus": "H100:2"}, "about $52.20 per hour of run time (H100:8)"),
        ({"gpus": "H100"}, "about $6.60 per hour of run time (H100:1)"),
        ({}, "about $0.06 per hour of run time (1x2)"),
        ({"cpu_count": 3}, "about $0.60 per hour of run time (4x16)"),
        ({"memory": "4Gi"}, "about $0.60 per hour of run time (4x16)"),
        ({"memory": "9000Mi"}, "about $0.60 per hour of run time (4x16)"),
    ],
)
def test_the_price_is_of_the_smallest_machine_that_is_enough(more, text):
    prices = (
        price(machine(None, cores=4, memory_gib=16), 0.01),
        price(machine(None, cores=1, memory_gib=2), 0.001),
        price(machine("H100", 8), 0.87),
        price(machine("H100", 1), 0.11),
    )

    found = findings(project("sleep 1", **more), prices=prices)

    assert problems(found, "info") == [f"compute: {text}"]


def test_no_price_is_made_up():
    assert findings(project("sleep 1", gpus="H200"), prices=(price(machine("H100", 1), 0.1),)) == ()
