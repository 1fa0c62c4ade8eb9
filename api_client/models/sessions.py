"""Interactive sessions and SSH certificates."""

from __future__ import annotations

from pydantic import SecretStr

from api_client.models.base import ApiModel, UtcDatetime


class AuthCode(ApiModel):
    """How to sign in to the interactive session of one replica."""

    session_id: str
    replica_id: str = ""
    auth_code: str = ""
    auth_url: str = ""
    generated_at: UtcDatetime | None = None
    tunnel_name: str | None = None
    expires_at: UtcDatetime | None = None
    working_directory: str | None = None


class InteractiveSession(ApiModel):
    """A session: ``timeout_minutes`` of -1 stands for about ten years."""

    id: str
    trigger: str = ""
    timeout_minutes: int = 0
    session_provider: str = ""
    auth_provider: str = ""
    pod_name: str = ""
    expires_at: UtcDatetime | None = None
    tunnel_name: str | None = None
    auth_code: str | None = None
    auth_url: str | None = None
    auth_code_generated_at: UtcDatetime | None = None
    authenticated_at: UtcDatetime | None = None
    working_directory: str | None = None


class InteractiveSessionUpdate(ApiModel):
    """The answer to a change of a session."""

    interactive_session: InteractiveSession
    message: str = ""


class SignedSshCertificate(ApiModel):
    """A certificate for one SSH connection through the proxy (``host:port``)."""

    ssh_certificate: str
    jwt: SecretStr
    proxy_address: str
    ssh_cert_expires_at: UtcDatetime | None = None
