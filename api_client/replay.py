"""Answer a client's requests from recordings, in this process, as of the time of a clock.

The transport passes requests to ``Replay.answer`` instead of sending them. Requests for data that a recording
lacks raise NotFound.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from api_client import routes
from api_client.clock import epoch_ms
from api_client.errors import NOT_RECORDED, NotFound, UrlExpired
from api_client.models import CheckpointFile, JobMetrics, LogRecord, LogsPage, TrainingJob, TrainingProject
from api_client.models.logs import LEVELS, NS_PER_MS, LogLine
from api_client.recordings.archive import DamagedMember
from api_client.recordings.playback import Playback
from api_client.recordings.reading import CHECKPOINTS, Recording, file_member
from api_client.remotes import Remote
from api_client.routes import Route
from api_client.transfers.objects import ObjectResponse, Objects, RangeNotSatisfiable

URL = "https://recording.invalid"
"""Address of the remote and of the recorded files. The name never resolves, and no request is sent there."""

RequestValues = Mapping[str, Any]
"""The query or the body of a request."""


class _Missing(Exception):
    """A recording lacks the requested data; the message names it."""

    def __init__(self, message: str, code: str = "NOT_FOUND") -> None:
        super().__init__(message)
        self.code = code


class Replay:
    """Serves the jobs of some recordings as they were at the time of the clock."""

    def __init__(self, recordings: Sequence[Recording], clock: Playback) -> None:
        self.clock = clock
        self._recordings = {recording.job.id: recording for recording in recordings}
        self._files: dict[str, tuple[Recording, CheckpointFile]] = {}
        handlers: dict[Route[Any], Callable[..., Any]] = {
            routes.PROJECTS: self._projects,
            routes.PROJECT: lambda _, project_id: {"training_project": self._project(project_id)},
            routes.JOBS: lambda _, project_id: {"training_jobs": self._jobs(project_id=project_id)},
            routes.SEARCH_JOBS: self._search,
            routes.JOB: lambda _, *ids: {"training_job": self._job(self._recording(*ids))},
            routes.JOB_QUEUE: self._queue,
            routes.JOB_METRICS: self._metrics,
            routes.CHECKPOINTS: self._checkpoints,
            routes.CHECKPOINT_FILES: self._checkpoint_files,
        }
        self._handlers = {(route.method, route.path): handler for route, handler in handlers.items()}

    @property
    def remote(self) -> Remote:
        """The remote to create the client with."""
        paths = [str(recording.path) for recording in self._recordings.values()]
        origin = f"the recording {', '.join(paths)}"
        return Remote(
            name=next(iter(self._recordings.values())).name,
            app_url=URL,
            api_url=URL,
            key=None,
            key_origin=origin,
            app_url_origin=origin,
            api_url_origin=origin,
            options=None,
        )

    @property
    def objects(self) -> Objects:
        """Reads recorded files by the URLs that ``answer`` has listed."""
        return _RecordedObjects(self._files, self.clock)

    async def answer(self, route: Route[Any], ids: Sequence[str], values: RequestValues) -> Any:
        """Return the response to a request. Raises NotFound."""
        try:
            # In a thread, because it reads, decompresses and parses parts of the log and of the metrics.
            return await asyncio.to_thread(self._answer, route, ids, values)
        except _Missing as missing:
            names = ", ".join(recording.path.name for recording in self._recordings.values())
            raise NotFound(
                f"can't {route.words(*ids)}: {names}: {missing}",
                status=404,
                code=missing.code,
                server_message=str(missing),
                method=route.method,
                path=route.path_of(*ids),
            ) from None

    def _answer(self, route: Route[Any], ids: Sequence[str], values: RequestValues) -> Any:
        if route is routes.JOB_LOGS:
            return self._logs(values, *ids)
        handler = self._handlers.get((route.method, route.path))
        if handler is None:
            raise _Missing("this is not recorded")
        return route.adapter.validate_python(handler(values, *ids))

    def _recording(self, project_id: str, job_id: str) -> Recording:
        recording = self._recordings.get(job_id)
        if recording is None or recording.project.id != project_id:
            raise _Missing(f"it has no job {job_id!r} in the project {project_id!r}")
        return recording

    def _job(self, recording: Recording) -> TrainingJob:
        return recording.job_at(self.clock.now())

    def _jobs(self, project_id: str | None = None) -> list[TrainingJob]:
        """Return the jobs, the newest first."""
        newest_first = sorted(
            self._recordings.values(), key=lambda item: (item.begin, item.job.id), reverse=True
        )
        return [self._job(item) for item in newest_first if project_id in (None, item.project.id)]

    def _search(self, values: RequestValues) -> Any:
        statuses = values.get("statuses")
        jobs = [
            job
            for job in self._jobs(values.get("project_id"))
            if values.get("job_id") in (None, job.id) and (not statuses or job.current_status in statuses)
        ]
        return {"training_jobs": jobs}

    def _projects(self, _values: RequestValues) -> Any:
        ids = dict.fromkeys(job.project_id for job in self._jobs())
        return {"training_projects": [self._project(project_id) for project_id in ids]}

    def _project(self, project_id: str) -> TrainingProject:
        jobs = self._jobs(project_id)
        if not jobs:
            raise _Missing(f"it has no project {project_id!r}")
        newest = self._recordings[jobs[0].id]
        times = [newest.project.updated_at, jobs[0].updated_at, newest.begin]
        changes = {"latest_job": jobs[0], "updated_at": max(filter(None, times))}
        return newest.project.model_copy(update=changes)

    def _queue(self, _values: RequestValues, job_id: str) -> Any:
        recording = self._recordings.get(job_id)
        queue = None if recording is None else recording.queue_at(self.clock.now())
        if queue is None:
            raise _Missing("the queue was not recorded")
        return queue

    def _logs(self, values: RequestValues, *ids: str) -> LogsPage:
        recording, now = self._recording(*ids), self.clock.now()
        start_ms, end_ms = values["start_epoch_millis"], values["end_epoch_millis"]
        min_level = values.get("min_level")
        lines, gaps = recording.log.select(
            start_ms * NS_PER_MS,
            recording.now_ns(now) + 1 if end_ms is None else end_ms * NS_PER_MS,
            now_ns=recording.now_ns(now),
            limit=values["limit"],
            newest_first=values["direction"] == "desc",
            levels=None if min_level is None else frozenset(LEVELS[LEVELS.index(min_level) :]),
        )
        return {
            "logs": [_log_record(line) for line in lines],
            "gaps": [{"start_ns": gap.start_ns, "end_ns": gap.end_ns, "reason": gap.reason} for gap in gaps],
            "complete": now >= recording.until,
        }

    def _metrics(self, values: RequestValues, *ids: str) -> JobMetrics:
        """Return samples; by default, of the last hour or, for a finished job, of the whole run."""
        recording = self._recording(*ids)
        job, now_ms, begin_ms = self._job(recording), epoch_ms(self.clock.now()), epoch_ms(recording.begin)
        start_ms, end_ms = values.get("start_epoch_millis"), values.get("end_epoch_millis")
        end_ms = now_ms if end_ms is None else min(end_ms, now_ms)
        if start_ms is None:
            start_ms = begin_ms if job.is_finished else end_ms - 3_600_000
        start_ms = max(start_ms, begin_ms)
        step_s = values.get("step_seconds") or max(1, (end_ms - start_ms) // 250_000)
        return recording.metrics.select(start_ms * NS_PER_MS, end_ms * NS_PER_MS, step_s=step_s, job=job)

    def _checkpoints(self, _values: RequestValues, *ids: str) -> Any:
        recording = self._recording(*ids)
        checkpoints = recording.checkpoints_at(self.clock.now())
        if checkpoints is None and CHECKPOINTS in recording.member_names():
            raise _Missing(f"{CHECKPOINTS} can't be read")
        if checkpoints is None:
            raise _Missing("the checkpoints were not recorded", NOT_RECORDED)
        return {"checkpoints": checkpoints}

    def _checkpoint_files(self, values: RequestValues, *ids: str) -> Any:
        recording = self._recording(*ids)
        files = recording.files_at(self.clock.now())
        start, end = values["page_token"], values["page_token"] + values["page_size"]
        return {
            "presigned_urls": [self._with_replay_url(recording, file) for file in files[start:end]],
            "next_page_token": end if end < len(files) else None,
            "total_count": len(files),
        }

    def _with_replay_url(self, recording: Recording, file: CheckpointFile) -> CheckpointFile:
        url = f"{URL}/{recording.job.id}/{file_member(file)}"
        self._files[url] = (recording, file)
        stored_bytes = recording.stored_size(file)
        size_bytes = file.size_bytes if stored_bytes is None else stored_bytes
        return file.model_copy(update={"url": url, "size_bytes": size_bytes})


def _log_record(line: LogLine) -> LogRecord:
    stamp = str(line.timestamp_ns)
    return {"timestamp": stamp, "message": line.message, "replica": line.replica, "level": line.level}


class _RecordedObjects(Objects):
    def __init__(self, files: Mapping[str, tuple[Recording, CheckpointFile]], clock: Playback) -> None:
        super().__init__(clock)
        self._files = files

    @asynccontextmanager
    async def open(
        self, url: str, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[ObjectResponse]:
        recording, file = self._files[url]
        try:
            content = recording.stored_file(file)
        except DamagedMember as error:
            raise UrlExpired(str(error), status=404, method="GET") from None
        if start >= len(content):
            raise RangeNotSatisfiable(f"{file.relative_file_name} has no byte {start:,}")

        async def chunks() -> AsyncGenerator[bytes]:
            yield content[start:end]

        yield ObjectResponse(chunks(), True, len(content), version="recorded", digest="", content_type="")
