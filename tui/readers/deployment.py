"""Deploy checkpoints, and list and change deployments, for the screen and the commands.

Reads the choices for the form, sends the form's config, and writes the truss config.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from api_client.client import TrainingClient
from api_client.clock import epoch_ms
from api_client.definitions import DeployCheckpointsConfig
from api_client.deployment import (
    Calls,
    DeploymentResult,
    calls_of,
    deploy,
    listed_instances,
    write_truss_config,
)
from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError, Unauthorized
from api_client.models import (
    Activation,
    ApiModel,
    CheckpointFile,
    Deployment,
    Model,
    Retry,
    Startup,
    TrainingJob,
)
from api_client.remotes import Remote
from tui.analysis.deployments import (
    DeploymentChange,
    ListedDeployment,
    ServedCheckpoint,
    served_checkpoints,
    serves_transcriptions,
)
from tui.forms.deployment import DeployForm
from tui.forms.draft import USUAL_HF_SECRET, Facts
from tui.text.times import time_key

Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class SentDeployment:
    """The response to a deployment, and where its truss config was written, or why not."""

    result: DeploymentResult
    written_to: Path | None = None
    write_error: OSError | None = None


async def send(
    client: TrainingClient,
    config: DeployCheckpointsConfig,
    *,
    dry_run: bool,
    directory: Path | None = None,
) -> SentDeployment:
    """Deploy, or with ``dry_run`` only render the truss config; write it where the official CLI does.

    Raises ConfigurationError and RequestError.
    """
    result = await deploy(client, config, dry_run=dry_run)
    try:
        path = await asyncio.to_thread(write_truss_config, result, directory, client.clock.now().astimezone())
    except OSError as error:
        return SentDeployment(result, write_error=error)
    return SentDeployment(result, path)


def deploy_command(remote: Remote, format_name: str, path: Path) -> str:
    """Return the command that deploys the config saved at ``path``, a Python or a truss config."""
    if format_name == "python":
        return remote.command_line("deploy_checkpoints", "--config", str(path), changes=True)
    return shlex.join(("truss", "push", str(path.parent)))


async def read_facts(client: TrainingClient, form: DeployForm, project_id: str | None = None) -> Facts:
    """Return the jobs and instance types to choose from, and the checkpoints of the form's jobs.

    Raises RequestError; NotFound for an unknown job.
    """
    job_ids = form.job_ids
    jobs, instances = await asyncio.gather(_jobs(client, job_ids, project_id), listed_instances(client))
    remote_options = client.remote.options or ()
    facts = Facts(form.facts.now, jobs=tuple(jobs), instances=instances, command_options=remote_options)
    if job_ids or not form.asks_checkpoints:
        return await read_checkpoints(client, facts, jobs if job_ids else ())
    return facts


async def read_checkpoints(client: TrainingClient, facts: Facts, jobs: Sequence[TrainingJob]) -> Facts:
    """Return ``facts`` with the jobs' checkpoints and their project's secrets; the first job is selected.

    Raises RequestError if the checkpoints cannot be listed; files and secrets may stay unknown.
    """
    project_id = jobs[0].project_id if jobs else ""
    checkpoint_lists, files, secrets = await asyncio.gather(
        asyncio.gather(*(client.checkpoints.list(job.project_id, job.id) for job in jobs)),
        asyncio.gather(*(_if_available(partial(_checkpoint_files, client, job)) for job in jobs)),
        _if_available(lambda: _secrets(client, project_id)),
    )
    checkpoints = [
        checkpoint
        if checkpoint.training_job_id
        else checkpoint.model_copy(update={"training_job_id": job.id})
        for job, job_checkpoints in zip(jobs, checkpoint_lists, strict=True)
        for checkpoint in job_checkpoints
    ]
    # Of several jobs, files are not used: jobs may share checkpoint names, and a file does not name its job.
    known_files = files[0] if len(jobs) == 1 else None
    updated_facts = facts.with_checkpoints(jobs[0].id if jobs else "", checkpoints, known_files)
    secret_names, store_secret_command = secrets or (None, facts.store_secret_command)
    return replace(updated_facts, secret_names=secret_names, store_secret_command=store_secret_command)


async def _jobs(
    client: TrainingClient, job_ids: tuple[str, ...], project_id: str | None
) -> list[TrainingJob]:
    if job_ids:
        return list(await asyncio.gather(*(client.jobs.find(job_id) for job_id in job_ids)))
    return await client.jobs.search(project_id=project_id)


async def _checkpoint_files(client: TrainingClient, job: TrainingJob) -> tuple[CheckpointFile, ...] | None:
    files: list[CheckpointFile] = []
    async for file in client.checkpoints.files(job.project_id, job.id):
        # An incomplete list could wrongly disqualify a checkpoint. Without files, the server's own field
        # gives the kinds of the checkpoints.
        if len(files) == 20_000:
            return None
        files.append(file)
    return tuple(files)


async def _secrets(client: TrainingClient, project_id: str) -> tuple[tuple[str, ...], str]:
    """Return the names of the secrets that the project's deployments can access: its team's secrets.

    The second value is the command that stores a Hugging Face token as one of these secrets.
    """
    team_id = await _if_available(lambda: _team_id(client, project_id)) if project_id else None
    secret_names = tuple(secret.name for secret in await client.account.secrets(team_id))
    team = ("--team", team_id) if team_id else ()
    return secret_names, client.remote.command_line("secrets", "set", USUAL_HF_SECRET, *team, changes=True)


async def _team_id(client: TrainingClient, project_id: str) -> str | None:
    """Return the id of the project's team; None for the default team."""
    project = await client.projects.get(project_id)
    if not project.team_name:
        return None
    for team in await client.account.teams():
        if team.name == project.team_name:
            return None if team.default else team.id
    return None


async def _if_available(request: Callable[[], Awaitable[Response]]) -> Response | None:
    """Return the response; None if the server lacks or refuses the route.

    Raises RequestError if the key is invalid or the server does not respond.
    """
    try:
        return await request()
    except (ErrorAnswer, InvalidAnswer) as error:
        if isinstance(error, Unauthorized) and error.is_key_invalid:
            raise
        return None


NO_REASON = "the server gave no reason"


async def list_deployments(
    client: TrainingClient, models: Sequence[Model], job_id: str | None = None
) -> list[ListedDeployment]:
    """Return the models' deployments, newest first; with ``job_id``, only if they serve its checkpoints."""
    deployments_by_model = await asyncio.gather(*(_model_deployments(client, model) for model in models))
    deployments = [
        deployment for model_deployments in deployments_by_model for deployment in model_deployments
    ]
    if job_id is not None:
        served_checkpoints_of_each = await asyncio.gather(
            *(_served_checkpoints(client, deployment) for deployment in deployments)
        )
        deployments = [
            deployment
            for deployment, checkpoints in zip(deployments, served_checkpoints_of_each, strict=True)
            if any(checkpoint.job_id == job_id for checkpoint in checkpoints)
        ]
    return sorted(deployments, key=lambda deployment: time_key(deployment.created_at), reverse=True)


async def _model_deployments(client: TrainingClient, model: Model) -> list[ListedDeployment]:
    try:
        deployments = await client.models.deployments(model.id)
    except NotFound:  # deleted in the meantime
        return []
    added_fields = {"model_id": model.id, "model_name": model.name}
    return [
        ListedDeployment.model_validate(deployment.model_dump() | added_fields) for deployment in deployments
    ]


async def _served_checkpoints(client: TrainingClient, deployment: Deployment) -> tuple[ServedCheckpoint, ...]:
    try:
        response = await client.models.config(deployment.model_id, deployment.id)
    except NotFound:
        return ()
    return served_checkpoints(response.config)


@dataclass(frozen=True, slots=True)
class ServedModel:
    """What a deployment serves: its checkpoints, the starts of its replicas, and how to call it."""

    checkpoints: tuple[ServedCheckpoint, ...] = ()
    startups: tuple[Startup, ...] = ()
    call: Calls | None = None


async def read_served(client: TrainingClient, deployment: Deployment) -> ServedModel:
    """Return a deployment's details, except for what the server lacks or refuses. Raises RequestError."""
    config = None
    with suppress(ErrorAnswer, InvalidAnswer):
        config = (await client.models.config(deployment.model_id, deployment.id)).config
    checkpoints = served_checkpoints(config)
    how_to_call = None
    if checkpoints:
        how_to_call = calls_of(
            client.remote,
            deployment.model_id,
            deployment.id,
            checkpoints[0].name,
            is_whisper=serves_transcriptions(config),
        )
    return ServedModel(
        checkpoints, await read_startups(client, deployment.model_id, deployment.id), how_to_call
    )


async def read_startups(client: TrainingClient, model_id: str, deployment_id: str) -> tuple[Startup, ...]:
    """Return the replica starts of the last seven days; empty if they cannot be read."""
    now = client.clock.now()
    with suppress(RequestError):
        startups = await client.models.startups(
            model_id, deployment_id, start_ms=epoch_ms(now - timedelta(days=7)), end_ms=epoch_ms(now)
        )
        return tuple(startups)
    return ()


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """The server's response to a change; ``reason`` says why nothing changed, "" if something changed."""

    response: ApiModel
    reason: str = ""
    is_refused: bool = False


async def change_deployment(client: TrainingClient, change: DeploymentChange) -> ChangeOutcome:
    """Request a change, without retries.

    Raises RequestError; its ``may_have_happened`` is True if the change may have been made.
    """
    ids = change.deployment.model_id, change.deployment.id
    response: Deployment | Activation | Retry = await getattr(client.models, change.verb.name)(*ids)
    if isinstance(response, Retry):
        reason = "" if response.retried else response.reason or NO_REASON
        return ChangeOutcome(response, reason, is_refused=not response.retried)
    if isinstance(response, Activation) and not response.success:
        return ChangeOutcome(response, NO_REASON, is_refused=True)
    is_no_op = isinstance(response, Activation) and response.no_op
    return ChangeOutcome(response, f"it was {change.verb.done} already" if is_no_op else "")
