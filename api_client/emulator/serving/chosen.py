"""The checkpoints that a deployment is made of, as the platform knows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from api_client.emulator.backend import StoredFile
from api_client.emulator.faults import ApiFault, invalid
from api_client.emulator.platform import Platform
from api_client.emulator.serving.adapter_rank import adapter_rank
from api_client.emulator.serving.template_request import CheckpointPlace
from api_client.models import Checkpoint, TrainingJob

ROOT_CHECKPOINT = "."
LORA = "lora"
SERVABLE_KINDS = (LORA, "full", "whisper")
SYNCING = "SYNCING"

_WEIGHT_SUFFIXES = (".safetensors", ".gguf")
_TORCH_WEIGHTS = ("pytorch_model", "adapter_model", "consolidated")
"""What PyTorch files that hold whole weights are called; others are states and shards of trainers."""


@dataclass(frozen=True, slots=True)
class ChosenCheckpoint:
    """One of them. ``rank`` is the adapter's; ``weight_bytes`` None means that no file of it is known."""

    job: TrainingJob
    name: str
    kind: str
    base_model: str | None
    rank: int
    weight_bytes: int | None


def choose(platform: Platform, places: Sequence[CheckpointPlace]) -> tuple[ChosenCheckpoint, ...]:
    """Look the checkpoints up; raises an ``ApiFault`` for what is not there or cannot be served together."""
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


def _look_up(platform: Platform, place: CheckpointPlace) -> ChosenCheckpoint:
    job = platform.job_by_id(place.training_job_id)
    backend = platform.backend_of(job.id)
    for checkpoint in backend.checkpoints(job.id):
        if checkpoint.checkpoint_id == place.checkpoint_name:
            return _chosen(job, checkpoint, backend.checkpoint_files(job.id))
    raise ApiFault(
        404, "NOT_FOUND", f"Checkpoint {place.checkpoint_name!r} of training job {job.id!r} not found"
    )


def _chosen(job: TrainingJob, checkpoint: Checkpoint, files: Sequence[StoredFile]) -> ChosenCheckpoint:
    name = checkpoint.checkpoint_id
    kind = checkpoint.checkpoint_type or "full"
    if kind not in SERVABLE_KINDS:
        raise invalid(f"checkpoint {name!r} is of type {kind!r}, which no template serves")
    if checkpoint.sync_status == SYNCING:
        raise invalid(f"checkpoint {name!r} is still being uploaded")
    return ChosenCheckpoint(
        job=job,
        name=name,
        kind=kind,
        base_model=checkpoint.base_model,
        rank=adapter_rank(checkpoint.lora_adapter_config),
        weight_bytes=_weight_bytes(name, files),
    )


def _weight_bytes(checkpoint: str, files: Sequence[StoredFile]) -> int | None:
    """How much of it a server loads: whole weights, in its own folder, of the first node (API facts, 5)."""
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
