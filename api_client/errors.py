"""Everything that can go wrong, as one tree.

::

    ApiClientError
    ├── DownloadError               a download that cannot be written (api_client.downloads)
    ├── ConfigurationError          no remote, half a remote, an unreadable credentials file
    │   ├── ConfigFileError         a config.py that cannot be loaded: its path and line
    │   └── ArchiveError            a workspace that cannot be archived, or is too large
    └── RequestError                a request that did not give what was asked
        ├── ReadOnlyError           it would change something, and the client was made read-only: never sent
        ├── Unreachable             no answer: refused, DNS, reset, TLS
        │   └── TimedOut            no answer in time
        ├── RedirectRefused         the server sent us to another host; the key stays here
        ├── AddressRefused          the server named an address where it is not itself: this machine, say
        ├── InvalidAnswer           an answer that is not what the API promises
        ├── UploadFailed            the object store did not take an archive
        ├── DeploymentUnclear       a deployment's answer was lost (api_client.deployment)
        └── ErrorAnswer             an answer of status 4xx or 5xx
            ├── BadRequest          400, 409, 422 and the other 4xx
            ├── Unauthorized        401, 403: names the remote and where its key came from
            ├── NotFound            404
            ├── UrlExpired          a presigned URL that opens its object no more: list the files again
            ├── RateLimited         429
            └── ServerFault         5xx

No message ever holds a key.
"""

from __future__ import annotations

from pathlib import Path


class ApiClientError(Exception):
    """Root of the tree."""


class ConfigurationError(ApiClientError):
    """There is no usable remote; the message says what to set and where."""


class ConfigFileError(ConfigurationError):
    """A config file gives no config. ``path`` and ``line`` say where, ``problem`` says why."""

    def __init__(self, problem: str, *, path: Path, line: int | None = None) -> None:
        place = f"{path}:{line}" if line else str(path)
        super().__init__(f"{place}: {problem}")
        self.problem = problem
        self.path = path
        self.line = line


class ArchiveError(ConfigurationError):
    """The workspace cannot be archived as it is; the message names the file or the setting."""


class RequestError(ApiClientError):
    """A request that failed.

    ``method`` and ``path`` say which, ``retryable`` whether trying again can help, ``attempts`` how many
    times it was sent. ``may_have_happened`` if it was to change something, and perhaps did: it arrived, or
    may have, and no answer says that it was refused. The message says so, too.
    """

    retryable = False
    may_have_happened = False

    def __init__(self, message: str, *, method: str = "", path: str = "", attempts: int = 1) -> None:
        super().__init__(message)
        self.method = method
        self.path = path
        self.attempts = attempts


class ReadOnlyError(RequestError):
    """The client was made read-only, and this would change something. It was never sent."""


class Unreachable(RequestError):
    """The server gave no answer."""

    retryable = True


class TimedOut(Unreachable):
    """The server gave no answer in time."""


class RedirectRefused(RequestError):
    """The server redirected to another host, where the key must not go."""


class AddressRefused(RequestError):
    """The server named an address of this machine, or of a network that it is not in. Nothing was sent."""


class InvalidAnswer(RequestError):
    """The answer is not JSON, or not of the promised shape."""


class UploadFailed(RequestError):
    """The object store did not take an archive. ``status`` and ``code`` are its own, if it answered."""

    status: int | None = None
    code: str | None = None


class ErrorAnswer(RequestError):
    """An error answered by the server: ``status``, its own ``code`` and ``message`` if it sent them."""

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


class BadRequest(ErrorAnswer):
    """The server refuses what was asked (400, 409, 422 and other 4xx)."""


class Unauthorized(ErrorAnswer):
    """The key is missing, wrong or not allowed to do this (401, 403)."""


class NotFound(ErrorAnswer):
    """There is no such thing, or this key cannot see it (404)."""


class UrlExpired(ErrorAnswer):
    """A presigned URL does not open its object (any more): it has expired, or the object has moved.

    Sending it again cannot help; a fresh URL from a new listing can.
    """


class RateLimited(ErrorAnswer):
    """Too many requests (429); ``retry_after_s`` is the server's wish in seconds, if it has one."""

    retryable = True


class ServerFault(ErrorAnswer):
    """The server failed (5xx)."""

    retryable = True


class UnreadableFile(InvalidAnswer):
    """The file's content cannot be read as what it should be. ``problem`` says why, ``file`` which one."""

    def __init__(self, problem: str, *, file: str = "") -> None:
        super().__init__(f"{file}: {problem}" if file else problem)
        self.problem = problem
        self.file = file
