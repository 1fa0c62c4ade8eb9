"""The only module that sends API requests, with key, timeouts, retries, redirects and errors.

httpx is imported on the first request, in a thread: importing it would delay the dashboard's first paint.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from api_client.addresses import DEFAULT_PORTS, BaseUrl, Destinations, parse_base_url
from api_client.clock import Clock
from api_client.errors import ErrorAnswer, RateLimited, RedirectRefused, RequestError
from api_client.events import RequestEvent, RequestListener
from api_client.http import failures
from api_client.http.decoding import LARGE_LIMIT, USUAL_LIMIT, NotDecodable, ResponseLimit, decode
from api_client.http.failures import RequestLine
from api_client.http.retry import JITTER_RANDOM, RetryPolicy, http_date, retrying
from api_client.remotes import Remote, check_key
from api_client.routes import Adapter, Route, Site

if TYPE_CHECKING:
    import httpx

RESPONSE_TIMEOUT_S = (
    300.0  # from the first byte sent to the last byte received, so that no request blocks others forever
)
MAX_REDIRECTS = 3
MAX_IN_FLIGHT = 4  # maximum concurrent requests; more were slower when measured
T = TypeVar("T")
AnswerRequest = Callable[[Route[Any], tuple[str, ...], Mapping[str, Any]], Awaitable[Any]]
"""Returns the response to a request without the network: ``await answer(route, ids, query_or_body)``."""
QueryValue = str | int | list[str] | None


@dataclass
class _Call:
    """A request, and the state of its current attempt."""

    route: Route[Any]
    site: BaseUrl
    path: str
    ids: tuple[str, ...]
    query: Mapping[str, QueryValue] | None
    body: Any
    attempt: int = 0
    """Number of the current attempt, from 1."""

    arrived: bool = False
    """True if the server may have received this attempt."""

    is_over: bool = False
    """True after RESPONSE_TIMEOUT_S: the request is not retried, because a retry would take as long."""

    status: int | None = None
    date: str = ""
    """The response's ``Date`` header."""

    @property
    def line(self) -> RequestLine:
        return RequestLine(self.route.method, self.path, self.attempt, self.route.words(*self.ids))

    @property
    def limit(self) -> ResponseLimit:
        return LARGE_LIMIT if self.route.is_large else USUAL_LIMIT


_RawResponse = tuple[bytes, str]  # the body, and its content type


class Transport:
    """Sends requests to one remote.

    The httpx client is created on the first request, because that takes a tenth of a second. ``read_only_by``
    describes the setting that forbids changes; if empty, changes are allowed. If given, ``answer`` returns
    the responses in place of the network. Raises ConfigurationError if the remote's addresses or key cannot
    be used.
    """

    def __init__(
        self,
        remote: Remote,
        *,
        clock: Clock,
        retry: RetryPolicy,
        on_event: RequestListener | None = None,
        http_transport: httpx.AsyncBaseTransport | None = None,
        read_only_by: str = "",
        answer: AnswerRequest | None = None,
    ) -> None:
        self._answer = answer
        if remote.key is not None:
            check_key(remote.key.get_secret_value(), remote.key_origin)
        self.remote = remote
        self._sites: dict[Site, BaseUrl] = {
            "api": parse_base_url(remote.api_url, source=f"the API address of remote '{remote.name}'"),
            "app": parse_base_url(remote.app_url, source=f"the address of remote '{remote.name}'"),
        }
        self.destinations = Destinations(site.host for site in self._sites.values())
        """Checks the addresses that the remote names, such as those of presigned URLs."""
        self.clock = clock
        self.retry = retry
        """Policy for requests without a policy of their own."""
        self._on_event = on_event
        self._http_transport = http_transport
        self._read_only_by = read_only_by
        self._http: httpx.AsyncClient | None = None
        self._open_lock = asyncio.Lock()
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._is_closed = False

    def __repr__(self) -> str:
        return f"Transport({self.remote.name!r}, {self._sites['api']})"

    async def request(
        self,
        route: Route[T],
        *ids: str,
        team_id: str | None = None,
        query: Mapping[str, QueryValue] | None = None,
        body: Any = None,
        retry: RetryPolicy | None = None,
    ) -> T:
        """Send a request and return its response; None values of ``query`` are left out.

        ``ids`` fill the placeholders of the route's path, in order; ``team_id`` selects the team's own route.
        Raises RequestError and its subclasses. Raises ReadOnlyError, before anything is sent, for a
        change while changes are forbidden.
        """
        path = route.path_of(*ids, team_id=team_id)
        call = _Call(route, self._sites[route.site], path, ids, query, body)
        if self._read_only_by and route.is_change:
            raise failures.refused_change(self._read_only_by, call.line.words, route.method, path)
        policy = retry or self.retry
        is_repeatable = route.is_idempotent
        try:
            return await retrying(
                partial(self._attempt, call, policy, route.adapter),
                policy,
                sleep=self.clock.sleep,
                # A change is repeated only if it never arrived, or was rejected with 429.
                may_repeat=lambda error: (
                    not call.is_over and (is_repeatable or not call.arrived or isinstance(error, RateLimited))
                ),
                random=JITTER_RANDOM,
                on_wait=lambda error, delay_s: self._emit_event("waiting", call, error, delay_s=delay_s),
            )
        except RequestError as error:
            problem = error
        if not is_repeatable and call.arrived:
            failures.note_possible_effect(problem)
        self._emit_event("failed", call, problem)
        raise problem

    def check_may_change(self, change: str) -> None:
        """Raise ReadOnlyError, naming ``change``, if changes are forbidden. Does not send anything."""
        if self._read_only_by:
            raise failures.refused_change(self._read_only_by, change)

    async def aclose(self) -> None:
        """Close all connections; later requests are refused."""
        self._is_closed = True
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def _attempt(self, call: _Call, policy: RetryPolicy, adapter: Adapter[T]) -> T:
        """Send once. Raises outside of exception handlers, because httpx's exceptions hold the key."""
        call.attempt += 1
        if self._answer is not None:
            self._emit_event("sent", call)
            value: T = await self._answer(call.route, call.ids, call.query or call.body or {})
            self._emit_event("answered", call)
            return value
        problem: Exception | None = None
        call.arrived, call.status, call.date = False, None, ""
        async with self._in_flight:
            http = await self._open_client(call.line)
            import httpx

            self._emit_event("sent", call)
            try:
                async with asyncio.timeout(RESPONSE_TIMEOUT_S):
                    content, content_type = await self._exchange(http, call, policy)
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, TimeoutError) as error:
                problem = error
            except RuntimeError as error:
                # httpx raises this if the client was closed in the meantime.
                if not self._is_closed:
                    raise
                problem = error
        if problem is not None:
            raise self._failure(problem, call)
        decoding = partial(decode, content, adapter, call.limit.values)
        try:
            # From this size on, decoding would block the event loop.
            decoded = await asyncio.to_thread(decoding) if len(content) >= 256 * 1024 else decoding()
        except NotDecodable as error:
            undecodable = error
        else:
            self._emit_event("answered", call)
            return decoded
        raise failures.not_decodable(
            undecodable, content, content_type, self.remote, call.site.netloc, call.line
        )

    def _failure(self, problem: Exception, call: _Call) -> RequestError:
        """Return the error for a request that got no complete response."""
        import httpx

        if self._is_closed:
            call.arrived = True
            return _closed_error(call.line)
        call.is_over = isinstance(problem, TimeoutError)  # httpx's own timeouts are of another type
        not_sent = (httpx.ConnectTimeout, httpx.ConnectError, httpx.ProxyError)
        call.arrived = not isinstance(problem, not_sent)
        return failures.from_exception(problem, self.remote, call.site.netloc, call.line)

    async def _exchange(self, http: httpx.AsyncClient, call: _Call, policy: RetryPolicy) -> _RawResponse:
        """Send one request, following redirects that stay on the same server."""
        import httpx

        line, host = call.line, call.site.netloc
        query = {name: value for name, value in (call.query or {}).items() if value is not None}
        url = httpx.URL(f"{call.site}{call.path}", params=query or None)
        for _ in range(MAX_REDIRECTS + 1):
            request = _build_request(http, call, url, policy.read_timeout_s(call.attempt))
            # If an expired login can't be renewed, this raises, and the request had no effect.
            response = await http.send(request, stream=True)
            call.arrived, call.status = True, response.status_code
            call.date = response.headers.get("date", "")
            try:
                self._record_server_address(response, call.site)
                if response.is_redirect:
                    target = _redirect_target(response, url)
                    if target is None or call.route.method != "GET" or _origin(target) != call.site.origin:
                        raise self._redirect_refused(call, target)
                    url = target
                    continue
                content = await response.aread()
            finally:
                await response.aclose()
                del response.stream  # It refers back to the response: only garbage collection would free it.
            if not response.is_success:
                raise failures.from_response(response, content, self.remote, host, line, self.clock.now())
            return content, response.headers.get("content-type", "")
        message = f"can't {line.words}: {host} redirected more than {MAX_REDIRECTS} times"
        raise RedirectRefused(message, **line.details)

    def _record_server_address(self, response: httpx.Response, site: BaseUrl) -> None:
        """Record the address that the response came from, unless a proxy sent it."""
        stream = response.extensions.get("network_stream")
        if stream is not None and not site.proxy:
            address = stream.get_extra_info("server_addr")
            if address:
                self.destinations.remote_is_at(address[0])

    def _redirect_refused(self, call: _Call, target: httpx.URL | None) -> RedirectRefused:
        redirect_target = (
            "nowhere" if target is None else failures.clean(f"{target.scheme}://{target.host}", self.remote)
        )
        return RedirectRefused(
            f"can't {call.line.words}: {call.site.netloc} redirected to {redirect_target}; not followed, "
            f"because the key is only for {call.site.netloc}",
            **call.line.details,
        )

    async def _open_client(self, line: RequestLine) -> httpx.AsyncClient:
        async with self._open_lock:
            if self._http is None and not self._is_closed:
                await asyncio.to_thread(import_module, "api_client.http.connection")
                from api_client.http.connection import connect

                self._http = await connect(
                    self.remote, tuple(self._sites.values()), self._http_transport, clock=self.clock
                )
            http = self._http
            if http is not None and not self._is_closed:
                return http
        if http is not None:
            await http.aclose()
        raise _closed_error(line)

    def _emit_event(
        self,
        kind: Literal["sent", "answered", "waiting", "failed"],
        call: _Call,
        problem: RequestError | None = None,
        *,
        delay_s: float = 0.0,
    ) -> None:
        if self._on_event is not None:
            method, path, attempt, _words = call.line
            reason = "" if problem is None else str(problem)
            now = self.clock.now()
            status = problem.status if isinstance(problem, ErrorAnswer) else call.status
            date = http_date(call.date)
            self._on_event(RequestEvent(kind, method, path, attempt, now, delay_s, reason, status, date))


def _build_request(
    http: httpx.AsyncClient, call: _Call, url: httpx.URL, read_timeout_s: float
) -> httpx.Request:
    """Build the request; for a host under ``.localhost``, connect to ``localhost``.

    RFC 6761 reserves such hosts for this machine, but not every resolver resolves them.
    """
    import httpx

    from api_client.http.connection import READ_TIMEOUT_S
    from api_client.http.unpacking import MAX_BYTES

    headers = None if call.body is None else {"Content-Type": "application/json"}
    content = None if call.body is None else json.dumps(call.body, allow_nan=False).encode()
    timeout = httpx.Timeout(**http.timeout.as_dict() | {"read": min(read_timeout_s, READ_TIMEOUT_S)})
    extensions = {MAX_BYTES: call.limit.bytes}
    request = http.build_request(
        call.route.method, url, content=content, headers=headers, timeout=timeout, extensions=extensions
    )
    if url.host.endswith(".localhost"):
        request.url = url.copy_with(host="localhost")
    return request


def _redirect_target(response: httpx.Response, url: httpx.URL) -> httpx.URL | None:
    import httpx

    try:
        return url.join(response.headers["location"])
    except (KeyError, httpx.InvalidURL, ValueError):
        return None


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return (url.scheme, url.host, url.port or DEFAULT_PORTS.get(url.scheme, 0))


def _closed_error(line: RequestLine) -> RequestError:
    return RequestError("the client is closed", **line.details)
