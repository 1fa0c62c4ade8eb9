"""Read byte ranges of objects in threads; a read can be cancelled at any time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from random import Random

from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from api_client.addresses import Destinations
from api_client.clock import Clock, SystemClock
from api_client.errors import InvalidAnswer, RedirectRefused, RequestError, Unreachable
from api_client.http.connection import user_agent
from api_client.http.retry import RetryPolicy, retrying
from api_client.transfers.object_connection import (
    ConnectionPools,
    ObjectHead,
    RangeOutside,
    content_length,
    from_answer,
    from_break,
    parse_object_url,
    read_head,
    redirected,
    total_of_unsatisfied,
)

CHUNK_BYTES = 512 * 1024
"""Maximum number of bytes taken from a connection at once."""

MAX_ERROR_BYTES = 65_536
MAX_REDIRECTS = 3
DRAINED_BYTES = 64 * 1024
"""An answer with at most this many bytes left is read to the end, so that its connection can be reused."""

OnHead = Callable[[ObjectHead], object]
OnChunk = Callable[[int, bytes], object]


class RequestCancelled(Exception):
    """The exchange was cancelled."""


class RangeRequest:
    """Reads the bytes ``start`` … ``end`` (exclusive; None: to the object's end) of the object at ``url``.

    ``on_head`` is called once with the headers, ``on_chunk`` with every piece and its offset in the
    object, in order, and only with requested bytes. If a server ignores ranges, the object is read from
    its beginning and bytes before ``start`` are dropped; ``on_head`` may raise to prevent that. Both are
    called in the thread of ``run``, and never after ``cancel_request`` has returned.
    """

    def __init__(
        self,
        connections: ConnectionPools,
        url: str,
        start: int,
        end: int | None,
        *,
        clock: Clock,
        on_head: OnHead,
        on_chunk: OnChunk,
    ) -> None:
        self._connections = connections
        self._url = parse_object_url(url)
        self._start = start
        self._end = end
        self._clock = clock
        self._on_head = on_head
        self._on_chunk = on_chunk
        self._lock = threading.Lock()
        self._response: BaseHTTPResponse | None = None
        self._is_cancel_requested = False

    def cancel_request(self) -> None:
        """Cancel the exchange, from any thread."""
        with self._lock:
            self._is_cancel_requested = True
            if self._response is not None:
                _shutdown_socket(self._response)

    def run(self) -> ObjectHead:
        """Run the exchange. Raises RequestError, RequestCancelled, and the callbacks' errors."""
        problem: Exception
        response: BaseHTTPResponse | None = None
        is_finished = False
        try:
            response = self._answer()
            head = self._head(response)
            with self._lock:
                self._check()
                self._on_head(head)
            is_finished = self._read(response, head)
            return head
        except (HTTPError, OSError) as error:
            # An OSError raised by a callback (a full disk) must not get here: callbacks wrap theirs.
            problem = error
        finally:
            with self._lock:
                self._response = None
            if response is not None:
                if is_finished:
                    response.release_conn()
                else:
                    response.close()
        if self._is_cancel_requested:
            raise RequestCancelled
        raise from_break(problem, self._url)

    def _answer(self) -> BaseHTTPResponse:
        for _ in range(MAX_REDIRECTS + 1):
            response = self._sent()
            status = response.status
            if status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                return response
            try:
                if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
                    self._url = redirected(self._url, response.headers.get("location"))
                    continue
                self._refuse(response)
            finally:
                response.close()
        raise RedirectRefused(f"{self._url.netloc} redirected more than {MAX_REDIRECTS} times", method="GET")

    def _sent(self) -> BaseHTTPResponse:
        self._check()
        pool = self._connections.pool(self._url)
        response = pool.urlopen(
            "GET",
            self._url.target,
            headers=self._headers(),
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
            assert_same_host=False,
        )
        with self._lock:
            self._response = response
            if self._is_cancel_requested:
                response.close()
                raise RequestCancelled
        return response

    def _headers(self) -> Mapping[str, str]:
        """Return the only headers that are sent: no key, no cookie, no referrer."""
        headers = {
            "Host": self._url.netloc,
            "User-Agent": user_agent(),
            "Accept": "*/*",
            # Compressed bytes would be counted, placed and verified as if they were the object's.
            "Accept-Encoding": "identity",
        }
        if self._start or self._end is not None:
            last = "" if self._end is None else str(self._end - 1)
            headers["Range"] = f"bytes={self._start}-{last}"
        return headers

    def _refuse(self, response: BaseHTTPResponse) -> None:
        status = response.status
        if status < HTTPStatus.BAD_REQUEST:
            raise InvalidAnswer(f"{self._url.netloc} returned {status} instead of a file")
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            error = RangeOutside(f"{self._url.netloc} has no byte {self._start:,} of this file", method="GET")
            error.total_bytes = total_of_unsatisfied(response.headers)
            raise error
        try:
            content = response.read(MAX_ERROR_BYTES, decode_content=False)
        except (HTTPError, OSError):
            content = b""
        raise from_answer(status, response.headers, content, self._url, self._clock.now())

    def _head(self, response: BaseHTTPResponse) -> ObjectHead:
        head = read_head(response.status, response.headers)
        if head is None:
            raise InvalidAnswer(f"{self._url.netloc} sent a different part of the file than it announced")
        if head.is_partial:
            asked_too_much = (
                self._end is not None and head.length is not None and head.start + head.length > self._end
            )
            if head.start != self._start or asked_too_much:
                raise InvalidAnswer(f"{self._url.netloc} sent a different part of the file than requested")
        return head

    def _read(self, response: BaseHTTPResponse, head: ObjectHead) -> bool:
        """Pass on the body. Returns True if it was read to its end, so that the connection can be reused."""
        offset = head.start
        announced_end = None if head.length is None else head.start + head.length
        wanted_end = announced_end if self._end is None else self._end
        while wanted_end is None or offset < wanted_end:
            chunk = _next(response)
            if not chunk:
                break
            if announced_end is not None and offset + len(chunk) > announced_end:
                raise InvalidAnswer(f"{self._url.netloc} sent more of the file than it announced")
            first = max(0, self._start - offset)
            last = len(chunk) if wanted_end is None else min(len(chunk), wanted_end - offset)
            with self._lock:
                self._check()
                if first < last:
                    self._on_chunk(offset + first, chunk if last - first == len(chunk) else chunk[first:last])
            offset += len(chunk)
        if announced_end is not None and offset < min(announced_end, wanted_end or announced_end):
            raise Unreachable(
                f"{self._url.netloc} closed the connection in the middle of the file", method="GET"
            )
        if announced_end is not None and head.is_partial and content_length(response.headers) is None:
            # Without a length, the end of the range proves nothing: more may follow.
            if _next(response):
                raise InvalidAnswer(f"{self._url.netloc} sent more of the file than it announced")
            return True
        if announced_end is None:
            return not wanted_end
        return self._drained(response, announced_end - offset)

    def _drained(self, response: BaseHTTPResponse, left_bytes: int) -> bool:
        if left_bytes > DRAINED_BYTES:
            return False
        while left_bytes > 0:
            chunk = _next(response)
            if not chunk:
                return False
            left_bytes -= len(chunk)
        return True

    def _check(self) -> None:
        if self._is_cancel_requested:
            raise RequestCancelled


def _next(response: BaseHTTPResponse) -> bytes:
    """Return the available bytes, waiting for the first one; empty at the end."""
    return response.read1(CHUNK_BYTES, decode_content=False)


def _shutdown_socket(response: BaseHTTPResponse) -> None:
    try:
        response.shutdown()
    except (OSError, ValueError, RuntimeError, AttributeError):
        # The response is closed already, or its connection was returned to the pool: nobody reads.
        return


MAX_READ_BYTES = 256 * 1024 * 1024
"""Maximum that one ``read`` holds in memory; the longest safetensors headers are tens of MB."""


class Objects:
    """Reads objects. No key, cookie or other header of ours is sent to a URL's host.

    Redirects are followed (stores redirect between regions), but never from https to http.
    ``destinations`` decides which addresses may be connected to, by default only those of the public
    internet. Connects on the first read.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        retry: RetryPolicy | None = None,
        destinations: Destinations | None = None,
    ) -> None:
        self._destinations = destinations or Destinations()
        self._clock = clock or SystemClock()
        self._retry = retry or RetryPolicy()
        self._random = Random()
        self._connections: ConnectionPools | None = None
        self._is_closed = False

    async def read(self, url: str, *, start: int = 0, length: int) -> bytes:
        """Read ``length`` bytes from ``start``; fewer if the object ends earlier.

        Interrupted reads are retried. If a server ignores ranges, the object is read up to the last byte
        needed, and then the connection is closed. Raises UrlExpired if a fresh URL is needed, ValueError
        for a length over ``MAX_READ_BYTES``, and the other subclasses of RequestError.
        """
        if start < 0 or not 0 <= length <= MAX_READ_BYTES:
            raise ValueError(f"cannot read {length:,} bytes from byte {start:,} on")
        if not length:
            return b""
        read = partial(self._read_once, url, start, start + length)
        attempts = 1

        def count_attempt(_error: RequestError, _delay_s: float) -> None:
            nonlocal attempts
            attempts += 1

        try:
            return await retrying(
                read, self._retry, sleep=self._clock.sleep, random=self._random, on_wait=count_attempt
            )
        except RangeOutside:
            return b""
        except RequestError as error:
            error.attempts = attempts
            raise

    async def _read_once(self, url: str, start: int, end: int) -> bytes:
        content = bytearray()
        await self.fetch(url, start=start, end=end, on_chunk=lambda _offset, chunk: content.extend(chunk))
        return bytes(content)

    async def fetch(
        self,
        url: str,
        *,
        start: int = 0,
        end: int | None = None,
        on_chunk: OnChunk,
        on_head: OnHead | None = None,
    ) -> ObjectHead:
        """Send one request for the bytes ``start`` … ``end`` (exclusive) and pass them to ``on_chunk``.

        ``on_chunk(offset, piece)`` and ``on_head(head)`` are called in another thread, one call at a
        time, and never after this method has returned or was cancelled. Nothing is retried. Raises
        RequestError and its subclasses, and whatever the callbacks raise (an OSError must be wrapped).
        """
        if self._is_closed:
            raise RequestError("the client is closed", method="GET")
        exchange = RangeRequest(
            self._opened(), url, start, end, clock=self._clock, on_head=on_head or _ignore, on_chunk=on_chunk
        )
        loop = asyncio.get_running_loop()
        done: asyncio.Future[ObjectHead] = loop.create_future()

        def settle(head: ObjectHead | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            elif head is not None:
                done.set_result(head)

        def work() -> None:
            head: ObjectHead | None = None
            problem: BaseException | None = None
            try:
                head = exchange.run()
            except RequestCancelled:
                problem = RequestError("the read was cancelled", method="GET")
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits
                problem = error
            try:
                loop.call_soon_threadsafe(settle, head, problem)
            except RuntimeError:
                return  # The loop is closed, so nobody waits for the result.

        # A daemon thread that does not delay the end of the process: it may hang in a connect.
        threading.Thread(target=work, name="object", daemon=True).start()
        try:
            return await done
        except asyncio.CancelledError:
            exchange.cancel_request()
            raise

    async def aclose(self) -> None:
        """Close all connections; later reads are refused."""
        self._is_closed = True
        connections, self._connections = self._connections, None
        if connections is not None:
            connections.close()

    def _opened(self) -> ConnectionPools:
        if self._connections is None:
            # urllib3 takes a tenth of a second to import, so only readers import it.
            from api_client.transfers.object_connection import ConnectionPools

            self._connections = ConnectionPools(self._destinations)
        return self._connections


def _ignore(_head: ObjectHead) -> None:
    return None
