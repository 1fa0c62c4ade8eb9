"""What the pre-flight says of a job once it knows the account."""

from typing import Any

import pytest
from preflight_listed import SAVED, Listing, capacity, machine, price, problems, project

from api_client.definitions import (
    AvailabilityModel,
    DockerAuthType,
    Image,
    SecretReference,
    TrainingProject,
    WeightsSource,
)
from api_client.models import Team
from api_client.submission.findings import Finding
from api_client.submission.preflight import AccountFacts, check

Facts = dict[str, Any]
H100S = (machine("H100", 1), machine("H100", 8))
RESEARCH = Team(id="t1", name="Research", default=True)


def findings(wanted: TrainingProject, **facts: Any) -> tuple[Finding, ...]:
    return check(wanted, Listing(), AccountFacts(**facts))


@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_every_missing_secret_is_named_with_the_field_that_wants_it() -> None:
    variables = {"HF_TOKEN": {"name": "hf"}, "WANDB": {"name": "wandb"}, "PLAIN": "text"}
    in_auth = {"auth": {"auth_method": "CUSTOM_SECRET", "auth_secret_name": "hub"}}
    weights = [
        WeightsSource.model_validate({"source": "hf://a/b", "mount_location": "/m"} | secret)
        for secret in (in_auth, {"auth_secret_name": "other"})
    ]
    wanted = project("./run", environment_variables=variables, weights=weights)
    keys = {"access_key_secret_ref": {"name": "key"}, "secret_access_key_secret_ref": {"name": "secret"}}
    docker_auth = {"auth_method": DockerAuthType.AWS_IAM, "registry": "r", "aws_iam_docker_auth": keys}
    wanted.job.image = Image.model_validate({"base_image": "a", "docker_auth": docker_auth})
    found = check(wanted, Listing(), AccountFacts(secret_names=frozenset({"hf"})))
    assert [each for each in problems(found, "error") if "secret" in each] == [
        "image.docker_auth.aws_iam_docker_auth.access_key_secret_ref: the workspace has no secret 'key'",
        "image.docker_auth.aws_iam_docker_auth.secret_access_key_secret_ref:"
        " the workspace has no secret 'secret'",
        "runtime.environment_variables.WANDB: the workspace has no secret 'wandb'",
        "weights[0].auth.auth_secret_name: the workspace has no secret 'hub'",
        "weights[1].auth_secret_name: the workspace has no secret 'other'",
    ]


HIDDEN = {"unknown_facts": (("secrets", "403 no"),)}
A_SECRET = {"environment_variables": {"A": SecretReference(name="hf")}}
OF_A_TEAM = {"capacity": capacity("H100", limit=96, used=4, team=(RESEARCH, 8)), "team": RESEARCH}
SPOT = {"gpus": "H100", "availability_model": AvailabilityModel.SPOT}
GPU = "compute.accelerator: "


@pytest.mark.parametrize(
    ("more", "facts", "severity", "problem", "remedy"),
    [
        (A_SECRET, HIDDEN, "info", "account: secrets could not be checked: 403 no", ""),
        ({"gpus": "B200"}, {"instance_types": (*H100S, machine("A100-40GB", 1))},
         "error", GPU + "the account has no instance with B200", "it has A100_40GB, H100"),
        ({"gpus": "H200"}, {"instance_types": H100S, "capacity": capacity("H200", limit=8)},
         "warning", GPU + "the account has no instance with H200", "it has H100"),
        ({"gpus": "H100:16"}, {"instance_types": H100S},
         "error", GPU + "no instance has 16 H100; the largest has 8", "use H100:8 on more nodes"),
        ({"gpus": "H100:3"}, {"instance_types": (machine("H100", 4), *H100S)},
         "warning", GPU + "no instance has 3 H100: the job gets 4", "instances have 1, 4, 8"),
        ({"gpus": "H100"}, {"capacity": capacity("A10G", limit=8)},
         "warning", GPU + "no training capacity is listed for H100", "capacity exists for: A10G"),
        ({"gpus": "H100:8", "nodes": 2}, {"capacity": capacity("H100", limit=8)},
         "error", GPU + "16 H100 exceed the limit of the organization: 8", ""),
        ({"gpus": "H100"}, {"capacity": capacity("H100", limit=96, used=96)},
         "warning", GPU + "the job will be queued: 1 H100 requested, 0 of 96 free for the organization", ""),
        (SPOT, {"capacity": capacity("H100", limit=0)}, "warning", GPU + "the job will be queued", ""),
        ({"gpus": "H100:8", "team_name": "Research"}, OF_A_TEAM,
         "warning", GPU + "the job will be queued: 8 H100 requested, 4 of 8 free for team Research", ""),
    ],
)  # fmt: skip
def test_what_the_account_lacks_is_told_with_what_to_do(
    more: Facts, facts: Facts, severity: str, problem: str, remedy: str
) -> None:
    found = findings(project("sleep 1", checkpointing_config=SAVED, **more), **facts)
    assert [each.severity for each in found] == [severity]
    assert f"{found[0].field}: {found[0].problem}".startswith(problem)
    assert remedy in found[0].remedy


@pytest.mark.parametrize(
    ("more", "facts"),
    [
        ({"gpus": "H100"}, {"capacity": capacity("H100", limit=8, used=7)}),
        ({"gpus": "H100"}, {"capacity": capacity("H100", limit=48, used=56, spot=32)}),
        ({"gpus": "H200"}, {"prices": (price(machine("H100", 1), 0.1),)}),
        *(
            ({"gpus": "A100_40GB"}, {"instance_types": (machine(a, 1),), "capacity": capacity(a, limit=8)})
            for a in ("A100-40GB", "A100_40GB")
        ),
    ],
)
def test_what_can_be_had_or_is_not_wanted_is_not_mentioned(more: Facts, facts: Facts) -> None:
    assert findings(project("sleep 1", **more), **facts) == ()


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"gpus": "H100:8", "nodes": 2}, "about $104.40 per hour of run time (2 × H100:8)"),
        ({"gpus": "H100:2"}, "about $52.20 per hour of run time (H100:8)"),
        ({"gpus": "H100"}, "about $6.60 per hour of run time (H100:1)"),
        ({}, "about $0.06 per hour of run time (1x2)"),
        ({"memory": "9000Mi"}, "about $0.60 per hour of run time (4x16)"),
    ],
)
def test_the_price_is_of_the_smallest_machine_that_is_enough(more: Facts, text: str) -> None:
    on_cpus = ((machine(None, cores=4, memory_gib=16), 0.01), (machine(None, cores=1, memory_gib=2), 0.001))
    prices = [price(*each) for each in (*on_cpus, (machine("H100", 8), 0.87), (machine("H100", 1), 0.11))]
    found = findings(project("sleep 1", **more), prices=tuple(prices))
    assert problems(found, "info") == [f"compute: {text}"]
