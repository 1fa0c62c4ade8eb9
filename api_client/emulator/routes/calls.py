"""The argument of a route's handler: the platform, the job in the path, parameters, and the base URL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from inspect import iscoroutinefunction
from typing import Annotated, Any, TypeVar

from pydantic import Strict, TypeAdapter, ValidationError
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as ServedRoute

from api_client.emulator.backend import LogQuery
from api_client.emulator.platform import Backend, Platform
from api_client.emulator.responses import ApiFault, JsonResponse, first_problem, invalid
from api_client.models import Team, TrainingJob
from api_client.models.logs import LEVELS, MS_PER_S, NS_PER_MS
from api_client.routes import Route


def platform_of(request: Request) -> Platform:
    platform = request.app.state.platform
    assert isinstance(platform, Platform)
    return platform


class Call:
    """A request to the API; ``path_parameters`` has the values of the placeholders in the route's path."""

    def __init__(self, request: Request, body: bytes) -> None:
        self.platform = platform_of(request)
        self.path_parameters: Mapping[str, str] = request.path_params
        self._request = request
        self._body = body

    @property
    def ids(self) -> tuple[str, str]:
        return self.path_parameters["project_id"], self.path_parameters["job_id"]

    @property
    def job(self) -> TrainingJob:
        """Job in the path; raises a 404 if its project does not have it."""
        return self.platform.job(*self.ids)

    @property
    def backend(self) -> Backend:
        """Source of the job in the path; raises a 404 if its project does not have it."""
        return self.platform.backend_of(self.job.id)

    @property
    def team(self) -> Team:
        """Team in the path, else the default team."""
        team_id = self.path_parameters.get("team_id")
        return self.platform.stores.teams.default() if team_id is None else self.platform.team(team_id)

    @cached_property
    def parameters(self) -> Parameters:
        """Parameters in the body, or in the query of a GET request."""
        if self._request.method != "GET":
            return Parameters(_json_object(self._body))
        return Parameters(dict(self._request.query_params))

    @property
    def base_url(self) -> str:
        return base_url_of(self._request)

    def presigned_url(self, path: str) -> str:
        """Return a URL that lets anyone read an object."""
        return self.base_url + self.platform.signer.presign(path, now_s=self.platform.now_s())


Handlers = Mapping[Route[Any], Callable[[Call], Any]]
"""For each route, the handler: a function that returns the content of the JSON response."""


def starlette_routes(handlers: Handlers) -> Iterator[ServedRoute]:
    """Yield Starlette routes for routes of the API, also for their paths below a team."""
    for route, handler in handlers.items():
        for path in route.paths:
            # Names may contain slashes; ids never do.
            yield api_route(route.method, path.replace("{name}", "{name:path}"), handler)


def api_route(method: str, path: str, handler: Callable[[Call], Any]) -> ServedRoute:
    """Return the Starlette route for a path; ``handler`` returns the content of the JSON response.

    A plain function runs in a thread, a coroutine function on the event loop, as actions on jobs must.
    """

    async def endpoint(request: Request) -> Response:
        call = Call(request, await read_body(request))
        if iscoroutinefunction(handler):
            return JsonResponse(await handler(call))
        return await run_in_threadpool(lambda: JsonResponse(handler(call)))

    return ServedRoute(path, endpoint, methods=[method])


def base_url_of(request: Request) -> str:
    """Return this emulator's base URL, for URLs that clients will fetch.

    The host is the one that the client sent, because it also works through a forwarded port. Only
    ``api.localhost`` is replaced by the socket's address, because it does not resolve everywhere.
    """
    host = request.headers.get("host", "")
    if host.startswith("api.") or not host:
        address, port = request.scope["server"]
        host = f"{address}:{port}"
    return f"http://{host}"


async def read_body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > 16 * 2**20:  # far more than any real request has
            raise ApiFault(413, "PAYLOAD_TOO_LARGE", "the body is over 16 MiB")
    return bytes(body)


def _json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object; an empty body is an empty object."""
    if not body.strip():
        return {}
    try:
        content = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise invalid(f"the body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise invalid("the body must be a JSON object")
    return content


Value = TypeVar("Value")
TEXT_ADAPTER = TypeAdapter(Annotated[str, Strict()])
TEXT_LIST_ADAPTER = TypeAdapter(list[Annotated[str, Strict()]])
OBJECT_ADAPTER = TypeAdapter(dict[str, Any])
DATETIME_ADAPTER = TypeAdapter(datetime)


class Parameters:
    """The parameters of a request by name. Null and empty values count as missing.

    All methods raise a 400 for an invalid value.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def get(self, name: str, adapter: TypeAdapter[Value]) -> Value | None:
        value = self.values.get(name)
        if value in (None, ""):
            return None
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            raise invalid(first_problem(name, error)) from error

    def required(self, name: str, adapter: TypeAdapter[Value]) -> Value:
        value = self.get(name, adapter)
        if value is None or (isinstance(value, str) and not value.strip()):
            raise invalid(f"{name} is required")
        return value

    def integer(self, name: str, *, minimum: int = 0, maximum: int = 253_402_300_799_999) -> int | None:
        """Return an integer; the default bounds allow epoch milliseconds up to the year 9999."""
        number = self.get(name, TypeAdapter(int))
        if number is not None and not minimum <= number <= maximum:
            raise invalid(f"{name} must be between {minimum} and {maximum}")
        return number

    def choice(self, name: str, options: Sequence[str]) -> str | None:
        value = self.get(name, TEXT_ADAPTER)
        if value and value not in options:
            raise invalid(f"{name} must be one of {', '.join(options)}")
        return value


MAX_LOG_WINDOW_MS = 7 * 24 * 3600 * 1000


def read_log_query(parameters: Parameters, now_ms: int) -> LogQuery:
    """Parse a log query, with the defaults and bounds that the API documents; the default is newest first."""
    start_ms, end_ms = read_time_range(parameters)
    if end_ms is None:
        end_ms = now_ms + 1  # rounded up, to include lines already written in the current millisecond
    if start_ms is None:
        start_ms = max(0, end_ms - 30 * 60 * MS_PER_S)
    if not start_ms <= end_ms <= start_ms + MAX_LOG_WINDOW_MS:
        raise invalid("the window from start_epoch_millis to end_epoch_millis must be 0 to 7 days")
    min_level = parameters.choice("min_level", LEVELS)
    return LogQuery(
        start_ns=start_ms * NS_PER_MS,
        end_ns=end_ms * NS_PER_MS,
        direction="asc" if parameters.choice("direction", ("asc", "desc")) == "asc" else "desc",
        limit=parameters.integer("limit", minimum=1, maximum=1000) or 500,
        levels=None if min_level is None else frozenset(LEVELS[LEVELS.index(min_level) :]),
    )


def read_time_range(parameters: Parameters) -> tuple[int | None, int | None]:
    """Return the start and the end in epoch milliseconds; raise a 400 if the start is later."""
    start_ms, end_ms = parameters.integer("start_epoch_millis"), parameters.integer("end_epoch_millis")
    if start_ms is not None and end_ms is not None and start_ms > end_ms:
        raise invalid("start_epoch_millis must not be after end_epoch_millis")
    return start_ms, end_ms
