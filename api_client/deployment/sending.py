"""Build a deployment config from the wizard's answers, send it, and follow the deployment until it serves.

The request is not repeated once it may have arrived, because a second deployment costs money. If its response
is lost, the result is looked up in the list of models.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from api_client.client import TrainingClient
from api_client.definitions import (
    DEFAULT_LORA_RANK,
    Checkpoint as CheckpointToDeploy,
    CheckpointList,
    Compute,
    DeployCheckpointsConfig,
    DeployCheckpointsRuntime,
    EnvironmentValue,
    FullCheckpoint,
    LoRACheckpoint,
    SecretReference,
    WhisperCheckpoint,
)
from api_client.deployment.instances import listed_instances, smallest_instance
from api_client.errors import (
    BadRequest,
    ConfigurationError,
    ErrorAnswer,
    InvalidAnswer,
    NotFound,
    RequestError,
    ServerFault,
    Unreachable,
)
from api_client.http.retry import ENDLESS, retrying
from api_client.models import Checkpoint, Deployment
from api_client.models.deployments import FINAL_STATUSES, SERVING_STATUSES
from api_client.models.jobs import CLOCK_SKEW
from api_client.models.logs import LogEntry, LogLine
from api_client.remotes import Remote
from api_client.servable import kind_of
from api_client.streams.logs import LogIncrements
from api_client.vocabulary import normal_gpu_type
from api_client.words import command_line

HF_TOKEN = "HF_TOKEN"  # environment variable with a deployment's Hugging Face token

Pairs = tuple[tuple[str, str], ...]
"""Name and value pairs."""


@dataclass(frozen=True, slots=True)
class DeployAnswers:
    """Answers to the questions about a deployment.

    None and () mean that a question is not answered yet; empty text is the answer "none".
    """

    job_id: str | None = None
    checkpoint_names: tuple[str, ...] = ()
    base_model: str | None = None
    lora_rank: int | str | None = None
    """For LoRAs only. Text is what the user typed if it is not a valid rank."""
    model_name: str | None = None
    gpu: str | None = None
    """GPU type and count as in config files, ``H100:2``; an empty text means a machine without GPUs."""
    hf_secret: str | None = None
    """Name of the secret that holds the Hugging Face token."""
    environment: Pairs | None = None
    secrets: Pairs | None = None
    """Names of variables and of the secrets that they are set from."""


def build_config(answers: DeployAnswers, checkpoints: Sequence[Checkpoint]) -> DeployCheckpointsConfig:
    """Build the config for these answers; ``checkpoints`` are the job's, as the server lists them.

    Raises ConfigurationError if no config can be built; ``validate`` reports other problems.
    """
    selected: list[Checkpoint] = []
    for name in dict.fromkeys(answers.checkpoint_names):
        matches = [checkpoint for checkpoint in checkpoints if checkpoint.checkpoint_id == name]
        if not matches:
            raise ConfigurationError(f"job {answers.job_id} has no checkpoint {name!r}")
        selected += matches
    # Without GPUs, use an empty spec rather than None, for which the official CLI would ask for a GPU.
    gpu = normal_gpu(answers.gpu) if answers.gpu else {}
    # As in the official wizard, CPUs and memory follow from the instance type.
    compute = {"cpu_count": 0, "memory": "0Mi", "accelerator": gpu}
    try:
        return DeployCheckpointsConfig(
            model_name=(answers.model_name or "").strip() or None,
            checkpoint_details=CheckpointList(
                base_model_id=(answers.base_model or "").strip() or None,
                checkpoints=[_checkpoint(answers, checkpoint) for checkpoint in selected],
            ),
            runtime=DeployCheckpointsRuntime(environment_variables=_environment(answers)),
            compute=Compute.model_validate(compute),
        )
    except ValidationError as error:
        first_error = error.errors()[0]
        field = ".".join(map(str, first_error["loc"]))
        raise ConfigurationError(f"{field}: {first_error['msg']}") from error


def normal_gpu(text: str) -> str:
    """Return GPUs in the spelling of config files: ``A100_40GB:1`` for ``a100-40gb``."""
    gpu_type, _, count = text.strip().partition(":")
    return f"{normal_gpu_type(gpu_type)}:{count or 1}"


def _checkpoint(answers: DeployAnswers, checkpoint: Checkpoint) -> CheckpointToDeploy:
    names = {
        "training_job_id": checkpoint.training_job_id or answers.job_id,
        "checkpoint_name": checkpoint.checkpoint_id,
    }
    match kind_of(checkpoint):
        case "lora":
            rank = answers.lora_rank if isinstance(answers.lora_rank, int) else DEFAULT_LORA_RANK
            return LoRACheckpoint.model_validate(names | {"lora_details": {"rank": rank}})
        case "whisper":
            return WhisperCheckpoint.model_validate(names)
    return FullCheckpoint.model_validate(names)


def _environment(answers: DeployAnswers) -> dict[str, EnvironmentValue]:
    token = ((HF_TOKEN, answers.hf_secret),) if answers.hf_secret else ()
    references = {name: SecretReference(name=secret) for name, secret in (*token, *(answers.secrets or ()))}
    return dict(token) | dict(answers.environment or ()) | references


DEPLOY_MUTATION = """
mutation ($request: CreateModelVersionFromInferenceTemplateRequest!) {
    create_model_version_from_inference_template(request: $request) {
        model_version {
            id
            name
            model_id
        }
        truss_config
    }
}
"""
DEPLOY_FIELD = "create_model_version_from_inference_template"  # field of the response


def deployment_request(
    config: DeployCheckpointsConfig, *, instance_type_id: str, dry_run: bool
) -> dict[str, Any]:
    """Build the mutation's ``request``. The server determines base model, ranks and folders."""
    details = config.checkpoint_details or CheckpointList()
    variables = config.runtime.environment_variables if config.runtime else {}
    return {
        "metadata": {"oracle_name": config.model_name},
        "weights_sources": [
            *(
                {
                    "weight_source_type": "B10_CHECKPOINTING",
                    "b10_training_checkpoint_weights_source": {
                        "checkpoint": checkpoint.model_dump(include={"training_job_id", "checkpoint_name"})
                    },
                }
                for checkpoint in details.checkpoints
            ),
            *(
                {
                    "weight_source_type": "B10_LOOPS_CHECKPOINTING",
                    "b10_loops_checkpoint_weights_source": {"checkpoint": {"loops_checkpoint_id": loops_id}},
                }
                for loops_id in details.loops_checkpoint_ids
            ),
        ],
        "inference_stack": {
            "stack_type": "VLLM",
            "environment_variables": [
                {
                    "name": name,
                    "value": value.name if isinstance(value, SecretReference) else value,
                    "is_secret_reference": isinstance(value, SecretReference),
                }
                for name, value in variables.items()
            ],
        },
        "instance_type_id": instance_type_id,
        "dry_run": dry_run,
    }


def equivalent_command(answers: DeployAnswers, options: Sequence[str] = ()) -> str:
    """Return the shell command that gives these answers; ``options`` select the remote.

    The command still asks for confirmation.
    """
    options_with_values = (
        ("--job-id", answers.job_id),
        *(("--checkpoint", name) for name in answers.checkpoint_names),
        ("--base-model", answers.base_model),
        ("--lora-rank", answers.lora_rank),
        ("--model-name", answers.model_name),
        ("--gpu", answers.gpu),
        ("--hf-secret", answers.hf_secret),
        *(("--env", f"{name}={value}") for name, value in answers.environment or ()),
        *(("--secret", f"{name}={secret}") for name, secret in answers.secrets or ()),
    )
    options_given: list[str] = []
    for name, value in options_with_values:
        if value:
            # A value that starts with a dash would be parsed as another option.
            options_given += [f"{name}={value}"] if str(value).startswith("-") else [name, str(value)]
    return command_line(*options, "deploy_checkpoints", *options_given)


@dataclass(frozen=True, slots=True)
class DeploymentResult:
    """Result of a deployment.

    A dry run has no ids and no ``link``. ``truss_config`` is the returned config as JSON, empty if the server
    returned none. ``was_found_again`` means that the response was lost, so that the ids come from the list
    of models.
    """

    model_id: str | None
    version_id: str | None
    name: str | None
    truss_config: str
    link: str | None
    was_found_again: bool = False


class DeploymentUnclear(RequestError):
    """The response to a deployment was lost, and it is unknown if the deployment exists.

    Check the workspace's models before deploying again: the deployment may exist and cost money. The cause is
    the request's error.
    """

    may_have_happened = True


async def deploy(
    client: TrainingClient, config: DeployCheckpointsConfig, *, dry_run: bool = False
) -> DeploymentResult:
    """Deploy; with ``dry_run``, only have the server render the truss config, and create nothing.

    The mutation is not sent again once it may have arrived; if its response is lost, the result is looked up
    in the list of models. Raises ConfigurationError if no machine fits, DeploymentUnclear, and other
    subclasses of RequestError.
    """
    if not (config.model_name or "").strip():
        raise ConfigurationError("the model has no name (model_name)")
    instance = smallest_instance(await listed_instances(client), config.compute)
    if instance is None:
        accelerator = str(config.compute.accelerator or "no GPU") if config.compute else "no GPU"
        raise ConfigurationError(f"no single-node instance type matches ({accelerator})")
    request = deployment_request(config, instance_type_id=instance.id, dry_run=dry_run)
    known_ids: frozenset[str] | None = None
    if not dry_run:
        # Without the ids of existing deployments, a lost response would raise DeploymentUnclear.
        with suppress(ErrorAnswer, InvalidAnswer):
            old_deployments = await _deployments_named(client, config.model_name or "")
            known_ids = frozenset(deployment.id for _model_id, deployment in old_deployments)
    try:
        data = await client.graphql.execute(DEPLOY_MUTATION, {"request": request})
        return _parse_result(data, client.remote, dry_run=dry_run)
    except (Unreachable, ServerFault, InvalidAnswer) as error:
        if dry_run:
            raise
        failure = error
    return await _find_created_deployment(client, config.model_name or "", known_ids, failure)


def deployment_link(remote: Remote, model_id: str, deployment_id: str) -> str:
    """Return the URL of the deployment's page in the web app."""
    return f"{remote.app_url.rstrip('/')}/models/{model_id}/logs/{deployment_id}"


def _parse_result(data: dict[str, Any], remote: Remote, *, dry_run: bool) -> DeploymentResult:
    result = data.get(DEPLOY_FIELD)
    result = result if isinstance(result, dict) else {}
    truss_config = result.get("truss_config") or ""
    if not isinstance(truss_config, str):
        truss_config = json.dumps(truss_config)
    version = result.get("model_version")
    if dry_run:
        # A dry run has no page to link to, whatever the server returns.
        return DeploymentResult(None, None, None, truss_config, None)
    if not isinstance(version, dict) or not version.get("id") or not version.get("model_id"):
        raise InvalidAnswer("the response to the deployment names no model", method="POST", path="/graphql/")
    model_id, version_id = str(version["model_id"]), str(version["id"])
    return DeploymentResult(
        model_id=model_id,
        version_id=version_id,
        name=str(version.get("name") or ""),
        truss_config=truss_config,
        link=deployment_link(remote, model_id, version_id),
    )


async def _deployments_named(client: TrainingClient, name: str) -> list[tuple[str, Deployment]]:
    """Return the deployments of the models with this name, each with its model's id."""
    return [
        (model.id, deployment)
        for model in await client.models.list()
        if model.name == name
        for deployment in await client.models.deployments(model.id)
    ]


async def _find_created_deployment(
    client: TrainingClient, name: str, known_ids: frozenset[str] | None, failure: RequestError
) -> DeploymentResult:
    """Return the deployment whose response was lost, if exactly one is new; else raise DeploymentUnclear."""
    new_deployments: list[tuple[str, Deployment]] = []
    for attempt in range(3 if known_ids is not None else 0):
        if attempt:
            await client.clock.sleep(2.0)
        try:
            deployments = await _deployments_named(client, name)
        except RequestError:
            continue  # try again; in the end, DeploymentUnclear is raised
        new_deployments = [
            (model_id, candidate)
            for model_id, candidate in deployments
            if candidate.id not in (known_ids or ())
        ]
        if new_deployments:
            break
    if len(new_deployments) == 1:
        model_id, deployment = new_deployments[0]
        link = deployment_link(client.remote, model_id, deployment.id)
        return DeploymentResult(model_id, deployment.id, deployment.name, "", link, was_found_again=True)
    found_note = f"; {len(new_deployments)} new deployments have this name" if new_deployments else ""
    raise DeploymentUnclear(
        f"{name!r} may or may not have been deployed ({failure}){found_note}. Check the workspace's models "
        f"before deploying again",
        method=failure.method,
        path=failure.path,
        attempts=failure.attempts,
    ) from failure


@dataclass(frozen=True, slots=True)
class DeploymentUpdate:
    """The deployment's current state, and the log lines since the previous update."""

    deployment: Deployment
    lines: tuple[LogEntry, ...]

    @property
    def status(self) -> str:
        """Status in the server's spelling."""
        return self.deployment.status

    @property
    def is_finished(self) -> bool:
        """True if this is the last update: the deployment serves, or needs an action of the user.

        Unknown statuses are not final.
        """
        return self.status in FINAL_STATUSES

    @property
    def is_serving(self) -> bool:
        """True if the deployment serves requests."""
        return self.status in SERVING_STATUSES


async def follow(
    client: TrainingClient,
    model_id: str,
    deployment_id: str,
    *,
    interval_s: float = 2.0,
    changed_from: str = "",
    known: Iterable[LogLine] = (),
) -> AsyncGenerator[DeploymentUpdate, None]:
    """Yield an update at once and every ``interval_s`` seconds, until the deployment serves or has failed.

    ``changed_from`` is the status before a change that the server has accepted. The server may still report
    it for a moment, so for half a minute it does not end the iteration. ``known`` are lines that the caller
    has already; updates leave them out. Transient errors are retried. Raises NotFound, Unauthorized and other
    permanent RequestErrors.
    """
    clock = client.clock

    async def fetch() -> Deployment:
        deployment = await client.models.deployment(model_id, deployment_id)
        return deployment.model_copy(update={"model_id": model_id})

    log: LogIncrements | None = None
    began_at = clock.now()
    while True:
        deployment = await retrying(fetch, ENDLESS, sleep=clock.sleep)
        start = deployment.created_at - CLOCK_SKEW if deployment.created_at else began_at - timedelta(hours=1)
        log = log or client.models.increments(model_id, deployment.id, start=start, known=known)
        # Read the log after the status, so that the last update includes the last lines.
        update = DeploymentUpdate(deployment, await _new_lines(log))
        yield update
        is_unchanged = update.status == changed_from and clock.now() - began_at < timedelta(seconds=30)
        if update.is_finished and not is_unchanged:
            return
        await clock.sleep(interval_s)


async def _new_lines(log: LogIncrements) -> tuple[LogEntry, ...]:
    """Return the lines since the last call; empty if the server has no log."""
    entries: list[LogEntry] = []
    with suppress(NotFound, BadRequest):
        async for new_entries in log.poll():
            entries += new_entries
    return tuple(entries)
