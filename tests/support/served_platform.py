"""Serve the emulator's routes on a real socket, over an in-memory backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from starlette.applications import Starlette

from api_client.emulator.app import build_app
from api_client.emulator.platform import Platform
from api_client.emulator.store.blobs import Signer
from api_client.emulator.store.database import Database
from api_client.emulator.store.stores import Stores
from support.fake_backend import START, FakeBackend
from support.faulty import KEY, FaultyServer
from support.log_server import FastClock

NOW = START + timedelta(hours=1)


@dataclass(frozen=True)
class Served:
    """A platform that answers at ``url``, with one project and its running job."""

    url: str
    platform: Platform
    backend: FakeBackend
    clock: FastClock
    app: Starlette
    project_id: str
    job_id: str
    key: str = KEY

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {KEY}"}

    @property
    def job_path(self) -> str:
        return f"/v1/training_projects/{self.project_id}/jobs/{self.job_id}"


def counting_bytes(start: int, end: int) -> bytes:
    """Byte ``n`` of every file is ``n`` modulo 251."""
    return bytes(offset % 251 for offset in range(start, end))


@contextmanager
def served_platform(server: FaultyServer, folder: Path) -> Iterator[Served]:
    """A fresh platform behind the server until the block ends."""
    backend = FakeBackend()
    clock = FastClock(begin_s=NOW.timestamp())
    database = Database(folder / "emulator.db")
    stores = Stores(database, folder)
    team = stores.teams.ensure("Research", clock.now())
    platform = Platform(
        stores=stores, data_dir=folder, signer=Signer(b"signing secret"), clock=clock, local=backend
    )
    project = platform.upsert_project("llama-sft", team)
    backend.add("job00001", project.id)
    before, app = server.app, build_app(platform, key=KEY)
    server.app = app
    yield Served(server.url, platform, backend, clock, app, project.id, "job00001")
    server.app = before
    database.close()
