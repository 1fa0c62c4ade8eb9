"""Deploying over a real socket: what is sent, how often, and what is made of a lost answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from deployable import CHECKPOINTS, EXAMPLES, LISTED_INSTANCES

from api_client import ConfigurationError, TrainingClient, Unreachable
from api_client.definitions import AcceleratorSpec, Compute
from api_client.deployment import (
    DeploymentResult,
    DeploymentUnclear,
    build_config,
    deploy,
    deployment_request,
    truss_config_path,
)
from support.deploying_server import TRUSS_CONFIG, DeployingServer
from support.fake_baseten import Answer, ReceivedRequest
from support.log_server import FastClock
from support.remotes import remote_of

CONFIG = build_config(EXAMPLES["two_adapters"], CHECKPOINTS)
NOW = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 -- local time, as the names have it
LOST = ["no answer", "half an answer", "bad gateway", "no JSON", "no version"]


@pytest.fixture
def server() -> Iterator[DeployingServer]:
    with DeployingServer() as server:
        server.machines = LISTED_INSTANCES
        yield server


@pytest.fixture
async def client(server: DeployingServer) -> AsyncIterator[TrainingClient]:
    async with TrainingClient(remote_of(server), clock=FastClock()) as client:
        yield client


async def test_the_smallest_fitting_machine_is_used(server: DeployingServer, client: TrainingClient) -> None:
    result, dry = await deploy(client, CONFIG), await deploy(client, CONFIG, dry_run=True)
    asked = [
        deployment_request(CONFIG, instance_type_id="h100:4x1", dry_run=is_dry) for is_dry in (False, True)
    ]
    assert server.requests == asked
    assert (result.model_id, result.version_id, result.name) == ("model0", "dep0", "deployment-1")
    assert result.link == f"{server.url}/models/model0/logs/dep0"
    assert json.loads(result.truss_config) == json.loads(dry.truss_config) == TRUSS_CONFIG
    assert (result.was_found_again, len(server.deployments)) == (False, 1)
    assert (dry.model_id, dry.version_id, dry.link) == (None, None, None)
    server.trouble = "no answer"
    with pytest.raises(Unreachable):
        await deploy(client, CONFIG, dry_run=True)
    assert len(server.requests) == 3


@pytest.mark.parametrize("trouble", LOST)
async def test_a_lost_answer_never_deploys_twice_found_again_or_unclear(
    server: DeployingServer, client: TrainingClient, trouble: str
) -> None:
    server.deploy("llama-support")
    server.deploy("another")
    server.trouble = trouble
    result = await deploy(client, CONFIG)
    assert len(server.requests) == 1
    assert (result.model_id, result.version_id, result.was_found_again) == ("model0", "dep2", True)
    assert result.link == f"{server.url}/models/model0/logs/dep2"
    server.trouble, server.makes_it = trouble, False
    with pytest.raises(DeploymentUnclear, match="Check the workspace's models") as caught:
        await deploy(client, CONFIG)
    assert len(server.requests) == 2
    assert not caught.value.retryable
    assert client.clock.passed_s == 4
    assert server.key not in str(caught.value)


async def test_where_the_models_cannot_be_listed_or_two_are_new_a_lost_answer_stays_unclear(
    server: DeployingServer, client: TrainingClient
) -> None:
    server.on("GET", "/v1/models", Answer({"message": "not for you"}, status=403))
    assert (await deploy(client, CONFIG)).version_id == "dep0"
    server.trouble = "no answer"
    with pytest.raises(DeploymentUnclear):
        await deploy(client, CONFIG)
    assert len(server.requests) == 2
    server.requests, server.deployments, server.makes_it = [], [], False

    def two_of_somebody_else(_: object) -> Answer:
        if server.requests and not server.deployments:
            server.deploy("llama-support")
            server.deploy("llama-support")
        return Answer({"models": server.models})

    server.on("GET", "/v1/models", two_of_somebody_else)
    server.trouble = "no answer"
    with pytest.raises(DeploymentUnclear, match="2 new deployments have this name"):
        await deploy(client, CONFIG)


async def test_what_cannot_be_deployed_is_not_sent(server: DeployingServer, client: TrainingClient) -> None:
    on_h200 = Compute(accelerator=AcceleratorSpec.model_validate("H200:1"))
    changes = {"model_name": {"model_name": " "}, "H200": {"compute": on_h200}}
    for reason, change in {**changes, "no GPU": {"compute": Compute(cpu_count=99)}}.items():
        with pytest.raises(ConfigurationError, match=reason):
            await deploy(client, CONFIG.model_copy(update=change))
    assert server.requests == []


async def test_rest_is_asked_for_machines_otherwise(server: DeployingServer, client: TrainingClient) -> None:
    def without_instances(asked: ReceivedRequest) -> Answer:
        if "listed_instances" in str(asked.body["query"]):
            return Answer({"errors": [{"message": "Cannot query field listed_instances"}]})
        return server._graphql(asked)

    machine = {"id": "rest-h100", "name": "H100:2", "gpu_count": 2, "gpu_type": "H100"}
    server.on("POST", "/graphql/", without_instances)
    server.on("GET", "/v1/instance_types", Answer({"instance_types": [machine]}))
    await deploy(client, CONFIG)
    assert server.requests[0]["instance_type_id"] == "rest-h100"


def config_path(version: str | None, name: str) -> Path:
    return truss_config_path(DeploymentResult("m", version, name, "{}", None), None, NOW)


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "..", "a/b\\c\nd", "é" * 500])
def test_the_folder_has_the_name_that_the_official_cli_gives_it_and_no_name_leads_out(name: str) -> None:
    assert str(config_path("dep0", "deployment-1")) == "truss_configs/deployment-1_dep0/config.yaml"
    assert str(config_path(None, "deployment-1")) == "truss_configs/dry_run_20260102_030405/config.yaml"
    top, folder, _file = config_path("../v", name).parts
    assert top == "truss_configs"
    assert folder not in (".", "..")
    assert len(folder) < 200
