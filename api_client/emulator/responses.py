"""Builders of the emulator's responses and errors (JSON for the API, XML for the object store), and of ids.

Lists of jobs and metrics may be megabytes long, so pydantic encodes them in one call.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from html import escape
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json, to_jsonable_python
from starlette.responses import Response


def xml_response(
    root: str, fields: Mapping[str, str], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())
    namespace = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"' if root != "Error" else ""
    content = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root}{namespace}>{inner}</{root}>'
    return Response(content, status_code=status, headers=headers, media_type="application/xml")


def xml_error_response(
    status: int,
    code: str,
    message: str,
    *,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error response in S3's XML format."""
    return xml_response("Error", {"Code": code, "Message": message}, status, headers)


ID_ALPHABET = "0123456789bcdfghjkmnpqrstvwxyz"
ID_LENGTH = 8


def new_id() -> str:
    """Return a new id: short, lowercase, alphanumeric.

    There are 30^8 possible ids, so collisions are negligible.
    """
    return "".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH))


Record = TypeVar("Record")


class JsonResponse(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode `content`; NaN and infinity become null because JSON cannot represent them."""
        try:
            return to_json(content, inf_nan_mode="null")
        except ValueError:  # text that is not valid Unicode (lone surrogates) is sent as escapes
            return json.dumps(to_jsonable_python(content, inf_nan_mode="null")).encode()


def fault_response(fault: ApiFault) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if fault.status == 401 else None
    return JsonResponse(
        {"code": fault.code, "message": fault.message}, status_code=fault.status, headers=headers
    )


class ApiFault(Exception):
    """An error response: HTTP ``status``, a machine-readable ``code`` and a human-readable ``message``."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def not_found(kind: str, identity: str) -> ApiFault:
    return ApiFault(404, "NOT_FOUND", f"{kind} {identity!r} not found")


def found_or_404(record: Record | None, kind: str, identity: str) -> Record:
    """Return the record that a lookup found; raise a 404 if it is None."""
    if record is None:
        raise not_found(kind, identity)
    return record


def invalid(message: str) -> ApiFault:
    return ApiFault(400, "VALIDATION_ERROR", message)


def first_problem(parameter: str, error: ValidationError) -> str:
    """Describe the first invalid field of a request parameter, such as ``request.metadata: …``."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(step) for step in (parameter, *first["loc"]))
    # The message must not mention our classes or Python's types.
    problem = "must be an object" if first["type"] in ("model_type", "dict_type") else first["msg"]
    return f"{field}: {problem.removeprefix('Value error, ')}"


def not_implemented(message: str) -> ApiFault:
    """Return a 501 for something that the platform supports, but the emulator does not."""
    return ApiFault(501, "NOT_IMPLEMENTED", message)
