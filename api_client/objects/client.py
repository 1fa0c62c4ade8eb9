"""Objects behind presigned URLs, for code on the event loop."""

from __future__ import annotations

import asyncio
import threading
from random import Random
from typing import TYPE_CHECKING

from api_client.clock import Clock, SystemClock
from api_client.destinations import Destinations
from api_client.errors import RequestError
from api_client.http.retry import RetryPolicy
from api_client.objects.answer import ObjectHead

if TYPE_CHECKING:
    from api_client.objects.connection import Connections
    from api_client.objects.exchange import OnChunk, OnHead

MAX_READ_BYTES = 256 * 1024 * 1024
"""Most that one ``read`` holds in memory; the longest safetensors headers are of some ten MB."""


class Objects:
    """Reads objects. No key, cookie or other header of ours goes to where a URL leads.

    Redirects are followed (stores redirect between regions), but never from https to http. ``destinations``
    says which addresses may be connected to, unless told only those of the public internet. Connects with
    the first reading.
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
        self._connections: Connections | None = None
        self._is_closed = False

    async def read(self, url: str, *, start: int = 0, length: int) -> bytes:
        """The ``length`` bytes from ``start`` on; fewer if the object ends before.

        A cut is tried again. Servers that ignore ranges are read up to the last byte that is needed, and
        hung up on. Raises UrlExpired when a fresh URL is needed, ValueError for a length over
        ``MAX_READ_BYTES``, and the other kinds of RequestError.
        """
        if start < 0 or not 0 <= length <= MAX_READ_BYTES:
            raise ValueError(f"cannot read {length:,} bytes from byte {start:,} on")
        if not length:
            return b""
        from api_client.objects.failures import RangeOutside

        attempt = 0
        while True:
            attempt += 1
            failure: RequestError
            try:
                return await self._read_once(url, start, start + length)
            except RangeOutside:
                return b""
            except RequestError as error:
                failure = error
            delay_s = self._retry.delay_s(
                failure, attempt=attempt, idempotent=True, arrived=True, random=self._random
            )
            if delay_s is None:
                failure.attempts = attempt
                raise failure
            await self._clock.sleep(delay_s)

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
        """One request for the bytes ``start`` … ``end`` (exclusive), handed to ``on_chunk`` as they come.

        ``on_chunk(offset, piece)`` and ``on_head(head)`` are called in another thread, one call at a time,
        and never after this has ended or was cancelled. Nothing is tried again. Raises RequestError and
        its kinds, and whatever the two raise (an OSError must be wrapped).
        """
        from api_client.objects.exchange import CalledOff, Exchange

        if self._is_closed:
            raise RequestError("the client is closed", method="GET")
        exchange = Exchange(
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
            except CalledOff:
                problem = RequestError("the reading was called off", method="GET")
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits
                problem = error
            try:
                loop.call_soon_threadsafe(settle, head, problem)
            except RuntimeError:
                return  # The loop is gone, and with it whoever waited.

        # A thread of its own, which the end of the process does not wait for: it may hang in a connect.
        threading.Thread(target=work, name="object", daemon=True).start()
        try:
            return await done
        except asyncio.CancelledError:
            exchange.call_off()
            raise

    async def aclose(self) -> None:
        """Close all connections; readings are refused from then on."""
        self._is_closed = True
        connections, self._connections = self._connections, None
        if connections is not None:
            connections.close()

    def _opened(self) -> Connections:
        if self._connections is None:
            # urllib3 takes a tenth of a second to load: only for those who read.
            from api_client.objects.connection import Connections

            self._connections = Connections(self._destinations)
        return self._connections


def _ignore(_head: ObjectHead) -> None:
    return None
