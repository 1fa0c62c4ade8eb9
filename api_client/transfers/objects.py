"""Read byte ranges of objects in threads; a read can be cancelled at any time."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from random import Random
from typing import Any

import httpx

from api_client.addresses import Destinations
from api_client.clock import Clock, SystemClock
from api_client.errors import InvalidAnswer, RedirectRefused, RequestError, Unreachable
from api_client.http.connection import user_agent
from api_client.http.retry import RetryPolicy, retrying
from api_client.transfers.connections import Connections, ObjectUrl, parse_object_url, redirected
from api_client.transfers.object_answers import (
    ObjectHead,
    RangeOutside,
    from_answer,
    from_break,
    range_outside,
    read_head,
)

CHUNK_BYTES = 512 * 1024  # maximum number of bytes taken from a connection at once
MAX_ERROR_BYTES = 65_536
MAX_REDIRECTS = 3
MAX_READ_BYTES = 256 * 1024 * 1024  # held in memory; the longest safetensors headers are tens of MB

OnHead = Callable[[ObjectHead], object]
OnChunk = Callable[[int, bytes], object]


class _Cancelled(Exception):
    """Nobody waits for the answer any more."""


@dataclass(slots=True)
class _RangeRequest:
    """A request for the bytes ``start`` … ``end`` (exclusive; None: to the object's end).

    ``on_head`` and ``on_chunk`` are called in the thread of ``run``, and never after ``cancel``.
    """

    connections: Connections
    url: ObjectUrl
    start: int
    end: int | None
    clock: Clock
    on_head: OnHead
    on_chunk: OnChunk
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _socket: socket.socket | None = None
    _is_cancelled: bool = False

    def cancel(self) -> None:
        """Cancel the request, from any thread."""
        with self._lock:
            self._is_cancelled = True
            if self._socket is not None:
                try:
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
                except OSError:
                    return  # it is closed already

    def run(self) -> ObjectHead:
        """Send the request and read the answer. Raises RequestError, _Cancelled and the callbacks' errors."""
        try:
            for _ in range(MAX_REDIRECTS + 1):
                head = self._exchange()
                if head is not None:
                    return head
        except (HTTPException, httpx.TransportError, OSError) as error:
            # An OSError raised by a callback (a full disk) must not get here: callbacks wrap theirs.
            if self._is_cancelled:
                raise _Cancelled from None
            raise from_break(error, self.url) from None
        raise RedirectRefused(f"{self.url.netloc} redirected more than {MAX_REDIRECTS} times", method="GET")

    def _exchange(self) -> ObjectHead | None:
        """Send one request; return None after a redirect."""
        self._check()
        url = self.url
        connection = self.connections.take(url)
        is_reusable = False
        try:
            with self._lock:
                self._socket = connection.sock
                self._check()
            with self._sent(connection) as response:
                if response.status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
                    head = self._head(response)
                    is_reusable = self._read(response, head) and not response.will_close
                    return head
                if HTTPStatus.MULTIPLE_CHOICES <= response.status < HTTPStatus.BAD_REQUEST:
                    self.url = redirected(url, response.headers.get("location"))
                    return None
                raise self._refusal(response)
        finally:
            with self._lock:
                self._socket = None
            if is_reusable:
                self.connections.give_back(url, connection)
            else:
                connection.close()

    def _sent(self, connection: HTTPConnection) -> HTTPResponse:
        headers = {
            "Host": self.url.netloc,
            "User-Agent": user_agent(),
            "Accept": "*/*",
            # Compressed bytes would be counted, placed and verified as if they were the object's.
            "Accept-Encoding": "identity",
        }
        if self.start or self.end is not None:
            last = "" if self.end is None else str(self.end - 1)
            headers["Range"] = f"bytes={self.start}-{last}"
        connection.request("GET", self.url.target, headers=headers)
        return connection.getresponse()

    def _refusal(self, response: HTTPResponse) -> RequestError:
        status = response.status
        if status < HTTPStatus.BAD_REQUEST:
            return InvalidAnswer(f"{self.url.netloc} returned {status} instead of a file")
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return range_outside(response.headers, self.url, self.start)
        try:
            content = response.read(MAX_ERROR_BYTES)
        except (HTTPException, OSError):
            content = b""
        return from_answer(status, response.headers, content, self.url, self.clock.now())

    def _head(self, response: HTTPResponse) -> ObjectHead:
        head = read_head(response.status, response.headers)
        if head is None:
            raise InvalidAnswer(f"{self.url.netloc} sent a different part of the file than it announced")
        if head.is_partial:
            asked_too_much = (
                self.end is not None and head.length is not None and head.start + head.length > self.end
            )
            if head.start != self.start or asked_too_much:
                raise InvalidAnswer(f"{self.url.netloc} sent a different part of the file than requested")
        with self._lock:
            self._check()
            self.on_head(head)
        return head

    def _read(self, response: HTTPResponse, head: ObjectHead) -> bool:
        """Pass on the requested bytes of the body. Returns True if the body was read to its end.

        If a server ignores ranges, the body begins earlier than requested, and what follows is not read.
        """
        offset = head.start
        announced_end = None if head.length is None else head.start + head.length
        while self.end is None or offset < self.end:
            chunk = response.read1(CHUNK_BYTES)
            if not chunk:
                break
            first = max(0, self.start - offset)
            last = len(chunk) if self.end is None else min(len(chunk), self.end - offset)
            with self._lock:
                self._check()
                if first < last:
                    self.on_chunk(offset + first, chunk if last - first == len(chunk) else chunk[first:last])
            offset += len(chunk)
        if announced_end is None:
            return False
        if offset < min(announced_end, self.end or announced_end):
            raise Unreachable(
                f"{self.url.netloc} closed the connection in the middle of the file", method="GET"
            )
        if offset < announced_end:
            return False
        if offset > announced_end or response.read1(1):
            # Without a Content-Length, only the body's end proves that the announced range was all.
            raise InvalidAnswer(f"{self.url.netloc} sent more of the file than it announced")
        return True

    def _check(self) -> None:
        if self._is_cancelled:
            raise _Cancelled


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
        self._clock = clock or SystemClock()
        self._retry = retry or RetryPolicy()
        self._random = Random()
        self._connections = Connections(destinations or Destinations())
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
        try:
            return await retrying(read, self._retry, sleep=self._clock.sleep, random=self._random)
        except RangeOutside:
            return b""

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
        on_head: OnHead = lambda _head: None,
    ) -> ObjectHead:
        """Send one request for the bytes ``start`` … ``end`` (exclusive) and pass them to ``on_chunk``.

        ``on_head(head)`` is called once, then ``on_chunk(offset, piece)`` for every piece, in order and
        only with requested bytes: in another thread, one call at a time, and never after this method has
        returned or was cancelled. Nothing is retried. Raises RequestError and its subclasses, and
        whatever the callbacks raise (an OSError must be wrapped).
        """
        if self._is_closed:
            raise RequestError("the client is closed", method="GET")
        request = _RangeRequest(
            self._connections, parse_object_url(url), start, end, self._clock, on_head, on_chunk
        )
        loop = asyncio.get_running_loop()
        done: asyncio.Future[ObjectHead] = loop.create_future()

        def work() -> None:
            try:
                head = request.run()
            except _Cancelled:
                return
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits
                _settle(loop, done, done.set_exception, error)
            else:
                _settle(loop, done, done.set_result, head)

        # A daemon thread that does not delay the end of the process: it may hang in a connect.
        threading.Thread(target=work, name="object", daemon=True).start()
        try:
            return await done
        except asyncio.CancelledError:
            request.cancel()
            raise

    async def aclose(self) -> None:
        """Close all connections; later reads are refused."""
        self._is_closed = True
        self._connections.close()


def _settle(
    loop: asyncio.AbstractEventLoop,
    done: asyncio.Future[ObjectHead],
    settle: Callable[[Any], object],
    value: object,
) -> None:
    def deliver() -> None:
        if not done.done():
            settle(value)

    try:
        loop.call_soon_threadsafe(deliver)
    except RuntimeError:
        return  # The loop is closed, so nobody waits for the result.
