"""textual-serve, guarded, with a page of ours and an end that waits for nobody."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from typing import Any

from aiohttp import WSMessage, WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.server import Server

from tui.outbox import sweep_abandoned
from tui.web.dashboards import PageDashboard
from tui.web.guard import Guard, add_headers
from tui.web.offers import Offers
from tui.web.page import SCRIPT, STYLE, page

TITLE = "bt-tui"
COLUMNS, ROWS = 80, 24
"""Of a page that does not say how large it is."""
MOST_CELLS = 2000
"""Columns or rows of the largest page."""
HEARTBEAT_S = 15.0
END_TIMEOUT_S = 3.0
"""How long requests have to end once the dashboards of all pages have."""


class DashboardServer(Server):
    """Serves one command's dashboard: a process of it for every page that is open."""

    def __init__(self, command: str, guard: Guard) -> None:
        super().__init__(command, title=TITLE)
        self._guard = guard
        self._dashboards: set[PageDashboard] = set()
        self._offers = Offers()

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard.middleware])
        app.on_response_prepare.append(add_headers)
        app.on_shutdown.append(self._end_dashboards)
        root = self._guard.root
        app.add_routes(
            [
                web.get(root, self.show_page),
                web.get(f"{root}page.css", self.show_style),
                web.get(f"{root}page.js", self.show_script),
                web.get(f"{root}ws", self.handle_websocket),
                web.get(f"{root}download/{{key}}", self.send_file),
                web.static(f"{root}static", self.statics_path),
            ]
        )
        return app

    async def show_page(self, request: web.Request) -> web.Response:
        """The page; its websocket is where the page itself was asked for, so that a tunnel may lead here."""
        websocket = f"{'wss' if request.secure else 'ws'}://{request.host}{self._guard.root}ws"
        text = page(self.title, websocket, request.query.get("fontsize"))
        return web.Response(text=text, content_type="text/html")

    async def show_style(self, _request: web.Request) -> web.Response:
        """The page's looks."""
        return web.Response(text=STYLE, content_type="text/css")

    async def show_script(self, _request: web.Request) -> web.Response:
        """What the page does about downloads."""
        return web.Response(text=SCRIPT, content_type="text/javascript")

    async def send_file(self, request: web.Request) -> web.StreamResponse:
        """A file that a dashboard offers to its page."""
        return self._offers.answer(request.match_info["key"])

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A page: its dashboard runs as long as the page is open, and has ended when this returns."""
        websocket = web.WebSocketResponse(heartbeat=HEARTBEAT_S)
        await websocket.prepare(request)
        dashboard = PageDashboard(
            self.command,
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=websocket.close,
            download_manager=self.download_manager,
            offers=self._offers,
        )
        self._dashboards.add(dashboard)
        try:
            await dashboard.start(_cells(request, "width", COLUMNS), _cells(request, "height", ROWS))
            await self._process_messages(websocket, dashboard)
        finally:
            await dashboard.stop()
            self._dashboards.discard(dashboard)
        return websocket

    async def _process_messages(self, websocket: web.WebSocketResponse, app_service: AppService) -> None:
        """Pass on what the page sends; textual-serve's own ends the dashboard on half a character."""
        async for message in websocket:
            match _envelope(message):
                case ["stdin", str(keys)]:
                    await app_service.send_bytes(keys.encode("utf-8", "ignore"))
                case ["resize", {"width": int(columns), "height": int(rows)}]:
                    await app_service.set_terminal_size(_sane(columns), _sane(rows))
                case ["ping", sent]:
                    await websocket.send_json(["pong", sent])
                case ["focus"]:
                    await app_service.focus()
                case ["blur"]:
                    await app_service.blur()

    async def _end_dashboards(self, _app: web.Application) -> None:
        await asyncio.gather(*(dashboard.stop() for dashboard in self._dashboards))

    async def run(self, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serve until ctrl-c or a signal to end; ``ready`` hears of the port once it listens.

        Raises OSError where it cannot listen.
        """
        _quieten()
        await asyncio.to_thread(sweep_abandoned)
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows: ctrl-c raises KeyboardInterrupt
                loop.add_signal_handler(number, over.set)
        runner = web.AppRunner(await self._make_app(), access_log=None, shutdown_timeout=END_TIMEOUT_S)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port)
            await site.start()
            ready(_port_of(runner))
            with redirect_stdout(
                sys.stderr
            ):  # where textual-serve says what a page's process said on its own
                await over.wait()
        finally:
            await runner.cleanup()


def _envelope(message: WSMessage) -> Any:
    with suppress(ValueError, RecursionError):
        return message.json() if message.type is WSMsgType.TEXT else None
    return None


def _cells(request: web.Request, name: str, otherwise: int) -> int:
    try:
        return _sane(int(request.query[name]))
    except (KeyError, ValueError):
        return otherwise


def _sane(cells: int) -> int:
    return min(max(1, cells), MOST_CELLS)


def _port_of(runner: web.AppRunner) -> int:
    address = runner.addresses[0]
    return int(address[1])


def host_names(host: str) -> set[str]:
    """The names by which a server that listens there may be asked for."""
    return {"localhost", host, socket.gethostname(), socket.getfqdn()}


def _quieten() -> None:
    """Say in a line what went wrong: tracebacks with the values of variables would show the environment."""
    logging.basicConfig(level=logging.WARNING, format="bt-tui: %(message)s")
