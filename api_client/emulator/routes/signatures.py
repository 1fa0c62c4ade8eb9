"""Whether a request may read the object that its URL names."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from api_client.emulator.platform import Platform
from api_client.emulator.presign import EXPIRES_PARAMETER, SIGNATURE_PARAMETER
from api_client.emulator.timestamps import iso
from api_client.emulator.xml_answers import xml_fault


def refusal(request: Request, platform: Platform) -> Response | None:
    """The answer to a request that must not read; None if its URL was presigned by us and has not expired.

    In S3's words, which tell an expired URL from a wrong one.
    """
    path = request.scope["raw_path"].decode("ascii", "replace")
    expires = request.query_params.get(EXPIRES_PARAMETER, "")
    signature = request.query_params.get(SIGNATURE_PARAMETER, "")
    now_s = platform.now_s()
    signer = platform.signer
    if signer.presigned_is_valid(path, expires, signature, now_s=now_s):
        return None
    if signer.presigned_has_expired(path, expires, signature, now_s=now_s):
        details = {
            "X-Amz-Expires": str(signer.lifetime_s),
            "Expires": iso(datetime.fromtimestamp(int(expires), UTC)),
            "ServerTime": iso(platform.now()),
        }
        return xml_fault(403, "AccessDenied", "Request has expired", details=details)
    if not signature:
        return xml_fault(403, "AccessDenied", "Access Denied")
    return xml_fault(403, "SignatureDoesNotMatch", "The request signature does not match the one we made")
