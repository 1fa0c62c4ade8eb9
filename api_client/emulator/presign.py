"""Signatures for URLs and upload credentials; each grants access to one path for a limited time."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from urllib.parse import urlencode

PRESIGNED_LIFETIME_S = 900
"""Lifetime of a presigned URL. The platform publishes no figure ("short-lived")."""


EXPIRES_PARAMETER = "X-Emulator-Expires"
SIGNATURE_PARAMETER = "X-Emulator-Signature"


@dataclass(frozen=True, repr=False)
class Signer:
    """Signs with HMAC-SHA256. ``secret`` never leaves the emulator; ``lifetime_s`` applies to URLs."""

    secret: bytes
    lifetime_s: int = PRESIGNED_LIFETIME_S

    def presigned(self, quoted_path: str, *, now_s: float) -> str:
        """Add a query that lets anyone GET the path until it expires. ``now_s`` is in epoch seconds."""
        expires = int(now_s) + self.lifetime_s
        query = {EXPIRES_PARAMETER: expires, SIGNATURE_PARAMETER: self._sign("GET", quoted_path, expires)}
        return f"{quoted_path}?{urlencode(query)}"

    def upload_token(self, object_name: str, *, now_s: float) -> str:
        """Return a session token that lets its holder read and write one object until it expires."""
        expires = int(now_s) + 6 * 3600  # long enough for the largest archive
        return f"{expires}.{self._sign('PUT', object_name, expires)}"

    def upload_token_is_valid(self, object_name: str, token: str, *, now_s: float) -> bool:
        """Return True if the token is ours, covers this object and has not expired."""
        expires, _, signature = token.partition(".")
        return self.is_ours("PUT", object_name, expires, signature) and int(expires) >= now_s

    def _sign(self, purpose: str, subject: str, expires: int) -> str:
        text = f"{purpose}\n{subject}\n{expires}".encode(errors="surrogateescape")
        return hmac.new(self.secret, text, hashlib.sha256).hexdigest()

    def is_ours(self, purpose: str, subject: str, expires: str, signature: str) -> bool:
        """Return True if the signature is ours and covers this purpose and path, even if it has expired."""
        if not (expires.isascii() and expires.isdigit() and len(expires) <= 18):
            return False
        expected = self._sign(purpose, subject, int(expires))
        return hmac.compare_digest(expected.encode(), signature.encode(errors="replace"))
