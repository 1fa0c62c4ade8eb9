"""Create a deployment from a request: check it, look up its checkpoints and machine, render the config.

The render also shows if the server could start: the weights must fit the machine's GPUs.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from api_client.emulator.answers import ApiFault, invalid, not_found, not_served
from api_client.emulator.backend import StoredFile
from api_client.emulator.catalog import INSTANCE_TYPES
from api_client.emulator.platform import Platform
from api_client.emulator.store.deployments import DeploymentPlan, StoredDeployment
from api_client.models import Checkpoint, InstanceType, TrainingJob

SERVED_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM accepts for max_lora_rank (API facts, 7)."""

DEFAULT_RANK = 16
"""Rank of an adapter whose configuration does not specify it."""


def adapter_rank(configuration: Any) -> int:
    """Return ``r`` from an adapter_config.json, or the default if it is missing or invalid."""
    rank = configuration.get("r") if isinstance(configuration, dict) else None
    if isinstance(rank, int) and not isinstance(rank, bool) and rank > 0:
        return rank
    return DEFAULT_RANK


def served_rank(adapter_ranks: Iterable[int]) -> int:
    """Return the smallest supported rank for all adapters; raise an ``ApiFault`` if there is none."""
    largest = max(adapter_ranks)
    for rank in SERVED_RANKS:
        if rank >= largest:
            return rank
    raise invalid(f"LoRA rank {largest} cannot be served; the maximum is {SERVED_RANKS[-1]}")


LOOPS_SOURCE = "B10_LOOPS_CHECKPOINTING"
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def _storable(text: str) -> str:
    """Reject lone surrogates, which JSON can contain but no file or database can store."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("the text is not valid Unicode") from error
    return text


_Text = Annotated[str, AfterValidator(_storable)]


class _RequestPart(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)


class _Metadata(_RequestPart):
    oracle_name: _Text

    @field_validator("oracle_name")
    @classmethod
    def _said(cls, name: str) -> str:
        if not name.strip():
            raise ValueError("the model needs a name")
        return name.strip()


class CheckpointReference(_RequestPart):
    """A checkpoint, identified by job id and name."""

    training_job_id: _Text
    checkpoint_name: _Text


class _TrainingSource(_RequestPart):
    checkpoint: CheckpointReference


class _WeightsSource(_RequestPart):
    weight_source_type: Literal["B10_CHECKPOINTING"]
    b10_training_checkpoint_weights_source: _TrainingSource


class EnvironmentVariable(_RequestPart):
    """An environment variable of the server.

    ``value`` is its value or, if it is a secret reference, the name of a secret.
    """

    name: _Text
    value: _Text
    is_secret_reference: bool = False

    @field_validator("name")
    @classmethod
    def _usable(cls, name: str) -> str:
        if not _VARIABLE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid environment variable name")
        return name


class _InferenceStack(_RequestPart):
    stack_type: Literal["VLLM"]
    environment_variables: list[EnvironmentVariable] = []


class TemplateRequest(_RequestPart):
    """A validated request."""

    metadata: _Metadata
    weights_sources: list[_WeightsSource] = Field(min_length=1)
    inference_stack: _InferenceStack
    instance_type_id: _Text
    dry_run: bool = False

    @property
    def model_name(self) -> str:
        return self.metadata.oracle_name

    @property
    def places(self) -> list[CheckpointReference]:
        return [source.b10_training_checkpoint_weights_source.checkpoint for source in self.weights_sources]

    @property
    def environment(self) -> list[EnvironmentVariable]:
        return self.inference_stack.environment_variables


def check_template_request(fields: Any) -> TemplateRequest:
    """Validate the request; raise an ``ApiFault`` that names the first invalid field."""
    _refuse_loops(fields)
    try:
        return TemplateRequest.model_validate(fields)
    except ValidationError as error:
        raise _refusal(error) from error


def _refuse_loops(fields: Any) -> None:
    sources = fields.get("weights_sources") if isinstance(fields, dict) else None
    for source in sources if isinstance(sources, list) else []:
        if isinstance(source, dict) and source.get("weight_source_type") == LOOPS_SOURCE:
            raise not_served("the emulator has no Loops checkpoints")


def _refusal(error: ValidationError) -> ApiFault:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in ("request", *first["loc"]))
    return invalid(f"{place}: {first['msg'].removeprefix('Value error, ')}")


LORA = "lora"
SERVABLE_KINDS = (LORA, "full", "whisper")
SYNCING = "SYNCING"

_WEIGHT_SUFFIXES = (".safetensors", ".gguf")
_TORCH_WEIGHTS = ("pytorch_model", "adapter_model", "consolidated")
"""Names of PyTorch files with whole weights; others are trainer states and shards."""


@dataclass(frozen=True, slots=True)
class SelectedCheckpoint:
    """A checkpoint to deploy. ``rank`` is the adapter's rank.

    A ``weight_bytes`` of None means that none of its files is known.
    """

    job: TrainingJob
    name: str
    kind: str
    base_model: str | None
    rank: int
    weight_bytes: int | None


def choose(platform: Platform, places: Sequence[CheckpointReference]) -> tuple[SelectedCheckpoint, ...]:
    """Look up checkpoints; raise an ``ApiFault`` if one is missing or they cannot be served together."""
    chosen = tuple(_look_up(platform, place) for place in places)
    if len(chosen) > 1:
        alone = next((each for each in chosen if each.kind != LORA), None)
        if alone is not None:
            raise invalid(
                f"checkpoint {alone.name!r} is of type {alone.kind}, which must be deployed alone;"
                " only LoRA checkpoints can be served together"
            )
        if len({each.name for each in chosen}) < len(chosen):
            raise invalid("checkpoints that are served together must have different names")
        if len({each.base_model for each in chosen}) > 1:
            raise invalid("LoRA checkpoints that are served together must share their base model")
    if chosen[0].kind == LORA and not chosen[0].base_model:
        raise invalid(f"the base model of LoRA checkpoint {chosen[0].name!r} is unknown")
    return chosen


def _look_up(platform: Platform, place: CheckpointReference) -> SelectedCheckpoint:
    job = platform.job_by_id(place.training_job_id)
    backend = platform.backend_of(job.id)
    for checkpoint in backend.checkpoints(job.id):
        if checkpoint.checkpoint_id == place.checkpoint_name:
            return _chosen(job, checkpoint, backend.checkpoint_files(job.id))
    raise ApiFault(
        404, "NOT_FOUND", f"Checkpoint {place.checkpoint_name!r} of training job {job.id!r} not found"
    )


def _chosen(job: TrainingJob, checkpoint: Checkpoint, files: Sequence[StoredFile]) -> SelectedCheckpoint:
    name = checkpoint.checkpoint_id
    kind = checkpoint.checkpoint_type or "full"
    if kind not in SERVABLE_KINDS:
        raise invalid(f"checkpoint {name!r} is of type {kind!r}, which cannot be served")
    if checkpoint.sync_status == SYNCING:
        raise invalid(f"checkpoint {name!r} is still uploading")
    return SelectedCheckpoint(
        job=job,
        name=name,
        kind=kind,
        base_model=checkpoint.base_model,
        rank=adapter_rank(checkpoint.lora_adapter_config),
        weight_bytes=_weight_bytes(name, files),
    )


def _weight_bytes(checkpoint: str, files: Sequence[StoredFile]) -> int | None:
    """Return the bytes that a server loads, None if no file is known.

    It loads whole weights, directly in the checkpoint's folder, from the first node (API facts, 5).
    """
    folder = PurePosixPath(checkpoint)
    own = [
        (PurePosixPath(file.relative_name), file)
        for file in files
        if folder in PurePosixPath(file.relative_name).parents
    ]
    if not own:
        return None
    return sum(
        file.size_bytes
        for path, file in own
        if file.node_rank == 0 and path.parent == folder and _is_weights(path.name)
    )


def _is_weights(name: str) -> bool:
    return name.endswith(_WEIGHT_SUFFIXES) or (name.endswith(".bin") and name.startswith(_TORCH_WEIGHTS))


USABLE_MEMORY = 0.9
"""vLLM's default for gpu_memory_utilization."""

BYTES_PER_MIB = 1024 * 1024
BYTES_PER_GIB = 1024**3


def startup_error(machine: InstanceType, checkpoints: Sequence[SelectedCheckpoint]) -> str | None:
    """Return the error with which the server would exit, or None if it would start."""
    if machine.gpu_count == 0:
        return f"RuntimeError: Failed to infer device type: {machine.name} has no GPU"
    for checkpoint in checkpoints:
        if checkpoint.weight_bytes == 0:
            return (
                f"RuntimeError: Cannot find any model weights in checkpoint {checkpoint.name!r}:"
                " shards of a distributed trainer must be merged before they can be served"
            )
    weight_bytes = sum(each.weight_bytes or 0 for each in checkpoints if each.kind != LORA)
    memory_bytes = (machine.gpu_memory_limit_mib or 0) * BYTES_PER_MIB * machine.gpu_count
    if memory_bytes and weight_bytes > memory_bytes * USABLE_MEMORY:
        return (
            f"torch.OutOfMemoryError: CUDA out of memory: the weights take {weight_bytes / BYTES_PER_GIB:.0f}"
            f" GiB, {machine.name} has {memory_bytes / BYTES_PER_GIB:.0f} GiB"
        )
    return None


SERVER_IMAGE = "vllm/vllm-openai:v0.11.0"
SERVER_PORT = 8000
HEALTH_PATH = "/health"
ENDPOINTS = {"whisper": "/v1/audio/transcriptions"}
CHAT_ENDPOINT = "/v1/chat/completions"
DOWNLOAD_FOLDER = "/tmp/training_checkpoints"
"""Folder of the checkpoints in the server's container, with a subfolder per job id (API facts, 7)."""

SECRETS_FOLDER = "/secrets"
FIRST_NODE = "rank-0"
CONCURRENCY = 256
MILLICPU = 1000
MIB_PER_GIB = 1024


def render(
    model_name: str,
    machine: InstanceType,
    checkpoints: Sequence[SelectedCheckpoint],
    environment: Sequence[EnvironmentVariable],
) -> dict[str, Any]:
    """Render the content of config.yaml. Secrets appear only by name."""
    secrets = [variable for variable in environment if variable.is_secret_reference]
    return {
        "model_name": model_name,
        "model_metadata": {
            "example_model_input": _example(checkpoints[0]),
            "tags": ["openai-compatible"],
        },
        "base_image": {"image": SERVER_IMAGE},
        "docker_server": {
            "start_command": start_command(machine, checkpoints, secrets),
            "server_port": SERVER_PORT,
            "predict_endpoint": ENDPOINTS.get(checkpoints[0].kind, CHAT_ENDPOINT),
            "readiness_endpoint": HEALTH_PATH,
            "liveness_endpoint": HEALTH_PATH,
        },
        "environment_variables": {
            variable.name: variable.value for variable in environment if not variable.is_secret_reference
        },
        "resources": _resources(machine),
        "runtime": {"predict_concurrency": CONCURRENCY},
        "secrets": {variable.value: None for variable in secrets},
        "training_checkpoints": {
            "download_folder": DOWNLOAD_FOLDER,
            "artifact_references": [
                {"training_job_id": each.job.id, "paths": [f"{PurePosixPath(FIRST_NODE, each.name)}/"]}
                for each in checkpoints
            ],
        },
    }


def start_command(
    machine: InstanceType, checkpoints: Sequence[SelectedCheckpoint], secrets: Sequence[EnvironmentVariable]
) -> str:
    """Return the container's command: export secrets from their files, then run vLLM."""
    words = ["exec", "vllm", "serve", *_weights_arguments(checkpoints)]
    words += ["--port", str(SERVER_PORT), "--dtype", "bfloat16"]
    words += ["--tensor-parallel-size", str(max(1, machine.gpu_count))]
    exports = [
        f'export {each.name}="$(cat {shlex.quote(f"{SECRETS_FOLDER}/{each.value}")})"' for each in secrets
    ]
    return shlex.join(["sh", "-c", "; ".join([*exports, shlex.join(words)])])


def _weights_arguments(checkpoints: Sequence[SelectedCheckpoint]) -> list[str]:
    first = checkpoints[0]
    if first.kind != LORA:
        return [_folder_of(first), "--served-model-name", first.name]
    return [
        first.base_model or "",
        "--enable-lora",
        "--max-lora-rank",
        str(served_rank(each.rank for each in checkpoints)),
        "--max-loras",
        str(len(checkpoints)),
        "--lora-modules",
        *(f"{each.name}={_folder_of(each)}" for each in checkpoints),
    ]


def _folder_of(checkpoint: SelectedCheckpoint) -> str:
    return str(PurePosixPath(DOWNLOAD_FOLDER, checkpoint.job.id, FIRST_NODE, checkpoint.name))


def _resources(machine: InstanceType) -> dict[str, Any]:
    resources: dict[str, Any] = {
        "cpu": str(machine.millicpu_limit // MILLICPU),
        "memory": f"{machine.memory_limit_mib // MIB_PER_GIB}Gi",
        "use_gpu": machine.gpu_count > 0,
    }
    if machine.gpu_type:
        # Accelerator names in a configuration have no dash (API facts, 3.2).
        resources["accelerator"] = f"{machine.gpu_type.replace('-', '_')}:{machine.gpu_count}"
    return resources


def _example(checkpoint: SelectedCheckpoint) -> dict[str, Any]:
    if checkpoint.kind in ENDPOINTS:
        return {"model": checkpoint.name, "file": "speech.wav"}
    return {"model": checkpoint.name, "messages": [{"role": "user", "content": "Hello!"}]}


@dataclass(frozen=True, slots=True)
class TemplateAnswer:
    """The rendered configuration as JSON text, and the deployment (None for a dry run)."""

    truss_config: str
    deployment: StoredDeployment | None


def deploy(platform: Platform, fields: Any) -> TemplateAnswer:
    """Execute the mutation's ``request``; if this raises an ``ApiFault``, nothing was created.

    The model belongs to the team of the first checkpoint's project.
    """
    request = check_template_request(fields)
    machine = _machine(request.instance_type_id)
    checkpoints = choose(platform, request.places)
    team_id = platform.stored_project(checkpoints[0].job.project_id).team_id
    config = json.dumps(render(request.model_name, machine, checkpoints, request.environment))
    if request.dry_run:
        return TemplateAnswer(config, None)
    plan = DeploymentPlan(
        instance_type_id=machine.id,
        truss_config=config,
        served_names=tuple(each.name for each in checkpoints),
        warnings=tuple(_missing_secrets(platform, team_id, request.environment)),
        failure=startup_error(machine, checkpoints),
    )
    stored = platform.stores.deployments.add(request.model_name, team_id, plan, platform.now())
    return TemplateAnswer(config, stored)


def _machine(instance_type_id: str) -> InstanceType:
    for machine in INSTANCE_TYPES:
        if machine.id == instance_type_id:
            return machine
    raise not_found("Instance type", instance_type_id)


def _missing_secrets(
    platform: Platform, team_id: str, environment: list[EnvironmentVariable]
) -> Iterator[str]:
    for variable in environment:
        if variable.is_secret_reference and platform.stores.secrets.value(team_id, variable.value) is None:
            yield f"The workspace has no secret {variable.value!r}: {variable.name} will be empty"
