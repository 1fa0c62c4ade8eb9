"""Carry out a deployment: load what the wizard asks about, send its config, write the truss config.

The screen and the terminal only ask and show.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from api_client.client import TrainingClient
from api_client.clock import Clock, SystemClock
from api_client.definitions import DeployCheckpointsConfig
from api_client.deployment import (
    DeploymentResult,
    ListedInstance,
    deploy,
    listed_instances,
    write_truss_config,
)
from api_client.errors import ErrorAnswer, InvalidAnswer, Unauthorized
from api_client.models import CheckpointFile, TrainingJob
from tui.wizard.environment_steps import USUAL_HF_SECRET
from tui.wizard.given import config_jobs
from tui.wizard.state import Answers, Facts, WizardState

FILES_READ_AT_MOST = 20_000
"""Files of one job. Above this limit, checkpoint kinds are taken from the server's own field."""

DEFAULT_TEAM = None

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
    clock: Clock | None = None,
) -> SentDeployment:
    """Deploy, or render the truss config only; write it where the official CLI does.

    Raises ConfigurationError and RequestError.
    """
    clock = clock or SystemClock()
    result = await deploy(client, config, dry_run=dry_run, clock=clock)
    try:
        path = await asyncio.to_thread(write_truss_config, result, directory, clock.now().astimezone())
    except OSError as error:
        return SentDeployment(result, not_written=error)
    return SentDeployment(result, path)


async def load(
    client: TrainingClient, state: WizardState, given: Answers, project_id: str | None = None
) -> WizardState:
    """Return the state with the jobs and machines to choose from, and the checkpoints of given jobs.

    Raises RequestError; NotFound for an unknown job.
    """
    jobs: tuple[str, ...] = ()
    if state.answers.job_id is not None:
        is_config_s = not given.job_id and not given.checkpoint_names
        jobs = (is_config_s and config_jobs(state.config)) or (state.answers.job_id,)
    facts = await _account_facts(client, state.facts.now, jobs, project_id)
    if jobs or state.serves_loops:
        facts = await _checkpoint_facts(client, facts, facts.jobs if jobs else ())
    return replace(state, facts=facts)


async def load_checkpoints(client: TrainingClient, state: WizardState) -> WizardState:
    facts = await _checkpoint_facts(client, state.facts, [state.job] if state.job else [])
    return replace(state, facts=facts)


async def _account_facts(
    client: TrainingClient, now: datetime, job_ids: tuple[str, ...], project_id: str | None
) -> Facts:
    jobs, instances = await asyncio.gather(_jobs(client, job_ids, project_id), _instances(client))
    options = client.remote.options or ()
    return Facts(now, jobs=tuple(jobs), instances=instances, command_options=options)


async def _checkpoint_facts(client: TrainingClient, facts: Facts, jobs: Iterable[TrainingJob]) -> Facts:
    """Add the checkpoints of these jobs, the first of which is selected, and its team's secrets.

    Raises RequestError if the checkpoints cannot be listed; files and secrets may stay unknown.
    """
    chosen = tuple(jobs)
    listed, files, secrets = await asyncio.gather(
        asyncio.gather(*(client.checkpoints.list(job.project_id, job.id) for job in chosen)),
        asyncio.gather(*(_optional_answer(partial(_files, client, job)) for job in chosen)),
        _optional_answer(lambda: _secrets(client, chosen[0].project_id if chosen else "")),
    )
    checkpoints = [
        each if each.training_job_id else each.model_copy(update={"training_job_id": job.id})
        for job, of_job in zip(chosen, listed, strict=True)
        for each in of_job
    ]
    # Names may repeat between jobs, and the files do not tell which job they belong to.
    known_files = files[0] if len(chosen) == 1 else None
    updated = facts.with_checkpoints(chosen[0].id if chosen else "", checkpoints, known_files)
    names, store_secret = secrets or (None, updated.store_secret)
    return replace(updated, secret_names=names, store_secret=store_secret)


async def _jobs(
    client: TrainingClient, job_ids: tuple[str, ...], project_id: str | None
) -> list[TrainingJob]:
    if job_ids:
        return list(await asyncio.gather(*(client.jobs.find(job_id) for job_id in job_ids)))
    return await client.jobs.search(project_id=project_id)


async def _instances(client: TrainingClient) -> tuple[ListedInstance, ...]:
    """Return the instance types, with REST prices where GraphQL has none."""
    instances, prices = await asyncio.gather(
        listed_instances(client), _optional_answer(client.account.instance_type_prices)
    )
    by_id = {each.instance_type.id: each.price for each in prices or []}
    return tuple(
        each if each.price is not None else each.model_copy(update={"price": by_id.get(each.id)})
        for each in instances
    )


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
    team_id = await _optional_answer(lambda: _team_id(client, project_id)) if project_id else DEFAULT_TEAM
    names = tuple(secret.name for secret in await client.account.secrets(team_id))
    team = ("--team", team_id) if team_id else ()
    return names, client.remote.command_line("secrets", "set", USUAL_HF_SECRET, *team, changes=True)


async def _team_id(client: TrainingClient, project_id: str) -> str | None:
    project = await client.projects.get(project_id)
    if not project.team_name:
        return DEFAULT_TEAM
    for team in await client.account.teams():
        if team.name == project.team_name:
            return DEFAULT_TEAM if team.default else team.id
    return DEFAULT_TEAM


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
