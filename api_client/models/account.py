"""Teams, users, secrets, upload credentials, interactive sessions, and the bill, in USD and minutes."""

from __future__ import annotations

from pydantic import ConfigDict, Field, SecretStr

from api_client.models.base import ApiModel, Day, Integer, Number, OptionalDatetime, TolerantList

EMULATOR_USER_EMAIL = "you@emulator.example"  # by which clients recognize the emulator; no real address


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
    """Session; ``timeout_minutes`` of -1 means about ten years."""

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
    """Answer to an update of a session."""

    interactive_session: InteractiveSession
    message: str = ""


class SignedSshCertificate(ApiModel):
    """Certificate for one SSH connection through the proxy (``host:port``)."""

    ssh_certificate: str
    jwt: SecretStr
    proxy_address: str
    ssh_cert_expires_at: OptionalDatetime = None


TRAINING_JOB = "TRAINING_JOB"
"""The ``kind`` of a billed training job."""

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
    """The bill of training; ``subtotal`` has the ``credits_used`` deducted."""

    subtotal: Usd = 0.0
    credits_used: Usd = 0.0
    total: Usd = 0.0
    minutes: Number = 0.0
    breakdown: TolerantList[BilledItem] = Field(default_factory=list)


class UsageSummary(ApiModel):
    """The bill of a range of days. The parts that are not about training are kept, but not parsed."""

    training_usage: TrainingUsage | None = None
