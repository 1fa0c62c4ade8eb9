"""Interactive sessions of a job: sign-in codes, changes, and SSH certificates."""

from __future__ import annotations

from api_client import routes
from api_client.http.transport import Transport
from api_client.models import AuthCode, InteractiveSessionUpdate, SignedSshCertificate


class Sessions:
    """Interactive sessions. Every method raises RequestError."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def auth_codes(self, project_id: str, job_id: str) -> list[AuthCode]:
        """Return the sign-in codes, one per replica; none for a job without a session."""
        return await self._transport.request(routes.AUTH_CODES, project_id, job_id)

    async def update(
        self,
        project_id: str,
        job_id: str,
        session_id: str,
        *,
        timeout_minutes: int | None = None,
        trigger: str | None = None,
    ) -> InteractiveSessionUpdate:
        """Update a session; None leaves a value unchanged, -1 minutes is about ten years.

        Never retried automatically: the API may add the minutes to the remaining time. Raises ValueError
        if nothing is given.
        """
        changes = {"timeout_minutes": timeout_minutes, "trigger": trigger}
        body = {name: value for name, value in changes.items() if value is not None}
        if not body:
            raise ValueError("nothing to change: give timeout_minutes or a trigger")
        return await self._transport.request(routes.UPDATE_SESSION, project_id, job_id, session_id, body=body)

    async def sign_ssh(
        self, project_id: str, job_id: str, *, public_key: str, replica_id: str | None = None
    ) -> SignedSshCertificate:
        """Return a certificate for one SSH connection to a node (``replica_id`` "0", "1" …)."""
        body = {"public_key": public_key}
        if replica_id is not None:
            body["replica_id"] = replica_id
        return await self._transport.request(routes.SIGN_SSH, project_id, job_id, body=body)
