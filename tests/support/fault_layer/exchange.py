"""A request under faults: its answer is replaced, rewritten, delayed, cut off, or its connection is reset."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from api_client.emulator.responses import JsonResponse
from support.fault_layer.specification import Fault

PAGE = b"<!doctype html><html><head><title>Gateway</title></head><body><h1>Please stand by</h1></body></html>"
NONSENSE = b'{"training_jobs": [{"id": "j1", "current_status": }], NaN;'
ELSEWHERE = "http://elsewhere.invalid/"


def canned_response(fault: Fault, *, number: int, now: datetime) -> Response:
    """Return the answer for a fault that replaces the real one; ``number`` becomes part of the request id."""
    headers = {"x-request-id": f"fault-{number}"}
    if not fault.is_status:
        if fault.kind == "redirect":
            return Response(status_code=307, headers={**headers, "location": fault.text or ELSEWHERE})
        body = {"html": PAGE, "malformed": NONSENSE, "empty": b""}[fault.kind]
        kind = "text/html" if fault.kind == "html" else "application/json"
        return Response(body, media_type=kind, headers=headers)
    status = int(fault.kind)
    if "retry-after" in fault.options:
        headers["retry-after"] = fault.options["retry-after"]
    if "retry-date" in fault.options:
        later = now + timedelta(seconds=float(fault.options["retry-date"]))
        headers["retry-after"] = format_datetime(later, usegmt=True)
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    if "html" in fault.options:
        return Response(PAGE, status_code=status, media_type="text/html", headers=headers)
    content = {"code": HTTPStatus(status).name, "message": f"injected fault: {status}"}
    return JsonResponse(content, status_code=status, headers=headers)


UNKNOWN_VALUE = "FROM_A_LATER_VERSION"
UNKNOWN_FIELDS = {"x_later_version": {"deep": [1, None, {"more": "😀"}]}}
OPEN_VALUES = {
    "auth_provider", "availability_model", "checkpoint_sync_status", "level", "session_provider",
    "sync_status", "trigger",
}  # fmt: skip
"""Fields that hold one value of an enumeration that may grow."""
OPTIONAL = {
    "auth_code_generated_at", "authenticated_at", "email", "error_message", "event_message", "exit_code",
    "expires_at", "min_gpus", "node_count", "org_capacity", "pending_seconds", "priority", "released_at",
    "request_id", "target_job_name", "team_capacity", "training_job_name", "tunnel_name", "user",
    "working_directory",
}  # fmt: skip
"""Answer fields that the published schema does not require."""

_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH_NS = re.compile(r"\d{19}", re.ASCII)
_EPOCH_FIELDS = ("start_epoch_millis", "end_epoch_millis")
_NS_PER_S = 1_000_000_000


def rewritten(body: bytes, faults: Sequence[Fault]) -> bytes:
    """Apply the faults to a JSON body; return any other body unchanged."""
    try:
        value = json.loads(body)
    except ValueError:
        return body
    for fault in faults:
        change = partial(_shifted, fault.seconds or 0.0) if fault.kind == "skew" else CHANGES[fault.kind]
        value = _mapped(value, "", change)
    return bytes(JsonResponse(value).body)


def shifted_query(query: bytes, ahead_s: float) -> bytes:
    """Translate the times in a query from a clock that is ``ahead_s`` seconds ahead to the true time."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    moved = [
        (name, int(text) - int(ahead_s * 1000) if name in _EPOCH_FIELDS and text.isdecimal() else text)
        for name, text in pairs
    ]
    return urlencode(moved).encode("latin-1")


def _mapped(value: Any, name: str, change: Callable[[Any, str], Any]) -> Any:
    """Rebuild a value from its innermost parts; ``change`` gets each of them and its name in an object."""
    if isinstance(value, dict):
        value = {key: _mapped(item, key, change) for key, item in value.items()}
    elif isinstance(value, list):
        value = [_mapped(item, "", change) for item in value]
    return change(value, name)


def _drifted(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key not in OPTIONAL}
        # GPU series are keyed by number, so an unknown key there would not simulate a new field.
        return kept if kept and all(key.isdecimal() for key in kept) else {**UNKNOWN_FIELDS, **kept}
    if isinstance(value, list):
        return value or None
    return UNKNOWN_VALUE if isinstance(value, str) and name in OPEN_VALUES else value


def _shifted(ahead_s: float, value: Any, _name: str) -> Any:
    if isinstance(value, str) and _ISO.fullmatch(value):
        return (datetime.fromisoformat(value) + timedelta(seconds=ahead_s)).isoformat()
    if isinstance(value, str) and _EPOCH_NS.fullmatch(value):
        return str(int(value) + int(ahead_s * _NS_PER_S))
    return value


CHANGES: dict[str, Callable[[Any, str], Any]] = {
    "drift": _drifted,
    "nulls": lambda value, _name: None if isinstance(value, list) else value,
    "statuses": lambda value, name: UNKNOWN_VALUE if name == "current_status" else value,
}


LINGER_OFF = struct.pack("ii", 1, 0)
"""SO_LINGER with a timeout of zero: closing sends RST instead of FIN."""

FLUSH_POLL_S = 0.005
Interrupt = Callable[[], Awaitable[None]]


class OpenConnections:
    """The open connections of a server, keyed by the peer's address (``scope["client"]``)."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], asyncio.Transport] = {}

    def protocol(self) -> type[H11Protocol]:
        """Return the protocol class for uvicorn (``Config(http=…)``) that registers connections here."""
        registry = self._open

        class Kept(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                if self.client is not None:
                    registry[self.client] = transport

            def connection_lost(self, exc: Exception | None) -> None:
                # The port may have been reused by a newer connection.
                if self.client is not None and registry.get(self.client) is self.transport:
                    del registry[self.client]
                super().connection_lost(exc)

        return Kept

    def reset(self, client: Any) -> None:
        if transport := self._open.get(tuple(client or ())):
            _reset(transport)

    def reset_all(self) -> None:
        for transport in list(self._open.values()):
            _reset(transport)

    def close(self, client: Any) -> None:
        """Close the client's connection with FIN, even if the answer is incomplete."""
        if transport := self._open.get(tuple(client or ())):
            transport.close()

    async def flushed(self, client: Any) -> None:
        """Wait until everything written to the client's connection has been sent."""
        transport = self._open.get(tuple(client or ()))
        # Transports have no event for an empty write buffer, so poll.
        while transport and not transport.is_closing() and transport.get_write_buffer_size():  # noqa: ASYNC110
            await asyncio.sleep(FLUSH_POLL_S)


def _reset(transport: asyncio.Transport) -> None:
    own = transport.get_extra_info("socket")
    if own is not None and not transport.is_closing():
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_OFF)
    transport.abort()


@dataclass(slots=True)
class FaultyExchange:
    """Everything the server passed in for one request; ``date`` is the Date header of the answer."""

    connections: OpenConnections
    scope: Scope
    receive: Receive
    server_send: Send
    date: str
    rewriting: Sequence[Fault] = ()
    is_dead: bool = False

    async def send(self, message: Message) -> None:
        """Send a message with the date header; drop it if the connection has been broken."""
        if self.is_dead:
            await asyncio.sleep(0)
            return
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["date"] = self.date
        await self.server_send(message)

    def skew(self, ahead_s: float) -> None:
        """Interpret the times in the query by a clock that is ``ahead_s`` seconds ahead."""
        self.scope = {**self.scope, "query_string": shifted_query(self.scope["query_string"], ahead_s)}

    async def answered(self, app: ASGIApp) -> None:
        """Let the application answer, with rewriting faults applied."""
        if self.rewriting:
            await self.send_parts(*await self.handled(app))
        else:
            await app(self.scope, self.receive, self.send)

    async def handled(self, app: ASGIApp) -> tuple[Message, bytes]:
        """The start and the body of the application's answer, with rewriting faults applied, not sent yet."""
        start: Message = {"type": "http.response.start", "status": 500, "headers": []}
        parts: list[bytes] = []

        async def keep(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
            else:
                parts.append(message.get("body", b""))

        await app(self.scope, self.receive, keep)
        body = b"".join(parts)
        is_json = "json" in MutableHeaders(raw=[*start["headers"]]).get("content-type", "")
        return start, rewritten(body, self.rewriting) if self.rewriting and is_json else body

    async def send_parts(
        self, start: Message, body: bytes, count: int = 1, between: Interrupt | None = None
    ) -> None:
        """Send the body in so many parts; await ``between`` when one has gone out and another is left."""
        headers = MutableHeaders(raw=[*start["headers"]])
        if self.scope["method"] != "HEAD":
            headers["content-length"] = str(len(body))
        await self.send({**start, "headers": headers.raw})
        for number in range(count):
            if number and between is not None:
                await self.connections.flushed(self.scope["client"])
                await between()
            part = body[number * len(body) // count : (number + 1) * len(body) // count]
            is_last = number == count - 1
            await self.send({"type": "http.response.body", "body": part, "more_body": not is_last})

    async def drop_connection(self, *, orderly: bool) -> None:
        """Close the connection (``orderly``) or reset it, and wait until it is gone."""
        self.is_dead = True
        (self.connections.close if orderly else self.connections.reset)(self.scope["client"])
        await self.wait_until_disconnected()

    async def silence(self, seconds: float | None) -> None:
        """Stay silent for some seconds; None means until the client disconnects."""
        if seconds is not None:
            await asyncio.sleep(seconds)
            return
        await self.wait_until_disconnected()
        self.is_dead = True

    async def wait_until_disconnected(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
