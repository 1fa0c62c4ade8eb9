"""A made-up SSH certificate. Nothing accepts it: the emulator has no SSH proxy, only the answer's shape."""

from __future__ import annotations

import base64
import json
import secrets
import struct
from datetime import datetime, timedelta
from typing import Any

from api_client.emulator.timestamps import iso

CERTIFICATE_TYPE = "ssh-ed25519-cert-v01@openssh.com"
CERTIFICATE_LIFETIME = timedelta(minutes=5)
NONCE_BYTES = 32
PROXY_ADDRESS = "ssh-proxy.emulator.invalid:443"
PUBLIC_KEY_TYPES = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")


def made_up_certificate(job_id: str, replica_id: str, now: datetime) -> dict[str, Any]:
    """The fields of a signed certificate, every one of them marked as the emulator's."""
    expires_at = now + CERTIFICATE_LIFETIME
    claims = {"emulator": True, "job": job_id, "replica": replica_id, "exp": int(expires_at.timestamp())}
    token = (_encoded({"alg": "ES256", "typ": "JWT"}), _encoded(claims), _base64url(b"emulator-signature"))
    name = CERTIFICATE_TYPE.encode()
    blob = (
        struct.pack(">I", len(name))
        + name
        + b"bt-tui emulator, no real certificate"
        + secrets.token_bytes(NONCE_BYTES)
    )
    return {
        "ssh_certificate": f"{CERTIFICATE_TYPE} {base64.b64encode(blob).decode()} bt-tui-emulator",
        "jwt": ".".join(token),
        "proxy_address": PROXY_ADDRESS,
        "ssh_cert_expires_at": iso(expires_at),
    }


def is_public_key(text: str) -> bool:
    """Whether the text looks like an OpenSSH public key: a type and its base64."""
    words = text.split()
    if len(words) < 2 or not words[0].startswith(PUBLIC_KEY_TYPES):
        return False
    try:
        return len(base64.b64decode(words[1], validate=True)) > len(words[0])
    except ValueError:
        return False


def _encoded(value: dict[str, Any]) -> str:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
