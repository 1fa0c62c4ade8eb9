"""The web server of ``bt-tui serve``, and its page: Textual's terminal, nothing loaded from other sites.

Each open page has its own dashboard process, which is shut down when the page closes. Until then, the page
may download the files that its dashboard offers, each by an unguessable key.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import closing, redirect_stdout, suppress
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import WSMessage, WSMsgType, web
from aiohttp.http import HttpProcessingError
from textual_serve.app_service import AppService
from textual_serve.server import Server

from api_client.listening import ConnectionLimit
from tui.system.saved_files import delete_abandoned_outboxes
from tui.web.access import AccessGuard, add_headers

ASSETS_FOLDER = Path(__file__).parent
PAGE_TEMPLATE = (ASSETS_FOLDER / "page.html").read_text(encoding="utf-8")
DRIVER_NAME = "tui.web.driver:PageDriver"


class OfferedFile(NamedTuple):
    """A file on this machine, and its name in the browser (see ``tui.system.saved_files.safe_name``)."""

    path: Path
    save_as: str


class PageDashboard(AppService):
    """The dashboard process of one page; unlike in textual-serve, it is shut down in an orderly way.

    When the browser disconnects, textual-serve stops reading the output of the process, and does not wait
    for its end. The process would lose its pipes while it is cleaning up, or block forever on its output.
    """

    def __init__(self, command: str, **options: Any) -> None:
        super().__init__(command, **options)
        self.offered_files: dict[str, OfferedFile] = {}
        """Files that the page may download, by the unguessable key in their URL."""
        self._shutdown_task: asyncio.Task[None] | None = None

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        return {**super()._build_environment(width, height), "TEXTUAL_DRIVER": DRIVER_NAME}

    async def run(self) -> None:
        """Forward the output until the process has ended for any reason, then close the page."""
        assert self._process is not None
        try:
            await super().run()
        finally:
            if await self._process.wait() != 0:  # it was killed or crashed: delete its files
                await asyncio.to_thread(delete_abandoned_outboxes)
            with suppress(ConnectionError):
                await self.remote_close()

    async def on_data(self, payload: bytes) -> None:
        with suppress(ConnectionError):  # the browser is gone; the output must still be read
            await super().on_data(payload)

    async def on_meta(self, data: bytes) -> None:
        message = json.loads(data)
        with suppress(ConnectionError):
            if message["type"] == "file_offered":
                self.offered_files[message["key"]] = OfferedFile(Path(message["file"]), message["save_as"])
                # textual-serve's own message to the page, which then follows a link to the file
                await self.remote_write_str(json.dumps(["deliver_file_start", message["key"]]))
            else:
                await super().on_meta(data)

    async def stop(self) -> None:
        """End the process and wait for it; safe to call repeatedly and to cancel."""
        if self._process is None:
            return
        if self._shutdown_task is None:
            self._shutdown_task = asyncio.create_task(self._shut_down(self._process))
        await asyncio.shield(self._shutdown_task)

    async def _shut_down(self, process: Process) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(10.0):  # the process closes its session and deletes outgoing files
                with suppress(ConnectionError):  # the process has ended by itself
                    await self.send_meta({"type": "quit"})
                await process.wait()
        for send_signal in (process.terminate, process.kill):
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    send_signal()
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), 3.0)
        if self._task is not None:
            await asyncio.wait([self._task])  # wait even if reading failed
            self._task = None


IDLE_TIMEOUT_S = 75.0
"""Seconds to wait for the headers of a request, and for a client that reads nothing of a response."""


class DashboardServer(Server):
    """Serves the page; each open page runs ``command``, the dashboard, in a process of its own."""

    def __init__(self, command: str, guard: AccessGuard) -> None:
        super().__init__(command, title="bt-tui")
        self._guard = guard
        self._dashboards: set[PageDashboard] = set()

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard.middleware])
        app.on_response_prepare.append(add_headers)
        app.on_shutdown.append(self._end_dashboards)
        root = self._guard.root
        app.add_routes(
            [
                web.get(root, self.show_page),
                web.get(f"{root}{{name:page[.](css|js)}}", self.send_asset),
                web.get(f"{root}ws", self.handle_websocket),
                web.get(f"{root}download/{{key}}", self.send_file),
                web.static(f"{root}static", self.statics_path),
            ]
        )
        return app

    async def show_page(self, request: web.Request) -> web.Response:
        """Serve the page; its websocket uses the requested host, so that tunnels work."""
        websocket = f"{'wss' if request.secure else 'ws'}://{request.host}{self._guard.root}ws"
        text = PAGE_TEMPLATE.format(title=escape(self.title), websocket=escape(websocket, quote=True))
        return web.Response(text=text, content_type="text/html")

    async def send_asset(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse(ASSETS_FOLDER / request.match_info["name"])

    async def send_file(self, request: web.Request) -> web.StreamResponse:
        """Send a file, or the requested range, that the dashboard of an open page offers."""
        key = request.match_info["key"]
        offer = next(
            (
                dashboard.offered_files[key]
                for dashboard in self._dashboards
                if key in dashboard.offered_files
            ),
            None,
        )
        if offer is None:
            raise web.HTTPNotFound(text="This file is no longer available; save it again.\n")
        disposition = {"Content-Disposition": f'attachment; filename="{offer.save_as}"'}
        return web.FileResponse(
            offer.path, headers={"Content-Type": "application/octet-stream", **disposition}
        )

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a page's dashboard while the page is open; return once the process has ended."""
        websocket = web.WebSocketResponse(heartbeat=15.0)
        await websocket.prepare(request)
        dashboard = PageDashboard(
            self.command,
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=websocket.close,
            download_manager=self.download_manager,
        )
        self._dashboards.add(dashboard)
        try:
            # The size is a query parameter, which may be missing.
            await dashboard.start(
                _requested_cells(request, "width", 80), _requested_cells(request, "height", 24)
            )
            await self._process_messages(websocket, dashboard)
        finally:
            await dashboard.stop()
            self._dashboards.discard(dashboard)
        return websocket

    async def _process_messages(self, websocket: web.WebSocketResponse, app_service: AppService) -> None:
        """Forward the page's input; textual-serve's version fails on a lone surrogate."""
        async for message in websocket:
            match _decoded_message(message):
                case ["stdin", str(keys)]:
                    await app_service.send_bytes(keys.encode("utf-8", "ignore"))
                case ["resize", {"width": int(columns), "height": int(rows)}]:
                    await app_service.set_terminal_size(_clamped_cells(columns), _clamped_cells(rows))
                case ["ping", sent]:
                    await websocket.send_json(["pong", sent])
                case ["focus"]:
                    await app_service.focus()
                case ["blur"]:
                    await app_service.blur()

    async def _end_dashboards(self, _app: web.Application) -> None:
        await asyncio.gather(*(dashboard.stop() for dashboard in self._dashboards))

    async def run(self, host: str, port: int, on_listening: Callable[[int], None]) -> None:
        """Serve until ctrl-c or SIGTERM; call ``on_listening`` with the port once listening.

        Raises OSError if the address is not available.
        """
        _configure_logging()
        await asyncio.to_thread(delete_abandoned_outboxes)
        stop_requested = asyncio.Event()
        loop = asyncio.get_running_loop()
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signal_number, stop_requested.set)
        limit = ConnectionLimit(IDLE_TIMEOUT_S)
        limit.handle_accept_errors(loop)
        runner = web.AppRunner(
            await self._make_app(),
            access_log=None,
            keepalive_timeout=IDLE_TIMEOUT_S,
            shutdown_timeout=3.0,
        )
        await runner.setup()
        assert runner.server is not None
        make_protocol = runner.server
        try:
            listener = await loop.create_server(
                lambda: limit.protocol(make_protocol()), host, port, backlog=limit.connections
            )
            with closing(listener):
                on_listening(int(listener.sockets[0].getsockname()[1]))
                with redirect_stdout(sys.stderr):  # textual-serve prints the process's own output to stdout
                    await stop_requested.wait()
        finally:
            await runner.cleanup()


def _decoded_message(message: WSMessage) -> Any:
    with suppress(ValueError, RecursionError):
        return message.json() if message.type is WSMsgType.TEXT else None
    return None


def _requested_cells(request: web.Request, name: str, default: int) -> int:
    try:
        return _clamped_cells(int(request.query[name]))
    except (KeyError, ValueError):
        return default


def _clamped_cells(cells: int) -> int:
    return min(max(1, cells), 2000)


def host_names(host: str) -> set[str]:
    return {"localhost", host, socket.gethostname(), socket.getfqdn()}


def _configure_logging() -> None:
    """Log each error on one line: a traceback with the values of variables would expose the environment."""
    logging.basicConfig(level=logging.WARNING, format="bt-tui: %(message)s")
    logging.getLogger("aiohttp.server").addFilter(_should_log)


def _should_log(record: logging.LogRecord) -> bool:
    """Return False for malformed requests: anyone who can connect could flood the log with them."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)
