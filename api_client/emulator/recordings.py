"""Serve recordings over the same API as everything else, as of the moment at which their clock stands.

A client needs no other way to a recording. What it lacks answers 404; every change is refused.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from mmap import mmap
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from api_client.emulator.answers import ApiFault, not_found
from api_client.emulator.app import api_app
from api_client.emulator.backend import LogQuery, StoredFile, default_step_s
from api_client.emulator.platform import Platform
from api_client.emulator.presign import Signer
from api_client.emulator.routes.calls import MS_PER_S, Call, read_log_query, served
from api_client.emulator.routes.files import READING_ROUTES
from api_client.emulator.routes.jobs import JOBS
from api_client.emulator.server import LOOPBACK, EmulatorServer, listen
from api_client.emulator.store.database import Database
from api_client.emulator.store.stores import StoredProject, Stores
from api_client.errors import NOT_RECORDED
from api_client.models import (
    CachedFile,
    Checkpoint,
    CheckpointFile,
    JobMetrics,
    LogRecord,
    QueueEvent,
    TrainingJob,
)
from api_client.models.logs import NS_PER_S, LogGap
from api_client.recordings.archive import DamagedMember, RecordingError
from api_client.recordings.playback import MEMORY_BYTES, Playback
from api_client.recordings.processes import start
from api_client.recordings.reading import CHECKPOINTS, Recording
from api_client.routes import JOB_LOGS, JOB_QUEUE


class RecordedJobs:
    """The jobs of some recordings, as they were at the time of the clock; implements ``JobRunner``."""

    def __init__(self, recordings: Sequence[Recording], clock: Playback) -> None:
        self._recordings = {recording.job.id: recording for recording in recordings}
        self._clock = clock

    def recording(self, job_id: str) -> Recording:
        return self._recordings[job_id]

    def owns(self, job_id: str) -> bool:
        return job_id in self._recordings

    def jobs(self) -> Sequence[TrainingJob]:
        return [recording.job_at(self._clock.now()) for recording in self._recordings.values()]

    def job(self, job_id: str) -> TrainingJob:
        return self._recordings[job_id].job_at(self._clock.now())

    def spec(self, job_id: str) -> Mapping[str, Any]:
        return {}

    def logs(self, job_id: str, query: LogQuery) -> list[LogRecord]:
        return self.log_page(job_id, query)[0]

    def log_page(self, job_id: str, query: LogQuery) -> tuple[list[LogRecord], list[LogGap]]:
        recording = self._recordings[job_id]
        now_ns = recording.now_ns(self._clock.now())
        return recording.log.select(
            query.start_ns,
            query.end_ns,
            now_ns=now_ns,
            limit=query.limit,
            newest_first=query.direction == "desc",
            levels=query.levels,
        )

    def log_is_complete(self, job_id: str) -> bool:
        return self._clock.now() >= self._recordings[job_id].until

    def metrics(
        self, job_id: str, *, start_s: float | None, end_s: float | None, step_s: int | None
    ) -> JobMetrics:
        """Return samples; without a range, the last hour or, of a finished job, the whole run."""
        recording, job = self._recordings[job_id], self.job(job_id)
        now_s, begin_s = self._clock.now().timestamp(), recording.begin.timestamp()
        end_s = now_s if end_s is None else min(end_s, now_s)
        if start_s is None:
            start_s = begin_s if job.is_finished else end_s - 3_600
        start_s = max(start_s, begin_s)
        step_s = step_s or default_step_s(max(end_s - start_s, 0.0))
        return recording.metrics.select(
            int(start_s * NS_PER_S), int(end_s * NS_PER_S), step_s=step_s, job=job
        )

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        checkpoints = self._recordings[job_id].checkpoints_at(self._clock.now())
        if checkpoints is None:
            if CHECKPOINTS in self._recordings[job_id].member_names():
                raise ApiFault(404, "NOT_FOUND", f"{CHECKPOINTS} can't be read")
            raise ApiFault(404, NOT_RECORDED, "the checkpoints were not recorded")
        return checkpoints

    def checkpoint_files(self, job_id: str) -> list[StoredFile]:
        recording = self._recordings[job_id]
        return [_stored(recording, file) for file in recording.files_at(self._clock.now())]

    def events(self, job_id: str) -> list[QueueEvent]:
        return self._recordings[job_id].events_at(self._clock.now())

    def cache_files(self, project_id: str) -> list[CachedFile] | None:
        return None

    async def _refuse(self, *_: object) -> NoReturn:
        _refuse()

    create = stop = recreate = delete = update = preempt = forget_project = _refuse

    async def start(self) -> None:
        """There is nothing to start."""

    async def close(self) -> None:
        """The caller closes the recordings."""


def _refuse(_: object = None) -> NoReturn:
    raise ApiFault(403, "READ_ONLY", "this is a recording: nothing in it can be changed")


def _not_recorded(request: Request) -> NoReturn:
    raise not_found("Recorded answer of", request.url.path)


def _stored(recording: Recording, file: CheckpointFile) -> StoredFile:
    def read(start: int, end: int) -> bytes:
        try:
            return recording.stored_file(file)[start:end]
        except DamagedMember as error:
            raise ApiFault(404, "NOT_FOUND", str(error)) from error

    size_bytes = recording.stored_size(file)
    return StoredFile(
        relative_name=file.relative_file_name,
        node_rank=file.node_rank,
        size_bytes=file.size_bytes if size_bytes is None else size_bytes,
        modified=file.last_modified,
        generate=None if size_bytes is None else read,
    )


def recording_app(
    recordings: Sequence[Recording], clock: Playback, database: Database, folder: Path, *, key: str
) -> Starlette:
    """Return the application; the projects are in the database, and nothing is written to the folder."""
    jobs = RecordedJobs(recordings, clock)
    stores = Stores(database, folder)
    for recording in recordings:
        project = recording.project
        team = stores.teams.ensure(project.team_name or "Recording", recording.begin)
        created, updated = project.created_at or recording.begin, project.updated_at or recording.begin
        stores.projects.add(StoredProject(project.id, project.name, team.id, created, updated))
    platform = Platform(
        stores=stores,
        data_dir=folder,
        signer=Signer(secrets.token_bytes(32)),
        clock=clock,
        local=jobs,
        workspace_name="Recording",
    )

    def logs(call: Call) -> Any:
        job_id = call.job.id
        is_complete = jobs.log_is_complete(job_id)
        lines, gaps = jobs.log_page(job_id, read_log_query(call.parameters, int(platform.now_s() * MS_PER_S)))
        page: dict[str, Any] = {"logs": lines, "gaps": gaps} if gaps else {"logs": lines}
        return page | {"complete": True} if is_complete else page

    def queue_context(call: Call) -> Any:
        job_id = call.path["job_id"]
        context = jobs.recording(job_id).queue_at(clock.now()) if jobs.owns(job_id) else None
        if context is None:
            raise not_found("Queue context of job", job_id)
        return context

    reads = {route: answer for route, answer in JOBS.items() if not route.is_change}
    routes = [
        *served(reads | {JOB_LOGS: logs, JOB_QUEUE: queue_context}),
        *READING_ROUTES,
        Route("/{path:path}", _refuse, methods=["POST", "PUT", "PATCH", "DELETE"]),
        Route("/{path:path}", _not_recorded),
    ]
    return api_app(platform, routes, key=key)


@dataclass(frozen=True)
class ServedRecordings:
    """Recordings that are served at ``url`` to whoever has ``key``, as of the time of ``clock``."""

    url: str
    key: str
    clock: Playback


@contextmanager
def serve_recordings(recordings: Sequence[Recording], clock: Playback) -> Iterator[ServedRecordings]:
    """Serve in a thread of this process until the block ends."""
    key, started = secrets.token_urlsafe(24), threading.Event()
    with tempfile.TemporaryDirectory(prefix="bt-tui-recording-") as folder, listen(0) as listener:
        database = Database(Path(folder, "recordings.db"))
        app = recording_app(recordings, clock, database, Path(folder), key=key)
        server = EmulatorServer(app, on_started=started.set)
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[listener])), name="recording", daemon=True
        )
        thread.start()
        started.wait(10.0)
        try:
            yield ServedRecordings(f"http://{LOOPBACK}:{listener.getsockname()[1]}", key, clock)
        finally:
            server.should_exit = True
            thread.join()
            database.close()


@contextmanager
def serve_in_process(
    recordings: Sequence[Recording], clock: Playback
) -> Iterator[Callable[[], ServedRecordings]]:
    """Serve in a process of its own until the block ends, because reading a long log stalls the dashboard.

    Returns what waits until it answers. Raises RecordingError then if it does not.
    """
    with tempfile.TemporaryFile() as file:
        file.truncate(MEMORY_BYTES)
        clock.share(mmap(file.fileno(), MEMORY_BYTES))
        process, connection = start(__name__, [file.fileno()])
        with process, connection:
            paths = [recording.path.absolute() for recording in recordings]
            connection.send((paths, clock.begin, clock.end, file.fileno()))

            def served() -> ServedRecordings:
                try:
                    url, key = connection.recv()
                except EOFError:
                    raise RecordingError("the server of the recording ended") from None
                return ServedRecordings(url, key, clock)

            yield served


def main(descriptor: int) -> None:
    with Connection(descriptor) as connection, ExitStack() as opened:
        paths, begin, until, memory = connection.recv()
        recordings = [opened.enter_context(Recording(path)) for path in paths]
        clock = Playback(begin, until, memory=mmap(memory, MEMORY_BYTES))
        served = opened.enter_context(serve_recordings(recordings, clock))
        connection.send((served.url, served.key))
        connection.poll(None)


if __name__ == "__main__":
    main(int(sys.argv[1]))
