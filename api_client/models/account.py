"""Teams, users, secrets, upload credentials, and interactive sessions."""

from __future__ import annotations

from pydantic import ConfigDict, SecretStr

from api_client.models.base import ApiModel, Integer, OptionalDatetime

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
