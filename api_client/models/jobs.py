"""Training jobs, their projects and instance types."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from api_client.models.base import FIRST_MOMENT, ApiModel, Integer, NodeCount, Number, OptionalDatetime
from api_client.vocabulary import is_finished, normal_gpu_type, normal_status

CLOCK_SKEW = timedelta(minutes=5)  # a job's first line may precede its creation: nodes have their own clocks


class TrainingProject(ApiModel):
    """Group of training jobs. ``latest_job`` is the newest job, if any."""

    id: str
    name: str = ""
    created_at: OptionalDatetime = None
    updated_at: OptionalDatetime = None
    team_name: str | None = None
    latest_job: TrainingJob | None = None


class ProjectTombstone(ApiModel):
    """Response to the deletion of a project."""

    id: str
    deleted: bool = True


class InstanceType(ApiModel):
    """Type of machine. ``memory_limit_mib`` and ``gpu_memory_limit_mib`` (per GPU) are in MiB."""

    id: str = ""
    name: str = ""
    memory_limit_mib: Integer = 0
    millicpu_limit: Integer = 0
    gpu_count: Integer = 0
    gpu_type: str | None = None
    gpu_memory_limit_mib: Integer | None = None

    @property
    def gpu_memory_bytes(self) -> int:
        """Memory of all GPUs; 0 if unknown."""
        return (self.gpu_memory_limit_mib or 0) * 1024**2 * self.gpu_count

    @property
    def normal_gpu_type(self) -> str:
        """GPU type in the spelling of config files; empty if unknown."""
        return normal_gpu_type(self.gpu_type or "")

    def fits(
        self, *, gpu_type: str | None, gpu_count: int, cpu_count: int = 0, memory_mib: float = 0
    ) -> bool:
        """Return True if one node has these resources.

        CPUs and memory are compared only without ``gpu_type``, as in the official client.
        """
        if gpu_type is not None:
            return self.normal_gpu_type == gpu_type and self.gpu_count >= gpu_count
        has_cpus = self.millicpu_limit >= cpu_count * 1000
        return not self.gpu_count and has_cpus and self.memory_limit_mib >= memory_mib


class InstanceTypePrice(ApiModel):
    """Price of one node of an instance type: ``price`` is USD per minute."""

    instance_type: InstanceType
    price: Number | None = None


class ProjectSummary(ApiModel):
    """Project of a job, as embedded in the job."""

    id: str
    name: str = ""


class User(ApiModel):
    """User who started a job."""

    email: str | None = None


class TrainingJob(ApiModel):
    """Training job.

    ``error_message`` does not mean failure: the message of a waiting job may be a hint. ``node_count`` is
    None if the server, probably an older version, did not send it.
    """

    id: str
    current_status: Annotated[str, AfterValidator(normal_status)]
    created_at: OptionalDatetime = None
    updated_at: OptionalDatetime = None
    training_project_id: str = ""
    training_project: ProjectSummary | None = None
    instance_type: InstanceType = Field(default_factory=InstanceType)
    name: str | None = None
    error_message: str | None = None
    checkpoint_sync_status: str | None = None
    priority: Integer | None = 0
    availability_model: str | None = None
    user: User | None = None
    node_count: NodeCount | None = None

    @property
    def is_finished(self) -> bool:
        """True if the job has ended; unknown statuses count as ended."""
        return is_finished(self.current_status)

    def earliest_time(self, now: datetime) -> datetime:
        """Return the earliest time at which the job may have lines and samples.

        A creation time in the future is ignored.
        """
        if self.created_at is None or self.created_at > now + CLOCK_SKEW:
            return now - timedelta(days=7)  # the longest time range that the server reads
        return max(FIRST_MOMENT, self.created_at - CLOCK_SKEW)

    @property
    def project_id(self) -> str:
        """Id of the job's project, from whichever of the two fields is filled."""
        return self.training_project_id or (self.training_project.id if self.training_project else "")

    @property
    def project_name(self) -> str:
        """Name of the job's project, or its id if it has none."""
        return (self.training_project.name if self.training_project else "") or self.project_id

    @property
    def user_email(self) -> str | None:
        """Email address of the user who started the job."""
        return self.user.email if self.user else None

    @property
    def total_gpus(self) -> int:
        """Number of GPUs on all nodes; an unknown number of nodes counts as one."""
        return self.instance_type.gpu_count * (self.node_count or 1)

    @property
    def is_spot(self) -> bool:
        """True if the job runs on spot capacity and may be preempted."""
        return (self.availability_model or "").lower() == "spot"


class JobTombstone(ApiModel):
    """Response to the deletion of a job."""

    id: str
    deleted: bool = True
    training_project_id: str = ""
