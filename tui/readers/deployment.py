"""Carry out a deployment: read what the form asks about, send its config, write the truss config."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from api_client.client import TrainingClient
from api_client.definitions import DeployCheckpointsConfig
from api_client.deployment import (
    DeploymentResult,
    deploy,
    listed_instances,
    write_truss_config,
)
from api_client.errors import ErrorAnswer, InvalidAnswer, Unauthorized
from api_client.models import CheckpointFile, TrainingJob
from api_client.remotes import Remote
from tui.forms.deployment import DeployForm
from tui.forms.draft import USUAL_HF_SECRET, Facts

FILES_READ_AT_MOST = 20_000
"""Files of one job. Above this limit, checkpoint kinds are taken from the server's own field."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SentDeployment:
    """The answer to a deployment, and where its truss config was written, or why it could not be."""

    result: DeploymentResult
    written_to: Path | None = None
    not_written: OSError | None = None


async def send(
    client: TrainingClient,
    config: DeployCheckpointsConfig,
    *,
    dry_run: bool,
    directory: Path | None = None,
) -> SentDeployment:
    """Deploy, or render the truss config only; write it where the official CLI does.

    Raises ConfigurationError and RequestError.
    """
    result = await deploy(client, config, dry_run=dry_run)
    try:
        path = await asyncio.to_thread(write_truss_config, result, directory, client.clock.now().astimezone())
    except OSError as error:
        return SentDeployment(result, not_written=error)
    return SentDeployment(result, path)


def deploying_command(remote: Remote, name: str, path: Path) -> str:
    """Return the command that deploys a saved config: ``python``, or of a Truss by its folder."""
    if name == "python":
        return remote.command_line("deploy_checkpoints", "--config", str(path), changes=True)
    return shlex.join(("truss", "push", str(path.parent)))


async def read_facts(client: TrainingClient, form: DeployForm, project_id: str | None = None) -> Facts:
    """Return the jobs and machines to choose from, and the checkpoints of the jobs that are given.

    Raises RequestError; NotFound for an unknown job.
    """
    job_ids = form.job_ids
    jobs, instances = await asyncio.gather(_jobs(client, job_ids, project_id), listed_instances(client))
    options = client.remote.options or ()
    facts = Facts(form.facts.now, jobs=tuple(jobs), instances=instances, command_options=options)
    if job_ids or not form.asks_checkpoints:
        return await read_checkpoints(client, facts, jobs if job_ids else ())
    return facts


async def read_checkpoints(client: TrainingClient, facts: Facts, jobs: Sequence[TrainingJob]) -> Facts:
    """Return these facts with the checkpoints of the jobs, the first of which is selected, and its secrets.

    Raises RequestError if the checkpoints cannot be listed; files and secrets may stay unknown.
    """
    project_id = jobs[0].project_id if jobs else ""
    listed, files, secrets = await asyncio.gather(
        asyncio.gather(*(client.checkpoints.list(job.project_id, job.id) for job in jobs)),
        asyncio.gather(*(_optional_answer(partial(_files, client, job)) for job in jobs)),
        _optional_answer(lambda: _secrets(client, project_id)),
    )
    checkpoints = [
        checkpoint
        if checkpoint.training_job_id
        else checkpoint.model_copy(update={"training_job_id": job.id})
        for job, of_job in zip(jobs, listed, strict=True)
        for checkpoint in of_job
    ]
    # Names may repeat between jobs, and the files do not tell which job they belong to.
    known_files = files[0] if len(jobs) == 1 else None
    updated = facts.with_checkpoints(jobs[0].id if jobs else "", checkpoints, known_files)
    names, store_secret = secrets or (None, facts.store_secret)
    return replace(updated, secret_names=names, store_secret=store_secret)


async def _jobs(
    client: TrainingClient, job_ids: tuple[str, ...], project_id: str | None
) -> list[TrainingJob]:
    if job_ids:
        return list(await asyncio.gather(*(client.jobs.find(job_id) for job_id in job_ids)))
    return await client.jobs.search(project_id=project_id)


async def _files(client: TrainingClient, job: TrainingJob) -> tuple[CheckpointFile, ...] | None:
    files: list[CheckpointFile] = []
    async for file in client.checkpoints.files(job.project_id, job.id):
        if len(files) == FILES_READ_AT_MOST:
            return None  # An incomplete list could wrongly disqualify a checkpoint.
        files.append(file)
    return tuple(files)


async def _secrets(client: TrainingClient, project_id: str) -> tuple[tuple[str, ...], str]:
    """Return the names of the project's team's secrets, which its deployments can access.

    The second value is the command that stores a Hugging Face token there.
    """
    team_id = await _optional_answer(lambda: _team_id(client, project_id)) if project_id else None
    names = tuple(secret.name for secret in await client.account.secrets(team_id))
    team = ("--team", team_id) if team_id else ()
    return names, client.remote.command_line("secrets", "set", USUAL_HF_SECRET, *team, changes=True)


async def _team_id(client: TrainingClient, project_id: str) -> str | None:
    """Return the id of the project's team; None for the default team."""
    project = await client.projects.get(project_id)
    if not project.team_name:
        return None
    for team in await client.account.teams():
        if team.name == project.team_name:
            return None if team.default else team.id
    return None


async def _optional_answer(question: Callable[[], Awaitable[T]]) -> T | None:
    """Return the response, None if the server lacks or refuses the route. An invalid key raises."""
    try:
        return await question()
    except Unauthorized as error:
        if error.is_key_invalid:
            raise
        return None
    except (ErrorAnswer, InvalidAnswer):
        return None
