"""Readers of requests for routes: the job in the path, parameters, the JSON body, and the base URL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request

from api_client.emulator.answers import ApiFault, invalid
from api_client.emulator.backend import LogQuery
from api_client.emulator.platform import Platform
from api_client.models import TrainingJob

PROJECT = "/v1/training_projects/{project_id}"
JOB = PROJECT + "/jobs/{job_id}"


def platform_of(request: Request) -> Platform:
    platform = request.app.state.platform
    assert isinstance(platform, Platform)
    return platform


def job_of(request: Request) -> TrainingJob:
    """Return the job in the path; raise a 404 if its project does not have it."""
    return platform_of(request).job(request.path_params["project_id"], request.path_params["job_id"])


def objects_url_of(request: Request) -> str:
    """Return the base of presigned URLs: the object store's port on the host name the client used.

    If the client came through a forwarded port, or the platform has no separate port for objects, return
    the client's own base URL: objects can be read there too.
    """
    base = base_url_of(request)
    port = platform_of(request).objects_port
    host, _, asked_port = base.removeprefix("http://").rpartition(":")
    if port is None or not host or asked_port != str(request.scope["server"][1]):
        return base
    return f"http://{host}:{port}"


def base_url_of(request: Request) -> str:
    """Return this emulator's base URL, for URLs that others will fetch.

    Prefer the host name the client used, because it also works through a forwarded port.
    ``api.localhost`` does not resolve everywhere (API facts, 4), so replace it by the socket's own
    address.
    """
    host = request.headers.get("host", "")
    if host.startswith("api.") or not host:
        address, port = request.scope["server"]
        host = f"{address}:{port}"
    return f"http://{host}"


MAXIMUM_BODY_BYTES = 16 * 1024 * 1024
"""Limit for JSON bodies, far above any real request of the API."""

LIST_PARAMETERS = ("includes", "excludes")
"""Parameters that may be repeated in a query."""

MAXIMUM_EPOCH_MS = 253_402_300_799_999
"""End of the year 9999."""


async def read_object(request: Request) -> dict[str, Any]:
    """Read the JSON object in the request's body; an empty body is an empty object."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAXIMUM_BODY_BYTES:
            raise ApiFault(413, "PAYLOAD_TOO_LARGE", f"the body is over {MAXIMUM_BODY_BYTES} bytes")
    if not body.strip():
        return {}
    try:
        content = json.loads(bytes(body))
    except (ValueError, RecursionError) as error:
        raise invalid("the body is not JSON") from error
    if not isinstance(content, dict):
        raise invalid("the body must be a JSON object")
    return content


async def read_values(request: Request) -> Parameters:
    """Read the parameters of a route that takes them as a query or, with POST, as JSON."""
    query = request.query_params
    lists = {name: query.getlist(name) for name in LIST_PARAMETERS if name in query}
    return Parameters(await read_object(request) if request.method == "POST" else {**query, **lists})


class Parameters:
    """The named values of a request; for most types null, empty and missing are the same.

    Methods raise a 400 for an invalid value.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def integer(
        self, name: str, *, minimum: int = 0, maximum: int = MAXIMUM_EPOCH_MS, default: int | None = None
    ) -> int | None:
        """Return an integer within bounds, or the default if there is none."""
        value = self._values.get(name)
        if value is None or value == "":
            return default
        number = _whole_number(value)
        if number is None:
            raise invalid(f"{name} must be an integer")
        if not minimum <= number <= maximum:
            raise invalid(f"{name} must be between {minimum} and {maximum}")
        return number

    def choice(self, name: str, options: Sequence[str]) -> str | None:
        value = self._values.get(name)
        if value is None or value == "":
            return None
        if value not in options:
            raise invalid(f"{name} must be one of {', '.join(options)}")
        return str(value)

    def text(self, name: str) -> str | None:
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise invalid(f"{name} must be a string")
        return value

    def required_text(self, name: str) -> str:
        """Return a string that must be present and not blank."""
        value = self.text(name)
        if value is None or not value.strip():
            raise invalid(f"{name} is required")
        return value

    def texts(self, name: str) -> list[str] | None:
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise invalid(f"{name} must be a list of strings")
        return value

    def object(self, name: str) -> dict[str, Any]:
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise invalid(f"{name} is required and must be an object")
        return value


def _whole_number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        digits = value.strip().removeprefix("-")
        # Python refuses to convert very long digit strings, and no valid value is that long.
        if digits.isascii() and digits.isdigit() and len(digits) <= 20:
            return int(value)
    return None


DEFAULT_LIMIT = 500
MAXIMUM_LIMIT = 1000
DEFAULT_WINDOW_MS = 30 * 60 * 1000
MAXIMUM_WINDOW_MS = 7 * 24 * 3600 * 1000
NS_PER_MS = 1_000_000
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
"""Log levels in order of severity."""


def read_log_query(parameters: Parameters, now_ms: int) -> LogQuery:
    """Parse a log query; the default direction is newest first. Defaults and bounds: API facts, 2.2."""
    start_ms, end_ms = _window(parameters, now_ms)
    limit = parameters.integer("limit", minimum=1, maximum=MAXIMUM_LIMIT, default=DEFAULT_LIMIT)
    lowest = parameters.choice("min_level", LEVELS)
    return LogQuery(
        start_ns=start_ms * NS_PER_MS,
        end_ns=end_ms * NS_PER_MS,
        direction="asc" if parameters.choice("direction", ("asc", "desc")) == "asc" else "desc",
        limit=limit or DEFAULT_LIMIT,
        levels=None if lowest is None else frozenset(LEVELS[LEVELS.index(lowest) :]),
    )


def _window(parameters: Parameters, now_ms: int) -> tuple[int, int]:
    # Round "now" up, to include lines already written in the current millisecond.
    end_ms = parameters.integer("end_epoch_millis", default=now_ms + 1)
    assert end_ms is not None
    start_ms = parameters.integer("start_epoch_millis", default=max(0, end_ms - DEFAULT_WINDOW_MS))
    assert start_ms is not None
    if start_ms > end_ms:
        raise invalid("start_epoch_millis must not be after end_epoch_millis")
    if end_ms - start_ms > MAXIMUM_WINDOW_MS:
        raise invalid("the window from start_epoch_millis to end_epoch_millis must not exceed 7 days")
    return start_ms, end_ms
