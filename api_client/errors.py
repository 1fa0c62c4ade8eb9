"""All exceptions of the client, as one tree below ``ApiClientError``; no message ever contains a key.

``ConfigurationError`` is about this machine, ``RequestError`` about a request that failed. Two subclasses are
defined where they are raised: ``DownloadError`` (api_client.transfers) and ``DeploymentUnclear``
(api_client.deployment).
"""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

NOT_RECORDED = "NOT_RECORDED"
"""Code of the 404 for data that a recording does not have."""


class ApiClientError(Exception):
    """Base class of all errors of this package."""


class ConfigurationError(ApiClientError):
    """No usable remote; the message says what to set and where."""


class ConfigFileError(ConfigurationError):
    """A config file that defines no valid config. ``path`` and ``line`` say where, ``problem`` says why."""

    def __init__(self, problem: str, *, path: Path, line: int | None = None) -> None:
        position = f"{path}:{line}" if line else str(path)
        super().__init__(f"{position}: {problem}")
        self.problem = problem
        self.path = path
        self.line = line


class ArchiveError(ConfigurationError):
    """The workspace cannot be archived as it is; the message names the file or the setting."""


class RequestError(ApiClientError):
    """A request that failed.

    ``method`` and ``path`` identify it, ``retryable`` is True if retrying can help, ``attempts`` is the
    number of times that it was sent. ``may_have_happened`` is True for a change that may have taken effect:
    the request may have arrived, and no response rejected it. The message says so, too.
    """

    retryable = False
    may_have_happened = False

    def __init__(self, message: str, *, method: str = "", path: str = "", attempts: int = 1) -> None:
        super().__init__(message)
        self.method = method
        self.path = path
        self.attempts = attempts


class ReadOnlyError(RequestError):
    """A change refused because the client is read-only. It was never sent."""


class Unreachable(RequestError):
    """The server could not be reached, or closed the connection."""

    retryable = True


class TimedOut(Unreachable):
    """The server sent no complete response in time."""


class RedirectRefused(RequestError):
    """The server redirected to another host, where the key must not be sent."""


class AddressRefused(RequestError):
    """The server named an address of this machine, or of a network that the server is not in.

    Nothing was sent.
    """


class InvalidAnswer(RequestError):
    """The response is not JSON, or does not have the expected structure."""


class AnswerTooLarge(InvalidAnswer):
    """The response has more bytes or values than the limit allows. A retry would not help."""


class UploadFailed(RequestError):
    """The object store rejected an archive. ``status`` and ``code`` come from the store's response."""

    status: int | None = None
    code: str | None = None


class ErrorAnswer(RequestError):
    """An error response of the server: ``status``, and the server's ``code`` and ``message``, if any."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str | None = None,
        server_message: str | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
        method: str = "",
        path: str = "",
        attempts: int = 1,
    ) -> None:
        super().__init__(message, method=method, path=path, attempts=attempts)
        self.status = status
        self.code = code
        self.server_message = server_message
        self.request_id = request_id
        self.retry_after_s = retry_after_s

    @property
    def lacks_route(self) -> bool:
        """True if the server does not seem to have the route, as older servers may not (404, 405, 501)."""
        missing = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
        return self.status in missing


class BadRequest(ErrorAnswer):
    """The server rejects the request (400, 409, 422 and other 4xx)."""


class Unauthorized(ErrorAnswer):
    """The key is missing, wrong or not allowed to do this (401, 403)."""

    @property
    def is_key_invalid(self) -> bool:
        """True if the server accepts no request with this key (401)."""
        return self.status == HTTPStatus.UNAUTHORIZED


class NotFound(ErrorAnswer):
    """The object does not exist, or this key cannot see it (404)."""


class UrlExpired(ErrorAnswer):
    """A presigned URL is invalid: it has expired, or the object has moved.

    Retrying does not help; a fresh URL from a new listing may.
    """


class RateLimited(ErrorAnswer):
    """Too many requests (429); ``retry_after_s`` is the delay requested by the server in seconds, if any."""

    retryable = True


class ServerFault(ErrorAnswer):
    """The server failed (5xx)."""

    retryable = True


class UnreadableFile(InvalidAnswer):
    """The file's content is not in the expected format. ``problem`` says why, ``file`` names the file."""

    def __init__(self, problem: str, *, file: str = "") -> None:
        super().__init__(f"{file}: {problem}" if file else problem)
        self.problem = problem
        self.file = file
