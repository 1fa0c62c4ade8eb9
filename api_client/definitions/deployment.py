"""Checkpoints to deploy, and the resources to serve them with."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator

from api_client.definitions.base import OpenDefinition, StrictDefinition, TextEnum
from api_client.definitions.compute import Compute
from api_client.definitions.images import EnvironmentValue

DEFAULT_LORA_RANK = 16
LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # the choices of vLLM's max_lora_rank
DEPLOYED_CHECKPOINTS_FOLDER = "/tmp/training_checkpoints"  # default folder of the checkpoints in a deployment


class ModelWeightsFormat(TextEnum):
    """Format of a checkpoint's weights."""

    LORA = "lora"
    FULL = "full"
    WHISPER = "whisper"


class Checkpoint(OpenDefinition):
    """A checkpoint of a job, by name."""

    training_job_id: str
    checkpoint_name: str
    model_weight_format: ModelWeightsFormat


class LoRADetails(OpenDefinition):
    """LoRA-specific settings."""

    rank: int = DEFAULT_LORA_RANK


class FullCheckpoint(Checkpoint):
    """All weights of a model."""

    model_weight_format: ModelWeightsFormat = ModelWeightsFormat.FULL


class WhisperCheckpoint(Checkpoint):
    """All weights of a Whisper model."""

    model_weight_format: ModelWeightsFormat = ModelWeightsFormat.WHISPER


class LoRACheckpoint(Checkpoint):
    """The weights of an adapter for a base model."""

    lora_details: LoRADetails = Field(default_factory=LoRADetails)
    model_weight_format: ModelWeightsFormat = ModelWeightsFormat.LORA


_CLASS_BY_FORMAT: dict[str, type[Checkpoint]] = {
    ModelWeightsFormat.FULL.value: FullCheckpoint,
    ModelWeightsFormat.LORA.value: LoRACheckpoint,
    ModelWeightsFormat.WHISPER.value: WhisperCheckpoint,
}


def _to_class_of_format(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("model_weight_format"), str):
        return _CLASS_BY_FORMAT.get(value["model_weight_format"], Checkpoint).model_validate(value)
    return value


class CheckpointList(StrictDefinition):
    """Checkpoints to serve together: of training jobs or of Loops runs, never both."""

    download_folder: str = DEPLOYED_CHECKPOINTS_FOLDER
    base_model_id: str | None = None
    checkpoints: list[Annotated[SerializeAsAny[Checkpoint], BeforeValidator(_to_class_of_format)]] = []
    loops_checkpoint_ids: list[str] = []

    @model_validator(mode="after")
    def _reject_mixed_sources(self) -> CheckpointList:
        if self.checkpoints and self.loops_checkpoint_ids:
            raise ValueError(
                "Cannot mix checkpoints of training jobs and loops_checkpoint_ids; give only one of them"
            )
        return self


class DeployCheckpointsRuntime(StrictDefinition):
    """Environment of the serving container."""

    environment_variables: dict[str, EnvironmentValue] = {}


class DeployCheckpointsConfig(StrictDefinition):
    """Definition of a deployment; the CLI asks the user for missing values."""

    checkpoint_details: CheckpointList | None = None
    model_name: str | None = None
    runtime: DeployCheckpointsRuntime | None = None
    compute: Compute | None = None
