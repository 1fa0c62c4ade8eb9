"""Checkpoints of earlier jobs that a new job finds on its disk."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from api_client.definitions.base import StrictDefinition

LOADED_CHECKPOINTS_FOLDER = "/tmp/loaded_checkpoints"
"""Where they are put if the job does not say (API facts, 5)."""

LoopsTarget = Literal["trainer", "sampler"]
"""The full training state, or the weights for inference."""


class LatestCheckpoint(StrictDefinition):
    """The newest checkpoint of a project, of a job, or of the job's own project."""

    job_id: str | None = None
    project_name: str | None = None
    typ: Literal["baseten_latest_checkpoint"] = "baseten_latest_checkpoint"


class NamedCheckpoint(StrictDefinition):
    """One checkpoint of a job."""

    checkpoint_name: str
    job_id: str
    typ: Literal["baseten_named_checkpoint"] = "baseten_named_checkpoint"


class LoopsRunCheckpoint(StrictDefinition):
    """One checkpoint of a Loops run."""

    run_id: str
    checkpoint_name: str
    target: LoopsTarget = "trainer"
    typ: Literal["loops_checkpoint"] = "loops_checkpoint"


LoadableCheckpoint = LatestCheckpoint | NamedCheckpoint | LoopsRunCheckpoint
"""What can be loaded."""


class BasetenCheckpoint:
    """Makes references to checkpoints of training jobs."""

    @staticmethod
    def from_latest_checkpoint(
        project_name: str | None = None, job_id: str | None = None
    ) -> LatestCheckpoint:
        """The newest of a project, of a job, or of both; raises ValidationError when neither is given."""
        if not project_name and not job_id:
            problem = PydanticCustomError("nothing_named", "Give a project_name, a job_id or both")
            details = InitErrorDetails(type=problem, input={"project_name": project_name, "job_id": job_id})
            raise ValidationError.from_exception_data("BasetenCheckpoint.from_latest_checkpoint", [details])
        return LatestCheckpoint(project_name=project_name, job_id=job_id)

    @staticmethod
    def from_named_checkpoint(checkpoint_name: str, job_id: str) -> NamedCheckpoint:
        """The one of this name."""
        return NamedCheckpoint(checkpoint_name=checkpoint_name, job_id=job_id)


class LoopsCheckpoint:
    """Makes references to checkpoints of Loops runs."""

    @staticmethod
    def from_checkpoint(
        run_id: str, checkpoint_name: str, target: LoopsTarget = "trainer"
    ) -> LoopsRunCheckpoint:
        """The one of this name."""
        return LoopsRunCheckpoint(run_id=run_id, checkpoint_name=checkpoint_name, target=target)


def _latest_of_own_project() -> list[LoadableCheckpoint]:
    return [LatestCheckpoint()]


class LoadCheckpointConfig(StrictDefinition):
    """Which checkpoints a job finds in ``BT_LOAD_CHECKPOINT_DIR`` when it starts."""

    enabled: bool = False
    checkpoints: list[LoadableCheckpoint] = Field(default_factory=_latest_of_own_project)
    download_folder: str = LOADED_CHECKPOINTS_FOLDER
