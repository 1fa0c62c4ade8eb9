"""Interactive sessions: sign-in codes, changes, and SSH certificates.

The certificates are fake and accepted nowhere: the emulator has no SSH proxy, only the answer's format.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from api_client import routes
from api_client.emulator.answers import invalid, not_found
from api_client.emulator.routes.calls import TEXT, Answers, Call
from api_client.models import InteractiveSession

PUBLIC_KEY = re.compile(r"\s*(sk-)?(ssh|ecdsa)-\S+\s+[A-Za-z0-9+/=]{16,}(\s.*)?", re.ASCII | re.DOTALL)
FOREVER_MINUTES = 10 * 365 * 24 * 60
"""Replacement for a timeout of -1."""


def _auth_codes(call: Call) -> Any:
    sessions = call.platform.stores.sessions.get(call.job.id) or ()
    return {"auth_codes": [_code_fields(rank, session) for rank, session in enumerate(sessions)]}


def _code_fields(rank: int, session: InteractiveSession) -> dict[str, Any]:
    return {
        "session_id": session.id,
        "replica_id": f"g{rank:02d}r0",
        "auth_code": session.auth_code or "",
        "auth_url": session.auth_url or "",
        "generated_at": session.auth_code_generated_at,
        "tunnel_name": session.tunnel_name,
        "expires_at": session.expires_at,
        "working_directory": session.working_directory,
        "trigger": session.trigger,  # missing in the schema, but truss reads it
    }


async def _change(call: Call) -> Any:
    platform, job, parameters = call.platform, call.job, call.parameters
    session_id = call.path["session_id"]
    sessions = {session.id: session for session in platform.stores.sessions.get(job.id) or ()}
    if (session := sessions.get(session_id)) is None:
        raise not_found("Interactive session", session_id)
    trigger = parameters.choice("trigger", ("on_startup", "on_failure", "on_demand")) or session.trigger
    minutes = parameters.integer("timeout_minutes", minimum=-1, maximum=FOREVER_MINUTES) or 0
    is_on_startup = session.trigger == "on_startup"
    if is_on_startup and trigger != session.trigger:
        raise invalid("the trigger of an on_startup session cannot be changed")
    more = FOREVER_MINUTES if minutes == -1 else minutes
    changes = {
        "trigger": trigger,
        "timeout_minutes": session.timeout_minutes + (0 if is_on_startup else more),
        "expires_at": (session.expires_at or platform.now()) + timedelta(minutes=more),
    }
    changed = session.model_copy(update=changes)
    platform.stores.sessions.put(job.id, tuple((sessions | {session_id: changed}).values()))
    return {"interactive_session": changed, "message": "Interactive session updated"}


async def _sign(call: Call) -> Any:
    job, parameters = call.job, call.parameters
    if PUBLIC_KEY.fullmatch(parameters.required("public_key", TEXT)) is None:
        raise invalid("public_key is not an OpenSSH public key")
    replica_id = parameters.required("replica_id", TEXT)
    if replica_id not in {str(rank) for rank in range(job.node_count or 1)}:
        raise not_found("Replica", replica_id)
    if job.is_finished:
        raise invalid(f"the job is not running: {job.current_status}")
    return {
        "ssh_certificate": "ssh-ed25519-cert-v01@openssh.com bm90LXJlYWw= bt-tui-emulator",
        "jwt": "e30.e30.ZW11bGF0b3I",
        "proxy_address": "ssh-proxy.emulator.invalid:443",
        "ssh_cert_expires_at": call.platform.now() + timedelta(minutes=5),
    }


SESSIONS: Answers = {
    routes.AUTH_CODES: _auth_codes,
    routes.UPDATE_SESSION: _change,
    routes.SIGN_SSH: _sign,
}
