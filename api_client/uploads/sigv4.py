"""AWS Signature Version 4 for S3: a request → the headers that prove who sends it.

Written here, as small as it is, because the S3 libraries read every ``AWS_*`` variable of the
environment, and what somebody's shell says about AWS must not reach the platform's own bucket.
Source: AWS, "Authenticating Requests (AWS Signature Version 4)"; its worked examples are the tests.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from pydantic import SecretStr

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
"""What a request without body is signed with."""

_ALGORITHM = "AWS4-HMAC-SHA256"
_UNRESERVED = "-_.~"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """Credentials and what they are for; the repr shows no secret."""

    access_key_id: str
    secret_access_key: SecretStr
    session_token: SecretStr
    region: str
    service: str = "s3"


def quoted_path(path: str) -> str:
    """A path as it is sent and signed: everything escaped but the unreserved characters and ``/``."""
    return quote(path, safe="/" + _UNRESERVED, errors="surrogateescape")


def quoted_query(query: Mapping[str, str]) -> str:
    """A query as it is sent and signed: sorted, escaped, with ``=`` even where there is no value."""
    return "&".join(
        f"{quote(name, safe=_UNRESERVED)}={quote(value, safe=_UNRESERVED)}"
        for name, value in sorted(query.items())
    )


def signed_headers(
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    *,
    payload_sha256: str,
    key: SigningKey,
    at: datetime,
) -> dict[str, str]:
    """``headers`` with the date, the token, the payload's hash and the signature.

    ``path`` and ``query`` as they are sent (``quoted_path``, ``quoted_query``); ``headers`` must hold
    ``host``, in lower case like every other name. ``at`` is aware, in UTC.
    """
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    signed = {**headers, "x-amz-content-sha256": payload_sha256, "x-amz-date": stamp}
    token = key.session_token.get_secret_value()
    if token:
        signed["x-amz-security-token"] = token
    names = ";".join(sorted(signed))
    canonical = "\n".join(
        (
            method,
            path,
            query,
            *(f"{name}:{' '.join(signed[name].split())}" for name in sorted(signed)),
            "",
            names,
            payload_sha256,
        )
    )
    scope = f"{stamp[:8]}/{key.region}/{key.service}/aws4_request"
    to_sign = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signature = hmac.new(_derived_key(key, stamp[:8]), to_sign.encode(), hashlib.sha256).hexdigest()
    signed["authorization"] = (
        f"{_ALGORITHM} Credential={key.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return signed


def _derived_key(key: SigningKey, day: str) -> bytes:
    derived = b"AWS4" + key.secret_access_key.get_secret_value().encode()
    for part in (day, key.region, key.service, "aws4_request"):
        derived = hmac.new(derived, part.encode(), hashlib.sha256).digest()
    return derived
