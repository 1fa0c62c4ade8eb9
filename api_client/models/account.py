"""Teams, users, secrets, upload credentials, interactive sessions, GPU capacity and queue, and the bill.

The bill is in USD and minutes.
"""

from __future__ import annotations

from pydantic import ConfigDict, Field, SecretStr

from api_client.models.base import ApiModel, Day, Integer, Number, OptionalDatetime, TolerantList

EMULATOR_USER_EMAIL = "you@emulator.example"  # an invalid address, by which clients recognize the emulator


class Team(ApiModel):
    """Team of the organization."""

    id: str
    name: str = ""
    default: bool = False
    created_at: OptionalDatetime = None


class UserInfo(ApiModel):
    """User that the key belongs to."""

    user_id: str = ""
    email: str | None = None
    name: str | None = None
    workspace_name: str | None = None


class Secret(ApiModel):
    """Secret of the workspace, by name; the API never returns its value."""

    name: str
    id: str = ""
    created_at: OptionalDatetime = None
    team_name: str | None = None


class AwsCredentials(ApiModel):
    """Temporary credentials for one upload. Extra fields (an endpoint, a region) are kept."""

    model_config = ConfigDict(extra="allow", frozen=True)

    aws_access_key_id: str
    aws_secret_access_key: SecretStr
    aws_session_token: SecretStr


class BlobCredentials(ApiModel):
    """Destination and credentials for uploading one archive."""

    s3_bucket: str
    s3_key: str
    creds: AwsCredentials


class AuthCode(ApiModel):
    """Code to sign in to the interactive session of one replica."""

    session_id: str
    replica_id: str = ""
    auth_code: str = ""
    auth_url: str = ""
    generated_at: OptionalDatetime = None
    tunnel_name: str | None = None
    expires_at: OptionalDatetime = None
    working_directory: str | None = None


class InteractiveSession(ApiModel):
    """Interactive session of a job; ``timeout_minutes`` of -1 means about ten years."""

    id: str
    trigger: str = ""
    timeout_minutes: Integer = 0
    session_provider: str = ""
    auth_provider: str = ""
    pod_name: str = ""
    expires_at: OptionalDatetime = None
    tunnel_name: str | None = None
    auth_code: str | None = None
    auth_url: str | None = None
    auth_code_generated_at: OptionalDatetime = None
    authenticated_at: OptionalDatetime = None
    working_directory: str | None = None


class InteractiveSessionUpdate(ApiModel):
    """Response to an update of a session."""

    interactive_session: InteractiveSession
    message: str = ""


class SignedSshCertificate(ApiModel):
    """Certificate for one SSH connection through the proxy (``host:port``)."""

    ssh_certificate: str
    jwt: SecretStr
    proxy_address: str
    ssh_cert_expires_at: OptionalDatetime = None


Usd = Number
"""Amount of money; servers send a number or a decimal string."""


class DailyUsage(ApiModel):
    """The bill of one UTC day."""

    date: Day
    subtotal: Usd = 0.0
    minutes: Number = 0.0


class BillableResource(ApiModel):
    """A billed resource: for a training job its id, and its project's name in ``model_name``."""

    id: str
    kind: str = ""
    name: str | None = None
    model_name: str | None = None
    instance_type: str | None = None
    is_deleted: bool = False


class BilledItem(ApiModel):
    """The bill of one resource in the requested range, in total and by day."""

    billable_resource: BillableResource
    subtotal: Usd = 0.0
    minutes: Number = 0.0
    daily: TolerantList[DailyUsage] = Field(default_factory=list)


class TrainingUsage(ApiModel):
    """The bill of training; ``subtotal`` is the amount after deducting ``credits_used``."""

    subtotal: Usd = 0.0
    credits_used: Usd = 0.0
    total: Usd = 0.0
    minutes: Number = 0.0
    breakdown: TolerantList[BilledItem] = Field(default_factory=list)


class UsageSummary(ApiModel):
    """The bill of a range of days. Fields that are not about training are kept, but not validated."""

    training_usage: TrainingUsage | None = None


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
    """A change of a job's status. No other response has exit codes."""

    training_job_id: str
    training_job_name: str | None = None
    status: str
    created: OptionalDatetime = None
    event_message: str | None = None
    exit_code: Integer | None = None


class QueueContext(ApiModel):
    """Why a job waits, and its status history (oldest first).

    Organization admins only; the format may change.
    """

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
    """GPUs of one type; with spot jobs, ``usage_count`` may exceed ``limit``."""

    gpu_type: str
    baseline: Integer = 0
    limit: Integer = 0
    usage_count: Integer = 0
    dedicated_usage_count: Integer | None = None
    spot_usage_count: Integer | None = None

    @property
    def on_demand_count(self) -> int:
        """GPUs in use that count towards the limit: not those of spot jobs, if the server reports them."""
        if self.dedicated_usage_count is not None:
            return self.dedicated_usage_count
        return max(0, self.usage_count - (self.spot_usage_count or 0))

    @property
    def free_count(self) -> int:
        """GPUs still available to a new on-demand job."""
        return max(0, self.limit - self.on_demand_count)


class TeamGpuCapacity(GpuCapacity):
    """GPUs of one type in one team; the fields are those of ``GpuCapacity``."""

    team_id: str = ""
    team_name: str = ""


class TrainingCapacity(ApiModel):
    """Response of the capacity route."""

    gpu_capacities: TolerantList[GpuCapacity] = []
    team_gpu_capacities: TolerantList[TeamGpuCapacity] = []
