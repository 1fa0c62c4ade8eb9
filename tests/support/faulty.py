"""Serve any ASGI application on a real socket, behind the fault layer, in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from api_client.emulator.server import EmulatorServer, listen
from support.fault_layer import Fault, FaultLayer, parse_faults

KEY = "the-key-of-the-faulty-server"
START_LIMIT_S = 20


class FaultyServer:
    """One socket for many tests: each sets ``app`` and the faults, and looks at what was asked."""

    def __init__(self) -> None:
        self.key = KEY
        self.app: ASGIApp | None = None
        self.layer = FaultLayer(self._pass_on)
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environ(self) -> dict[str, str]:
        """The variables that lead a client here."""
        urls = dict.fromkeys(("BASETEN_REMOTE_URL", "BASETEN_MANAGEMENT_API_URL_OVERRIDE"), self.url)
        return {"BASETEN_API_KEY": self.key, **urls}

    def set_faults(self, text: str = "") -> None:
        """These faults from now on, none of the old ones; what was asked before is forgotten."""
        self.layer.set_rules(parse_faults(text))

    def handled(self, method: str = "", path_part: str = "") -> int:
        return sum(
            asked.was_handled
            for asked in self.layer.asked
            if asked.method.startswith(method) and path_part in asked.path
        )

    def struck(self) -> list[Fault]:
        return [fault for asked in self.layer.asked for fault in asked.faults]

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.app is not None
        await self.app(scope, receive, send)


@contextmanager
def faulty_server(app: ASGIApp | None = None) -> Iterator[FaultyServer]:
    """A server on a free port of loopback until the block ends."""
    faulty = FaultyServer()
    faulty.app = app
    started = threading.Event()
    server = EmulatorServer(faulty.layer, on_started=started.set)
    server.config.http = faulty.layer.connections.protocol()
    server.config.date_header = False
    with listen(0) as listener:
        faulty.port = listener.getsockname()[1]
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            assert started.wait(START_LIMIT_S)
            yield faulty
        finally:
            server.should_exit = True
            thread.join(START_LIMIT_S)
    assert not thread.is_alive()
