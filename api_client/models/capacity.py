"""GPU capacity of the organization and its teams; a job's queue position and status history."""

from __future__ import annotations

from api_client.models.base import ApiModel, Integer, OptionalDatetime, TolerantList


class ActiveJobAtSubmit(ApiModel):
    """A job that held capacity when the target job was submitted."""

    training_job_id: str
    training_job_name: str | None = None
    instance_type_name: str = ""
    total_gpus: Integer = 0
    workload_plane_name: str = ""
    status_at_submit: str = ""
    status_set_at: OptionalDatetime = None


class PendingJobAhead(ApiModel):
    """A job that was ahead in the queue when the target job was submitted."""

    training_job_id: str
    training_job_name: str | None = None
    instance_type_name: str = ""
    requested_gpus: Integer = 0
    priority: Integer = 0
    submitted_at: OptionalDatetime = None


class CapacityAtSubmit(ApiModel):
    """The GPU limit that applied when the target job was submitted."""

    gpu_type: str = ""
    max_gpus: Integer = 0
    min_gpus: Integer | None = None
    last_modified: OptionalDatetime = None


class QueueEvent(ApiModel):
    """Change of status; the only public source of exit codes."""

    training_job_id: str
    training_job_name: str | None = None
    status: str
    created: OptionalDatetime = None
    event_message: str | None = None
    exit_code: Integer | None = None


class QueueContext(ApiModel):
    """Reason why a job waits, and its status history (oldest first). Org admins only, unstable."""

    target_job_id: str
    target_job_name: str | None = None
    gpu_type: str | None = None
    requested_gpus: Integer = 0
    submitted_at: OptionalDatetime = None
    released_at: OptionalDatetime = None
    pending_seconds: Integer | None = None
    org_capacity: CapacityAtSubmit | None = None
    team_capacity: CapacityAtSubmit | None = None
    active_at_submit: TolerantList[ActiveJobAtSubmit] = []
    pending_ahead_at_submit: TolerantList[PendingJobAhead] = []
    events: TolerantList[QueueEvent] = []
    events_window_end: OptionalDatetime = None


class GpuCapacity(ApiModel):
    """GPUs of one type; spot use may push ``usage_count`` above ``limit``."""

    gpu_type: str
    baseline: Integer = 0
    limit: Integer = 0
    usage_count: Integer = 0
    dedicated_usage_count: Integer | None = None
    spot_usage_count: Integer | None = None


class TeamGpuCapacity(GpuCapacity):
    """GPUs of one type in one team; the fields are those of ``GpuCapacity``."""

    team_id: str = ""
    team_name: str = ""


class TrainingCapacity(ApiModel):
    """Answer of the capacity route."""

    gpu_capacities: TolerantList[GpuCapacity] = []
    team_gpu_capacities: TolerantList[TeamGpuCapacity] = []
