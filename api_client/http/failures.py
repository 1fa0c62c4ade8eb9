"""Build errors for failed requests, with plain messages.

Messages say what the user tried to do (``update job abc1234``); method and path stay in the exception.

These functions build exceptions but do not raise them, so that the transport can raise outside of the
handler: an httpx exception holds the request, and the request holds the key.
"""

from __future__ import annotations

import errno
import socket
import ssl
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from http import HTTPStatus
from http.client import responses
from typing import TYPE_CHECKING, Any, NamedTuple

from api_client.errors import (
    AnswerTooLarge,
    BadRequest,
    ErrorAnswer,
    InvalidAnswer,
    NotFound,
    RateLimited,
    ReadOnlyError,
    RequestError,
    ServerFault,
    TimedOut,
    Unauthorized,
    Unreachable,
)
from api_client.http.decoding import NotDecodable, TooManyValues, read_json
from api_client.http.retry import parse_retry_after
from api_client.remotes import Remote

if TYPE_CHECKING:
    import httpx

MAX_SERVER_MESSAGE_CHARACTERS = 500  # maximum length of the server's own text within a message
_MAX_PARSED_BYTES = 65_536

_ERROR_TYPES: dict[int, type[ErrorAnswer]] = {
    HTTPStatus.UNAUTHORIZED: Unauthorized,
    HTTPStatus.FORBIDDEN: Unauthorized,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.TOO_MANY_REQUESTS: RateLimited,
}

UNRESOLVED = "its name cannot be resolved"
_REASONS_BY_ERRNO = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset",
    errno.EPIPE: "connection closed",
    errno.ENETUNREACH: "network unreachable",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETDOWN: "network down",
    errno.ETIMEDOUT: "no response in time",
}


class RequestLine(NamedTuple):
    """Method, path and attempt of a request; ``words`` complete the message "can't …": "update job 1"."""

    method: str
    path: str
    attempt: int = 1
    words: str = "complete the request"

    @property
    def details(self) -> dict[str, Any]:
        return {"method": self.method, "path": self.path, "attempts": self.attempt}


def clean(text: object, remote: Remote | None = None) -> str:
    """Return text of a server as a printable line of limited length, without the key."""
    message = "".join(
        " " if character.isspace() else "" if unicodedata.category(character)[0] == "C" else character
        for character in str(text)[:_MAX_PARSED_BYTES]
    )
    # Remove the key before truncating the text, or half of a key could remain.
    secrets = [remote.key.get_secret_value()] if remote and remote.key else []
    for key in filter(None, secrets + (remote.login.secrets() if remote and remote.login else [])):
        message = message.replace(key, "[key]")
    message = " ".join(message.split())
    return (
        message
        if len(message) <= MAX_SERVER_MESSAGE_CHARACTERS
        else message[: MAX_SERVER_MESSAGE_CHARACTERS - 1] + "…"
    )


def from_response(
    response: httpx.Response, content: bytes, remote: Remote, host: str, line: RequestLine, now: datetime
) -> ErrorAnswer:
    status = response.status_code
    content_type = response.headers.get("content-type", "")
    code, server_message = _server_message(content, content_type, remote)
    phrase = (server_message or responses.get(status, "no reason given")).rstrip(".")
    error_type = _ERROR_TYPES.get(
        status, ServerFault if status >= HTTPStatus.INTERNAL_SERVER_ERROR else BadRequest
    )
    format_note = " as HTML" if _is_html(content, content_type) else ""
    reason = (
        f"{host}: {phrase} ({status})"
        if server_message
        else f"{host} returned {status} {phrase}{format_note}"
    )
    message = f"can't {line.words}: {reason}"
    if status == HTTPStatus.UNAUTHORIZED or (error_type is Unauthorized and remote.key is None):
        message = f"{_key_refusal(remote, host)}: {phrase} ({status})"
    elif error_type is Unauthorized:  # 403: the key is valid, but lacks a permission
        message += f"; the key of {_key_description(remote)} may not do this"
    names = ("x-request-id", "x-baseten-request-id", "x-amzn-requestid")
    request_id = next((response.headers[name] for name in names if name in response.headers), None)
    error = error_type(
        message,
        status=status,
        code=code,
        server_message=server_message,
        request_id=clean(request_id, remote) if request_id else None,
        retry_after_s=parse_retry_after(
            response.headers.get("retry-after"), date=response.headers.get("date"), now=now
        ),
        **line.details,
    )
    if status == HTTPStatus.REQUEST_TIMEOUT:
        error.retryable = True
    return error


def from_exception(error: Exception, remote: Remote | None, host: str, line: RequestLine) -> RequestError:
    """Build the error for an exception of httpx or httpcore."""
    import httpcore
    import httpx

    from api_client.http.unpacking import BodyTooLarge

    disconnects = (
        httpx.NetworkError,
        httpx.RemoteProtocolError,
        httpcore.NetworkError,
        httpcore.RemoteProtocolError,
    )
    details = line.details
    if isinstance(error, httpx.ConnectTimeout | httpcore.ConnectTimeout):
        return TimedOut(f"can't reach {host}: no response in time", **details)
    if isinstance(error, httpx.TimeoutException | httpcore.TimeoutException | TimeoutError):
        return TimedOut(f"{host} sent no complete response in time", **details)
    if isinstance(error, httpx.ConnectError | httpcore.ConnectError):
        reason = _reason(error, remote)
        message = f"can't resolve {host}" if reason == UNRESOLVED else f"can't reach {host}: {reason}"
        return Unreachable(message, **details)
    if isinstance(error, httpx.ProxyError | httpcore.ProxyError):
        reason = clean(error, remote)
        return Unreachable(f"can't reach {host} through the proxy: {reason}", **details)
    if isinstance(error, httpx.DecodingError):
        error_type = AnswerTooLarge if isinstance(error, BodyTooLarge) else InvalidAnswer
        return error_type(f"can't {line.words}: {host} {clean(error, remote)}", **details)
    if isinstance(error, disconnects):
        reason = _reason(error, remote)
        return Unreachable(f"{host} broke off the connection: {reason}", **details)
    # Quote only the type: messages of the remaining exceptions (LocalProtocolError, InvalidURL) may have
    # headers.
    return RequestError(f"request to {host} failed: {type(error).__name__}", **details)


def refused_change(read_only_by: str, words: str, method: str = "", path: str = "") -> ReadOnlyError:
    """Build the error for a change that was not sent; ``read_only_by`` is the setting that forbids it."""
    return ReadOnlyError(
        f"refused (read-only by {read_only_by}): {words}", method=method, path=path, attempts=0
    )


def note_possible_effect(error: RequestError) -> None:
    """If the request may have taken effect despite the error, record that in the error and its message."""
    if isinstance(error, InvalidAnswer) or (error.retryable and not isinstance(error, RateLimited)):
        error.may_have_happened = True
        error.args = (f"{error}; it may have taken effect and was not sent again",)


def not_decodable(
    error: NotDecodable, content: bytes, content_type: str, remote: Remote, host: str, line: RequestLine
) -> InvalidAnswer:
    if not content.strip():
        reason = "an empty response"
    elif _is_html(content, content_type):
        reason = "HTML, not JSON (check the API URL)"
    else:
        reason = f"unexpected data ({clean(error, remote)})"
    error_type = AnswerTooLarge if isinstance(error, TooManyValues) else InvalidAnswer
    return error_type(f"can't {line.words}: {host} returned {reason}", **line.details)


def _key_refusal(remote: Remote, host: str) -> str:
    if remote.key is None:
        return f"{host} needs a key, but remote '{remote.name}' has none"
    return f"{host} refused the key of {_key_description(remote)}"


def _key_description(remote: Remote) -> str:
    return f"remote '{remote.name}' (key from {remote.key_origin})"


def _server_message(content: bytes, content_type: str, remote: Remote) -> tuple[str | None, str | None]:
    """Return the error code and message in a response, each None if missing; their location varies."""
    start = content[:_MAX_PARSED_BYTES]
    if not start.strip() or _is_html(start, content_type):  # HTML comes from a proxy, not from the API
        return None, None
    try:
        value = read_json(start)
    except NotDecodable:
        return None, clean(start.decode("utf-8", errors="replace"), remote) or None
    code = value.get("code") if isinstance(value, dict) else None
    message = _first_text(value)
    return (
        clean(code, remote) if isinstance(code, str | int) else None,
        clean(message, remote) or None if message else None,
    )


def _first_text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return _first_text(value[0]) if value else None
    if isinstance(value, dict):
        for name in ("message", "error", "detail", "msg"):
            nested = _first_text(value.get(name))
            if nested:
                return nested
    return None


def _is_html(content: bytes, content_type: str) -> bool:
    start = content.lstrip()[:1]
    return start == b"<" or (bool(start) and "html" in content_type.lower())


def _reason(error: BaseException, remote: Remote | None) -> str:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"certificate not trusted ({clean(cause.verify_message, remote)})"
        if isinstance(cause, ssl.SSLError):
            return "TLS handshake failed"
        if isinstance(cause, socket.gaierror):
            return UNRESOLVED
        if isinstance(cause, OSError) and cause.errno in _REASONS_BY_ERRNO:
            return _REASONS_BY_ERRNO[cause.errno]
    return clean(error, remote).rstrip(".") or "connection lost"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception, its causes, and the members of exception groups, recursively."""
    yield error
    members = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for inner in (*members, error.__cause__ or error.__context__):
        if inner is not None:
            yield from _causes(inner)
