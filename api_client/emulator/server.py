"""The emulator's server process: it serves a world until it is stopped or its parent process ends.

There are two worlds: the demo (simulated jobs and a real one) and an empty workspace.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from api_client.clock import Clock, SystemClock
from api_client.emulator.app import build_app
from api_client.emulator.data_folder import (
    DataFolder,
    EmulatorAddress,
    EmulatorStartError,
    remove_tree,
    translating_errors,
)
from api_client.emulator.demo_job import upload_demo_job
from api_client.emulator.fleet.backend import FleetBackend
from api_client.emulator.fleet.clock import open_sim_clock
from api_client.emulator.fleet.world import DEMO_SCRIPT, DemoScript
from api_client.emulator.platform import Platform
from api_client.emulator.runner.backend import LocalBackend
from api_client.emulator.store.blobs import PRESIGNED_LIFETIME_S, Signer
from api_client.emulator.store.database import Database
from api_client.emulator.store.stores import Stores
from api_client.listening import ConnectionLimit

LOOPBACK = "127.0.0.1"
KEEP_ALIVE_S = 75.0
"""Time limit for the head of the next request, and for a client that stops reading a response.

Longer than the poll interval of any client, so that no poll is sent on a connection that is being closed.
"""


WORLDS = ("demo", "empty")
"""``demo``: simulated jobs of a whole team and one real job. ``empty``: only submitted jobs."""


async def create_demo_contents(platform: Platform) -> None:
    """Store a secret and start the real job the first time that a demo world is served.

    Later starts create neither, so that a deleted secret or job stays deleted.
    """
    team = platform.stores.teams.default()
    if not platform.stores.projects.was_named("digits", team.id):
        # The name that the official tools propose for a Hugging Face token.
        platform.stores.secrets.upsert(team, "hf_access_token", "of no use outside the demo", platform.now())
        project = platform.upsert_project("digits", team)
        await platform.create_job(project.id, upload_demo_job(platform.stores.blobs))


def create_world(
    kind: str,
    *,
    database: Database,
    data_dir: Path,
    signer: Signer,
    clock: Clock,
    speed: float,
    script: DemoScript | None = None,
) -> Platform:
    """Create the world of this kind from the data folder.

    ``speed`` applies to the simulated jobs; ``script`` replaces the jobs of the demo world.
    """
    stores = Stores(database, data_dir)
    team = stores.teams.ensure("Research", clock.now())
    simulated_backends = []
    if kind == "demo":
        sim_clock = open_sim_clock(database, now=clock.now(), speed=speed)
        fleet = FleetBackend(database, sim_clock=sim_clock, now=clock.now, script=script or DEMO_SCRIPT)
        for project in fleet.stored_projects(team.id):
            stores.projects.add(project)
        simulated_backends.append(fleet)
    return Platform(
        stores=stores,
        data_dir=data_dir,
        signer=signer,
        clock=clock,
        local=LocalBackend(stores, data_dir, clock),
        backends=simulated_backends,
        workspace_name={"demo": "Demo (emulator)", "empty": "Emulator"}[kind],
    )


@dataclass(frozen=True)
class EmulatorOptions:
    """Options of the server.

    ``port`` None means the default port, 0 any free port. ``lifeline_fd`` is the read end of a pipe whose
    write end only the parent holds: when it closes, however the parent ended, the emulator ends.
    ``is_ephemeral`` deletes the data folder on exit. ``url_lifetime_s`` is the lifetime of presigned URLs;
    ``script`` replaces the jobs of the demo world.
    """

    data_dir: Path
    port: int | None = None
    world: str = "demo"
    speed: float = 1.0
    key: str | None = None
    lifeline_fd: int | None = None
    is_ephemeral: bool = False
    url_lifetime_s: int = PRESIGNED_LIFETIME_S
    script: DemoScript | None = None


def serve(options: EmulatorOptions, *, on_ready: Callable[[EmulatorAddress], None] | None = None) -> None:
    """Serve in this process until SIGINT, SIGTERM, SIGHUP or the end of the lifeline.

    Raises ``EmulatorStartError`` if the folder or the port is in use.
    """
    folder = DataFolder(options.data_dir)
    try:
        with listen(8765 if options.port is None else options.port) as listener:
            _log_to_file(folder.log_path)
            asyncio.run(_serve(options, folder, listener, on_ready))
    finally:
        folder.close()
        if options.is_ephemeral:
            remove_tree(folder.path)


def listen(port: int) -> socket.socket:
    """Return a listening socket on loopback; raise ``EmulatorStartError`` if the port is in use.

    The protocol is explicitly TCP, because asyncio disables Nagle's algorithm only then. With Nagle's
    algorithm every response on a kept-alive connection waits 40 ms for the client's delayed acknowledgement.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen()
        return listener
    except OSError as error:
        listener.close()
        raise EmulatorStartError(f"cannot listen on {LOOPBACK}:{port}: {error.strerror}") from error


async def _serve(
    options: EmulatorOptions,
    folder: DataFolder,
    listener: socket.socket,
    on_ready: Callable[[EmulatorAddress], None] | None,
) -> None:
    with translating_errors(folder.path):
        key, signing_key = folder.api_key(options.key), folder.signing_key()
        database = Database(folder.database_path)
    with closing(database):
        with translating_errors(folder.path):
            platform = create_world(
                options.world,
                database=database,
                data_dir=folder.path,
                signer=Signer(signing_key, options.url_lifetime_s),
                clock=SystemClock(),
                speed=options.speed,
                script=options.script,
            )
        address = EmulatorAddress(
            url=f"http://{LOOPBACK}:{listener.getsockname()[1]}",
            key_file=str(folder.key_path),
            data_dir=str(folder.path),
            pid=os.getpid(),
        )

        def announce() -> None:
            folder.publish(address)
            if on_ready is not None:
                on_ready(address)

        server = EmulatorServer(build_app(platform, key=key), on_started=announce)
        with _stopping(server, options.lifeline_fd):
            try:
                with translating_errors(folder.path):
                    await platform.local.start()
                    if options.world == "demo":
                        await create_demo_contents(platform)
                await server.serve(sockets=[listener])
            finally:
                await platform.local.close()


class HeadTimedProtocol(H11Protocol):
    """uvicorn's protocol, but a request's whole head must arrive in time, not only its first byte."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def data_received(self, data: bytes) -> None:
        self.conn.receive_data(data)
        self.handle_events()  # stops the timer if the head is complete


class EmulatorServer(uvicorn.Server):
    """uvicorn with limited connections, without signal handling, and with a callback once it is listening."""

    def __init__(
        self, app: ASGIApp, *, on_started: Callable[[], None], keep_alive_s: float = KEEP_ALIVE_S
    ) -> None:
        self._limit = limit = ConnectionLimit(keep_alive_s)

        def protocol(**options: Any) -> asyncio.Protocol:
            return limit.protocol(HeadTimedProtocol(**options))

        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                # h11 passes on absolute-form targets, which ``RequestGuard`` needs
                http=cast(type[asyncio.Protocol], protocol),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level=logging.ERROR,  # not a line for each malformed request
                access_log=False,
                server_header=False,
                backlog=limit.connections,
                timeout_keep_alive=keep_alive_s,  # type: ignore[arg-type]  # seconds may be a fraction
                timeout_graceful_shutdown=1,
            )
        )
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._limit.handle_accept_errors(asyncio.get_running_loop())
        await super().startup(sockets=sockets)
        self._on_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to ``_stopping``, which also handles SIGHUP."""
        yield


@contextmanager
def _stopping(server: uvicorn.Server, lifeline_fd: int | None) -> Iterator[None]:
    """Stop the server on a signal or at the end of the lifeline, within the ``with`` block."""
    loop = asyncio.get_running_loop()
    # A shutdown that hangs is aborted after this long; the supervisors then end the jobs.
    deadline = threading.Timer(10.0, os._exit, args=(1,))
    deadline.daemon = True

    def request_exit() -> None:
        if not server.should_exit:
            server.should_exit = True
            deadline.start()

    def read_lifeline(descriptor: int) -> None:
        if not os.read(descriptor, 1024):
            loop.remove_reader(descriptor)
            request_exit()

    if threading.current_thread() is threading.main_thread():
        for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(signal_number, request_exit)
    if lifeline_fd is not None:
        loop.add_reader(lifeline_fd, read_lifeline, lifeline_fd)
    try:
        yield
    finally:
        deadline.cancel()


def _log_to_file(path: Path) -> None:
    """Log warnings and errors of this process to a file instead of the terminal.

    The file is opened now: when something has to be logged, there may be no free descriptor. A line that
    can't be written, such as on a full disk, is dropped.
    """
    with translating_errors(path.parent):
        handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.raiseExceptions = False
    logging.getLogger().addHandler(handler)
