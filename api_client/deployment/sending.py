"""Deploying: one mutation, sent once. If its answer is lost, the models tell what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from api_client.clock import Clock, SystemClock
from api_client.definitions import DeployCheckpointsConfig
from api_client.deployment.instance_choice import smallest_instance
from api_client.deployment.instance_listing import InstanceDirectory, listed_instances
from api_client.deployment.request import DEPLOY_FIELD, DEPLOY_MUTATION, deployment_request
from api_client.errors import ConfigurationError, InvalidAnswer, RequestError, ServerFault, Unreachable
from api_client.models import Deployment
from api_client.remotes import Remote
from api_client.resources.models import Models

LOOKS_AFTER_A_LOST_ANSWER = 3
LOOK_INTERVAL_S = 2.0


class DeploymentClient(InstanceDirectory, Protocol):
    """The parts of a client that a deployment needs."""

    @property
    def remote(self) -> Remote:
        """Where the links lead."""
        ...

    @property
    def models(self) -> Models:
        """What is deployed already."""
        ...


@dataclass(frozen=True, slots=True)
class DeploymentResult:
    """What came of a deployment.

    A dry run has no ids and no ``link``. ``truss_config`` is the returned config as JSON, empty if the server
    returned none. ``was_found_again`` means that the answer was lost and the models told the ids.
    """

    model_id: str | None
    version_id: str | None
    name: str | None
    truss_config: str
    link: str | None
    was_found_again: bool = False


class DeploymentUnclear(RequestError):
    """The answer to a deployment was lost, and nothing tells whether it was made.

    Look at the workspace's models before deploying again: it may be there, and cost money.
    """


async def deploy(
    client: DeploymentClient,
    config: DeployCheckpointsConfig,
    *,
    dry_run: bool = False,
    clock: Clock | None = None,
) -> DeploymentResult:
    """Deploy, or have the truss config rendered and nothing created (``dry_run``).

    The mutation is never sent again once it may have arrived; if its answer is lost, the models tell.
    Raises ConfigurationError if no machine fits, DeploymentUnclear, and the other kinds of RequestError.
    """
    if not (config.model_name or "").strip():
        raise ConfigurationError("the model to deploy has no name (model_name)")
    instance = smallest_instance(await listed_instances(client), config.compute)
    if instance is None:
        asked = str(config.compute.accelerator or "no GPU") if config.compute else "no GPU"
        raise ConfigurationError(f"no instance type of one node fits what is asked for ({asked})")
    request = deployment_request(config, instance_type_id=instance.id, dry_run=dry_run)
    known = None if dry_run else await _known_deployments(client, config.model_name or "")
    try:
        data = await client.graphql.execute(DEPLOY_MUTATION, {"request": request})
        return _read(data, client.remote, dry_run=dry_run)
    except (Unreachable, ServerFault, InvalidAnswer) as error:
        if dry_run:
            raise
        failure = error
    return await _found_again(client, config.model_name or "", known, failure, clock or SystemClock())


def deployment_link(remote: Remote, model_id: str, deployment_id: str) -> str:
    """The deployment's page in the browser."""
    return f"{remote.app_url.rstrip('/')}/models/{model_id}/logs/{deployment_id}"


def _read(data: dict[str, Any], remote: Remote, *, dry_run: bool) -> DeploymentResult:
    answer = data.get(DEPLOY_FIELD)
    answer = answer if isinstance(answer, dict) else {}
    truss_config = answer.get("truss_config") or ""
    if not isinstance(truss_config, str):
        truss_config = json.dumps(truss_config)
    version = answer.get("model_version")
    if dry_run:
        # Whatever a server says of a dry run, there is nothing to look at.
        return DeploymentResult(None, None, None, truss_config, None)
    if not isinstance(version, dict) or not version.get("id") or not version.get("model_id"):
        raise InvalidAnswer("the answer to the deployment names no model", method="POST", path="/graphql/")
    model_id, version_id = str(version["model_id"]), str(version["id"])
    return DeploymentResult(
        model_id=model_id,
        version_id=version_id,
        name=str(version.get("name") or ""),
        truss_config=truss_config,
        link=deployment_link(remote, model_id, version_id),
    )


async def _known_deployments(client: DeploymentClient, name: str) -> frozenset[str] | None:
    """Ids of the deployments under this name; None if the server does not tell. Raises Unreachable."""
    try:
        return frozenset(each.id for _, each in await _deployments_named(client, name))
    except Unreachable:
        raise
    except RequestError:
        return None


async def _deployments_named(client: DeploymentClient, name: str) -> list[tuple[str, Deployment]]:
    """Model id and deployment."""
    found: list[tuple[str, Deployment]] = []
    for model in await client.models.list():
        if model.name == name:
            found += [(model.id, each) for each in await client.models.deployments(model.id)]
    return found


async def _found_again(
    client: DeploymentClient,
    name: str,
    known: frozenset[str] | None,
    failure: RequestError,
    clock: Clock,
) -> DeploymentResult:
    """The deployment whose answer was lost, if exactly one is new. Raises DeploymentUnclear otherwise."""
    fresh: list[tuple[str, Deployment]] = []
    for look in range(LOOKS_AFTER_A_LOST_ANSWER if known is not None else 0):
        if look:
            await clock.sleep(LOOK_INTERVAL_S)
        try:
            deployments = await _deployments_named(client, name)
        except RequestError:
            continue  # it is unclear already
        fresh = [(model_id, each) for model_id, each in deployments if each.id not in (known or ())]
        if fresh:
            break
    if len(fresh) == 1:
        model_id, deployment = fresh[0]
        link = deployment_link(client.remote, model_id, deployment.id)
        return DeploymentResult(model_id, deployment.id, deployment.name, "", link, was_found_again=True)
    seen = f"; {len(fresh)} new deployments have its name" if fresh else ""
    raise DeploymentUnclear(
        f"nobody can tell whether {name!r} was deployed ({failure}){seen}."
        " Look at the workspace's models before deploying again",
        method=failure.method,
        path=failure.path,
        attempts=failure.attempts,
    )
