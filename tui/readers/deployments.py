"""Find deployments and what they serve, and carry out changes: one runner for screen, terminal and flags."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from api_client.client import TrainingClient
from api_client.clock import epoch_ms
from api_client.deployment import Calls, calls_of
from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError
from api_client.models import Activation, ApiModel, Deployment, Model, Retry, Startup
from tui.analysis.deployments import (
    DeploymentChange,
    ListedDeployment,
    ServedCheckpoint,
    served_checkpoints,
    transcribes,
)
from tui.text.times import time_key

NO_REASON = "the server gave no reason"
LONGEST_RANGE = timedelta(days=7)


async def list_deployments(
    client: TrainingClient, models: Sequence[Model], job_id: str | None = None
) -> list[ListedDeployment]:
    """Return the deployments of these models, newest first; only those that serve a job's checkpoints."""
    listed = await asyncio.gather(*(_of_model(client, model) for model in models))
    deployments = [deployment for of_model in listed for deployment in of_model]
    if job_id is not None:
        served = await asyncio.gather(*(_served(client, deployment) for deployment in deployments))
        deployments = [
            deployment
            for deployment, checkpoints in zip(deployments, served, strict=True)
            if any(checkpoint.job_id == job_id for checkpoint in checkpoints)
        ]
    return sorted(deployments, key=lambda deployment: time_key(deployment.created_at), reverse=True)


async def _of_model(client: TrainingClient, model: Model) -> list[ListedDeployment]:
    try:
        deployments = await client.models.deployments(model.id)
    except NotFound:  # deleted in the meantime
        return []
    named = {"model_id": model.id, "model_name": model.name}
    return [ListedDeployment.model_validate(deployment.model_dump() | named) for deployment in deployments]


async def _served(client: TrainingClient, deployment: Deployment) -> tuple[ServedCheckpoint, ...]:
    try:
        answer = await client.models.config(deployment.model_id, deployment.id)
    except NotFound:
        return ()
    return served_checkpoints(answer.config)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The checkpoints of a deployment, how its replicas started, and how to call it."""

    checkpoints: tuple[ServedCheckpoint, ...] = ()
    startups: tuple[Startup, ...] = ()
    call: Calls | None = None


async def read_served(client: TrainingClient, deployment: Deployment) -> ServedModel:
    """Return the parts that the server has; servers may lack or refuse these routes. Raises RequestError."""
    config = None
    with suppress(ErrorAnswer, InvalidAnswer):
        config = (await client.models.config(deployment.model_id, deployment.id)).config
    checkpoints = served_checkpoints(config)
    call = None
    if checkpoints:
        call = calls_of(
            client.remote,
            deployment.model_id,
            deployment.id,
            checkpoints[0].name,
            is_whisper=transcribes(config),
        )
    return ServedModel(checkpoints, await read_startups(client, deployment.model_id, deployment.id), call)


async def read_startups(client: TrainingClient, model_id: str, deployment_id: str) -> tuple[Startup, ...]:
    """Return the starts of the last seven days; none if they cannot be read, as they only add to the rest."""
    now = client.clock.now()
    with suppress(RequestError):
        startups = await client.models.startups(
            model_id, deployment_id, start_ms=epoch_ms(now - LONGEST_RANGE), end_ms=epoch_ms(now)
        )
        return tuple(startups)
    return ()


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """The server's answer to a change; ``reason`` says why nothing changed: refused, or already so."""

    answer: ApiModel
    reason: str = ""
    is_refused: bool = False


async def change_deployment(client: TrainingClient, change: DeploymentChange) -> ChangeOutcome:
    """Request a change once. Raises RequestError; with ``may_have_happened`` if that is unknown."""
    ids = change.deployment.model_id, change.deployment.id
    answer: Deployment | Activation | Retry = await getattr(client.models, change.verb.name)(*ids)
    if isinstance(answer, Retry):
        reason = "" if answer.retried else answer.reason or NO_REASON
        return ChangeOutcome(answer, reason, is_refused=not answer.retried)
    if isinstance(answer, Activation) and not answer.success:
        return ChangeOutcome(answer, NO_REASON, is_refused=True)
    is_no_op = isinstance(answer, Activation) and answer.no_op
    return ChangeOutcome(answer, f"it was {change.verb.done} already" if is_no_op else "")
