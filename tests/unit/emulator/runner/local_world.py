"""A local runner in a temporary folder, and what tests ask of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from api_client.clock import SystemClock
from api_client.emulator.backend import LogQuery
from api_client.emulator.runner.backend import LocalBackend
from api_client.emulator.store.database import Database
from api_client.emulator.store.stores import StoredProject, Stores
from api_client.models import LogRecord, ProjectSummary, TrainingJob

PROJECT = ProjectSummary(id="proj1", name="digits")
OTHER = ProjectSummary(id="proj2", name="other")
FOREIGN = ProjectSummary(id="proj3", name="digits")
"""Another team's project of the same name as ours."""
CLOCK = SystemClock()
PATIENCE_S, POLL_EVERY_S = 30.0, 0.01
FAR_NS = 2**62


def job_spec(*commands: str, nodes: int = 1, **runtime: Any) -> dict[str, Any]:
    return {
        "image": {"base_image": "python:3.11"},
        "compute": {"node_count": nodes},
        "runtime": {"start_commands": list(commands), **runtime},
        "name": "a-job",
    }


class LocalWorld:
    """One data folder with a backend on it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.database = Database(folder / "emulator.db")
        self.stores = Stores(self.database, folder)
        self.now = CLOCK.now()
        self.team, elsewhere = (self.stores.teams.ensure(name, self.now) for name in ("ours", "theirs"))
        for project, team in ((PROJECT, self.team), (OTHER, self.team), (FOREIGN, elsewhere)):
            self.stores.projects.add(StoredProject(project.id, project.name, team.id, self.now, self.now))
        self.backend = LocalBackend(self.stores, folder, CLOCK, **options)

    def set_secret(self, name: str, value: str) -> None:
        self.stores.secrets.upsert(self.team, name, value, self.now)

    def upload(self, key: str, content: bytes) -> dict[str, str]:
        """Store an archive and return the artifact of a payload that refers to it."""
        with self.stores.blobs.receive("bucket", key) as incoming:
            incoming.write(content)
            incoming.commit()
        return {"s3_bucket": "bucket", "s3_key": key}

    async def create(self, job_id: str, spec: Mapping[str, Any]) -> TrainingJob:
        return await self.backend.create(job_id, PROJECT, spec)

    async def run(
        self, job_id: str, spec: Mapping[str, Any], project: ProjectSummary = PROJECT
    ) -> TrainingJob:
        await self.backend.create(job_id, project, spec)
        return await self.finished(job_id)

    async def finished(self, job_id: str) -> TrainingJob:
        await self.until(lambda: self.backend.job(job_id).is_finished)
        return self.backend.job(job_id)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await CLOCK.sleep(POLL_EVERY_S)

    async def said(self, job_id: str, text: str) -> None:
        await self.until(lambda: any(text in message for message in self.messages(job_id)))

    def records(self, job_id: str) -> list[LogRecord]:
        return self.backend.logs(job_id, LogQuery(0, FAR_NS, "asc", limit=1_000_000))

    def messages(self, job_id: str, replica: str | None = None) -> list[str]:
        """What the job itself said, the runner's own remarks left out."""
        return [
            record["message"]
            for record in self.records(job_id)
            if not record["message"].startswith("[emulator]") and replica in (None, record["replica"])
        ]

    def statuses(self, job_id: str) -> list[str]:
        return [event.status for event in self.backend.events(job_id)]


@asynccontextmanager
async def local_world(folder: Path, **options: Any) -> AsyncIterator[LocalWorld]:
    world = LocalWorld(folder, **options)
    await world.backend.start()
    try:
        yield world
    finally:
        await world.backend.close()
        world.database.close()


def living(marker: str) -> list[int]:
    """Processes other than this one whose command line holds the marker."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            named = process.pid != os.getpid() and marker in " ".join(process.cmdline())
            if named and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def holds(folder: Path, name: str) -> bool:
    return any(folder.rglob(name))
