"""Training projects."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from api_client.models.base import ApiModel, UtcDatetime
from api_client.models.status import as_known, is_finished


class TrainingProject(ApiModel):
    """A group of training jobs. ``latest_job`` is the newest of them, if there is any."""

    id: str
    name: str = ""
    created_at: UtcDatetime | None = None
    updated_at: UtcDatetime | None = None
    team_name: str | None = None
    latest_job: TrainingJob | None = None


class ProjectTombstone(ApiModel):
    """The answer to a project's deletion."""

    id: str
    deleted: bool = True


class InstanceType(ApiModel):
    """The machine of one node. ``memory_limit_mib`` and ``gpu_memory_limit_mib`` are MiB."""

    id: str = ""
    name: str = ""
    memory_limit_mib: int = 0
    millicpu_limit: int = 0
    gpu_count: int = 0
    gpu_type: str | None = None
    gpu_memory_limit_mib: int | None = None


class InstanceTypePrice(ApiModel):
    """What one node of an instance type costs: ``price`` is USD per minute (API facts, 2.3)."""

    instance_type: InstanceType
    price: float | None = None


class ProjectSummary(ApiModel):
    """The project a job belongs to, as a job names it."""

    id: str
    name: str = ""


class User(ApiModel):
    """Who started a job."""

    email: str | None = None


class TrainingJob(ApiModel):
    """A training job.

    ``error_message`` does not mean failure: a waiting job may carry a hint in it (API facts, 1).
    ``node_count`` is sent by newer servers only; ``None`` means that the server did not say.
    """

    id: str
    current_status: Annotated[str, AfterValidator(as_known)]
    created_at: UtcDatetime | None = None
    updated_at: UtcDatetime | None = None
    training_project_id: str = ""
    training_project: ProjectSummary | None = None
    instance_type: InstanceType = Field(default_factory=InstanceType)
    name: str | None = None
    error_message: str | None = None
    checkpoint_sync_status: str | None = None
    priority: int | None = 0
    availability_model: str | None = None
    user: User | None = None
    node_count: int | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended; a status nobody has heard of counts as ended."""
        return is_finished(self.current_status)

    @property
    def project_id(self) -> str:
        """The id of the job's project, from whichever of the two fields is filled."""
        return self.training_project_id or (self.training_project.id if self.training_project else "")


class JobTombstone(ApiModel):
    """The answer to a job's deletion."""

    id: str
    deleted: bool = True
    training_project_id: str = ""
