"""Serve the emulator's routes on a real socket, over an in-memory backend."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from api_client.emulator.app import build_app
from api_client.emulator.platform import Platform
from api_client.emulator.presign import Signer
from api_client.emulator.server import EmulatorServer, listen
from api_client.emulator.store.database import Database
from api_client.emulator.store.stores import Stores
from support.fake_backend import START, FakeBackend

KEY = "the-emulators-key"
NOW = START + timedelta(hours=1)


class SetClock:
    """A clock that stands until it is set."""

    def __init__(self, now: datetime) -> None:
        self.moment = now

    def now(self) -> datetime:
        """The moment it was set to."""
        return self.moment

    def monotonic(self) -> float:
        """The same in seconds."""
        return self.moment.timestamp()

    async def sleep(self, seconds: float) -> None:
        """No time at all."""


@dataclass(frozen=True)
class Served:
    """A platform that answers at ``url``, with one project and its running job."""

    url: str
    platform: Platform
    backend: FakeBackend
    clock: SetClock
    project_id: str
    job_id: str

    @property
    def headers(self) -> dict[str, str]:
        """What a request must carry."""
        return {"Authorization": f"Bearer {KEY}"}

    @property
    def job_path(self) -> str:
        """The job's own path."""
        return f"/v1/training_projects/{self.project_id}/jobs/{self.job_id}"


def counting_bytes(start: int, end: int) -> bytes:
    """Byte ``n`` of every file is ``n`` modulo 251."""
    return bytes(offset % 251 for offset in range(start, end))


class Front:
    """One server for many tests: each puts its own application behind it."""

    def __init__(self) -> None:
        self.url = ""
        self.app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        assert self.app is not None
        await self.app(scope, receive, send)


@contextmanager
def answering_front() -> Iterator[Front]:
    """A real socket on a free port of loopback, served by a thread until the block ends."""
    front = Front()
    started = threading.Event()
    server = EmulatorServer(front, on_started=started.set)
    listener = listen(0)
    front.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        assert started.wait(10)
        yield front
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


@contextmanager
def served_platform(front: Front, folder: Path) -> Iterator[Served]:
    """A fresh platform behind the front until the block ends."""
    backend = FakeBackend()
    clock = SetClock(NOW)
    database = Database(folder / "emulator.db")
    stores = Stores.open(database, folder)
    team = stores.teams.ensure("Research", clock.now())
    platform = Platform(
        stores=stores,
        data_dir=folder,
        signer=Signer(b"signing secret"),
        clock=clock,
        local=backend,
    )
    project = platform.upsert_project("llama-sft", team)
    backend.add("job00001", project.id)
    front.app = build_app(platform, key=KEY)
    yield Served(front.url, platform, backend, clock, project.id, "job00001")
    database.close()
