"""Answers of the object store: XML, as S3 gives them."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from starlette.responses import Response

S3_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def xml_answer(root: str, fields: Mapping[str, str]) -> Response:
    """One element with text elements in it."""
    inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())
    return _xml(f'<{root} xmlns="{S3_NAMESPACE}">{inner}</{root}>', 200)


def xml_fault(
    status: int,
    code: str,
    message: str,
    *,
    headers: Mapping[str, str] | None = None,
    details: Mapping[str, str] | None = None,
) -> Response:
    """An S3 error; ``details`` are further elements of it."""
    fields = {"Code": code, "Message": message, **(details or {})}
    inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())
    body = f"<Error>{inner}</Error>"
    return _xml(body, status, headers)


def _xml(body: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    content = f'<?xml version="1.0" encoding="UTF-8"?>\n{body}'
    return Response(content, status_code=status, headers=headers, media_type="application/xml")
