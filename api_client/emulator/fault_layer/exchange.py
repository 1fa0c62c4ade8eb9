"""One request and its answer, to be passed on whole, halved, held up or broken off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api_client.emulator.fault_layer.connections import Connections
from api_client.emulator.fault_layer.rewriting import rewritten, shifted_query
from api_client.emulator.fault_layer.rules import Fault

CRUMBS = 20
"""Into so many pieces a slow body is cut."""


@dataclass(slots=True)
class Exchange:
    """What the server handed over for one request; ``date`` is the Date header of its answer."""

    connections: Connections
    scope: Scope
    receive: Receive
    server_send: Send
    date: str
    rewriting: Sequence[Fault] = ()
    is_dead: bool = False

    async def send(self, message: Message) -> None:
        """Send on, with the date; nothing any more once the connection was broken."""
        if self.is_dead:
            await asyncio.sleep(0)
            return
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["date"] = self.date
        await self.server_send(message)

    def skew(self, ahead_s: float) -> None:
        """Let the query be understood in the time of a clock that is ``ahead_s`` ahead."""
        self.scope = {**self.scope, "query_string": shifted_query(self.scope["query_string"], ahead_s)}

    async def answered(self, app: ASGIApp, send: Send | None = None) -> None:
        """Let the application answer into ``send`` (the wire unless given), rewritten if that is asked."""
        send = send or self.send
        if self.rewriting:
            start, body = await self._buffered(app)
            if _is_json(start):
                body = rewritten(body, self.rewriting)
            await _send_whole(send, start, body)
        else:
            await app(self.scope, self.receive, send)

    async def swallowed(self, app: ASGIApp) -> None:
        """Let the application do what is asked, and lose its answer."""

        async def lose(_message: Message) -> None:
            await asyncio.sleep(0)

        await app(self.scope, self.receive, lose)

    async def held_back(self, app: ASGIApp, wait: Callable[[], Awaitable[None]]) -> None:
        """Let the application do what is asked, wait, and then send its answer."""
        start, body = await self._buffered(app)
        await wait()
        await _send_whole(self.send, start, rewritten(body, self.rewriting) if _is_json(start) else body)

    async def halved(self, app: ASGIApp) -> None:
        """Send the first half of the answer as if it were the whole."""
        start, body = await self._buffered(app)
        await _send_whole(self.send, start, body[: len(body) // 2])

    async def interrupted(self, app: ASGIApp, interrupt: Callable[[], Awaitable[None]]) -> None:
        """Send half of the answer, then do something, then go on if the connection still stands."""
        left_bytes: int | None = None
        is_done = False

        async def send(message: Message) -> None:
            nonlocal left_bytes, is_done
            if message["type"] == "http.response.start":
                length = MutableHeaders(scope=message).get("content-length", "")
                left_bytes = int(length) // 2 if length.isdecimal() else None
            elif not is_done:
                body = message.get("body", b"")
                cut = len(body) // 2 if left_bytes is None else left_bytes
                if left_bytes is None or cut <= len(body):
                    is_done = True
                    await self.send({**message, "body": body[:cut], "more_body": True})
                    await self.connections.flushed(self.scope["client"])
                    await interrupt()
                    message = {**message, "body": body[cut:]}
                else:
                    left_bytes -= len(body)
            await self.send(message)

        await self.answered(app, send)

    async def in_crumbs(self, app: ASGIApp, lasting_s: float) -> None:
        """Send the answer in small pieces that take so long together."""
        total_bytes = 0

        async def send(message: Message) -> None:
            nonlocal total_bytes
            if message["type"] == "http.response.start":
                length = MutableHeaders(scope=message).get("content-length", "")
                total_bytes = int(length) if length.isdecimal() else 0
                await self.send(message)
                return
            body = message.get("body", b"")
            whole_bytes = max(total_bytes, len(body), 1)
            step_bytes = max(whole_bytes // CRUMBS, 1)
            for offset in range(0, len(body), step_bytes):
                piece = body[offset : offset + step_bytes]
                await asyncio.sleep(lasting_s * len(piece) / whole_bytes)
                await self.send({"type": "http.response.body", "body": piece, "more_body": True})
            await self.send({**message, "body": b""})

        await self.answered(app, send)

    async def break_off(self, *, orderly: bool) -> None:
        """Close the connection, or reset it, and wait until it is gone."""
        self.is_dead = True
        if orderly:
            self.connections.close(self.scope["client"])
        else:
            self.connections.reset(self.scope["client"])
        await self.until_hung_up()

    async def silence(self, seconds: float | None) -> None:
        """Say nothing for so long; for ever (None) means until the other side hangs up."""
        if seconds is not None:
            await asyncio.sleep(seconds)
            return
        await self.until_hung_up()
        self.is_dead = True

    async def until_hung_up(self) -> None:
        """Wait for the end of the connection."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def _buffered(self, app: ASGIApp) -> tuple[Message, bytes]:
        start: Message = {"type": "http.response.start", "status": 500, "headers": []}
        parts: list[bytes] = []

        async def keep(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
            else:
                parts.append(message.get("body", b""))

        await app(self.scope, self.receive, keep)
        return start, b"".join(parts)


async def _send_whole(send: Send, start: Message, body: bytes) -> None:
    headers = MutableHeaders(raw=[*start["headers"]])
    headers["content-length"] = str(len(body))
    await send({**start, "headers": headers.raw})
    await send({"type": "http.response.body", "body": body})


def _is_json(start: Message) -> bool:
    return "json" in MutableHeaders(raw=[*start["headers"]]).get("content-type", "")
