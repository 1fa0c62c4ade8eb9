"""Answers that no handler gave: error statuses, pages, nonsense, redirects."""

from __future__ import annotations

from datetime import datetime, timedelta
from email.utils import format_datetime

from starlette.responses import Response

from api_client.emulator.answers import JsonAnswer
from api_client.emulator.fault_layer.rules import Fault

PAGE = b"<!doctype html><html><head><title>Gateway</title></head><body><h1>Please stand by</h1></body></html>"
NONSENSE = b'{"training_jobs": [{"id": "j1", "current_status": }], NaN;'
ELSEWHERE = "http://elsewhere.invalid/"
CODES = {
    400: "VALIDATION_ERROR",
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    408: "REQUEST_TIMEOUT",
    409: "CONFLICT",
    422: "UNPROCESSABLE",
    429: "RATE_LIMITED",
}


def canned(fault: Fault, *, number: int, now: datetime) -> Response:
    """The answer that such a fault gives instead of the real one; ``number`` makes its request id."""
    headers = {"x-request-id": f"fault-{number}"}
    if not fault.is_status:
        if fault.kind == "redirect":
            return Response(status_code=307, headers={**headers, "location": fault.text or ELSEWHERE})
        body = {"html": PAGE, "malformed": NONSENSE, "empty": b""}[fault.kind]
        kind = "text/html" if fault.kind == "html" else "application/json"
        return Response(body, media_type=kind, headers=headers)
    status = int(fault.kind)
    if "retry-after" in fault.options:
        headers["retry-after"] = fault.options["retry-after"]
    if "retry-date" in fault.options:
        later = now + timedelta(seconds=float(fault.options["retry-date"]))
        headers["retry-after"] = format_datetime(later, usegmt=True)
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    if "html" in fault.options:
        return Response(PAGE, status_code=status, media_type="text/html", headers=headers)
    told = {"code": CODES.get(status, "INTERNAL_ERROR"), "message": f"the fault layer says {status}"}
    return JsonAnswer(told, status_code=status, headers=headers)
