"""The wizard's answers → the config that they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from api_client.definitions import (
    DEFAULT_LORA_RANK,
    Accelerator,
    AcceleratorSpec,
    CheckpointList,
    Compute,
    DeployCheckpointsConfig,
    DeployCheckpointsRuntime,
    EnvironmentValue,
    FullCheckpoint,
    LoRACheckpoint,
    LoRADetails,
    SecretReference,
    WhisperCheckpoint,
    offered_accelerators,
)
from api_client.definitions import Checkpoint as CheckpointToDeploy
from api_client.deployment.instance_choice import gpu_name
from api_client.deployment.selection import kind_of
from api_client.errors import ConfigurationError
from api_client.models import Checkpoint

HF_TOKEN = "HF_TOKEN"
"""Where a deployment looks for its Hugging Face token."""

NO_CPU_WISH, NO_MEMORY_WISH = 0, "0Mi"
"""The official wizard leaves both to the instance type (API facts, 7)."""


@dataclass(frozen=True, slots=True)
class DeployAnswers:
    """What the wizard was told. ``environment`` holds names and values, ``secrets`` names and secrets' names.

    ``lora_rank`` counts for LoRAs only, ``gpu_type`` None means a machine without GPUs, ``hf_secret`` is the
    name of the secret that holds the Hugging Face token.
    """

    project_id: str
    job_id: str
    checkpoint_names: tuple[str, ...]
    base_model: str | None = None
    lora_rank: int | None = None
    model_name: str = ""
    gpu_type: str | None = None
    gpu_count: int = 1
    hf_secret: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()


def build_config(answers: DeployAnswers, checkpoints: Sequence[Checkpoint]) -> DeployCheckpointsConfig:
    """The config of these answers; ``checkpoints`` are the job's, as the server lists them.

    Raises ConfigurationError for answers that make none; what else may be wrong with it, ``validate`` tells.
    """
    try:
        return DeployCheckpointsConfig(
            model_name=answers.model_name.strip() or None,
            checkpoint_details=CheckpointList(
                base_model_id=(answers.base_model or "").strip() or None,
                checkpoints=[
                    _checkpoint(answers, _named(name, answers.job_id, checkpoints))
                    for name in answers.checkpoint_names
                ],
            ),
            runtime=DeployCheckpointsRuntime(environment_variables=_environment(answers)),
            compute=_compute(answers),
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigurationError(f"{place}: {first['msg']}") from error


def _named(name: str, job_id: str, checkpoints: Iterable[Checkpoint]) -> Checkpoint:
    for checkpoint in checkpoints:
        if checkpoint.checkpoint_id == name and checkpoint.training_job_id in ("", job_id):
            return checkpoint
    raise ConfigurationError(f"job {job_id} has no checkpoint {name!r}")


def _checkpoint(answers: DeployAnswers, checkpoint: Checkpoint) -> CheckpointToDeploy:
    place = {"training_job_id": answers.job_id, "checkpoint_name": checkpoint.checkpoint_id}
    kind = kind_of(checkpoint)
    if kind == "lora":
        rank = DEFAULT_LORA_RANK if answers.lora_rank is None else answers.lora_rank
        return LoRACheckpoint(**place, lora_details=LoRADetails(rank=rank))
    if kind == "whisper":
        return WhisperCheckpoint(**place)
    if kind == "full":
        return FullCheckpoint(**place)
    raise ConfigurationError(
        f"{checkpoint.checkpoint_id!r} is of type {checkpoint.checkpoint_type!r}, which cannot be deployed"
    )


def _environment(answers: DeployAnswers) -> dict[str, EnvironmentValue]:
    variables: dict[str, EnvironmentValue] = {}
    pairs: list[tuple[str, EnvironmentValue]] = [
        *((name, value) for name, value in answers.environment),
        *((name, SecretReference(name=secret)) for name, secret in answers.secrets),
    ]
    if answers.hf_secret:
        pairs.insert(0, (HF_TOKEN, SecretReference(name=answers.hf_secret)))
    for name, value in pairs:
        if name in variables:
            raise ConfigurationError(f"the environment variable {name!r} is set twice")
        variables[name] = value
    return variables


def _compute(answers: DeployAnswers) -> Compute:
    if not answers.gpu_type:
        # An empty spec instead of none at all, or the official CLI would ask for a GPU.
        return Compute(cpu_count=NO_CPU_WISH, memory=NO_MEMORY_WISH, accelerator=AcceleratorSpec())
    name = gpu_name(answers.gpu_type)
    try:
        accelerator = Accelerator(name)
    except ValueError:
        known = ", ".join(offered_accelerators())
        raise ConfigurationError(f"the GPU type {answers.gpu_type!r} is unknown; known are {known}") from None
    spec = AcceleratorSpec(accelerator=accelerator, count=answers.gpu_count)
    return Compute(cpu_count=NO_CPU_WISH, memory=NO_MEMORY_WISH, accelerator=spec)
