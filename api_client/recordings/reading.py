"""A recording that is open for reading: what was known of the run at any moment of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from api_client.models import (
    Checkpoint,
    CheckpointFile,
    QueueContext,
    QueueEvent,
    TrainingJob,
    TrainingProject,
)
from api_client.models.base import ApiModel, UtcDatetime
from api_client.models.jobs import CLOCK_SKEW, JobStatus, is_finished
from api_client.recordings.archive import SUFFIX, DamagedMember, RecordingError, open_members, read_member
from api_client.recordings.log import RecordedLog
from api_client.recordings.metrics import RecordedMetrics
from api_client.recordings.stamps import moment_at, ns_of

T = TypeVar("T")

FORMAT, VERSION = "bt-tui recording", 1
MANIFEST, PROJECT, JOB, EVENTS, QUEUE = (
    "manifest.json",
    "project.json",
    "job.json",
    "events.json",
    "queue_context.json",
)
CHECKPOINTS, CHECKPOINT_FILES, FILES_FOLDER = "checkpoints.json", "checkpoint_files.json", "files"
FOREVER_NS = 2**63
MAX_RUN = timedelta(days=3_660)
"""Maximum time from the beginning of a recording to its end, most of which would be empty."""
NOT_RECORDED = "TRAINING_JOB_NOT_RECORDED"


class Manifest(ApiModel):
    """The content of a recording; ``messages`` is false if the log's text was left out.

    ``complete`` is false until the log has been read to its end: the run is then known up to its last line.
    """

    format: str
    version: int
    recorded_from: UtcDatetime | None = None
    recorded_until: UtcDatetime | None = None
    remote: str = ""
    ended: bool = False
    messages: bool = True
    complete: bool = True


class Recording:
    """A recorded run. Reads are safe from any thread.

    ``begin`` and ``until`` are the first and the last moment. ``problems`` are the parts that cannot be read.
    ``complete_only`` leaves out what a killed recorder has not finished; otherwise it is a gap. Raises
    RecordingError if the file is no recording.
    """

    def __init__(self, path: Path, *, complete_only: bool = False) -> None:
        self.path = path
        self.name = path.name.removesuffix(SUFFIX)
        self.problems: list[str] = []
        self._members = open_members(path, complete_only=complete_only)
        try:
            self._read()
        except BaseException:
            self._members.close()
            raise

    def _read(self) -> None:
        self.manifest = self._required(MANIFEST, Manifest)
        if self.manifest.format != FORMAT:
            raise RecordingError(f"{self.path}: not a recording")
        if self.manifest.version > VERSION:
            raise RecordingError(f"{self.path}: made by a newer version of bt-tui")
        self.job = self._required(JOB, TrainingJob)
        project = {"id": self.job.project_id or "recording", "name": self.job.project_name}
        self.project = self._optional(PROJECT, TrainingProject) or TrainingProject.model_validate(project)
        if self.job.project_id != self.project.id:
            self.job = self.job.model_copy(update={"training_project_id": self.project.id})
        self._events = sorted(self._list(EVENTS, QueueEvent), key=_created)
        self._own_events = [one for one in self._events if one.training_job_id == self.job.id]
        self._queue = self._optional(QUEUE, QueueContext)
        self._checkpoints: list[Checkpoint] | None = self._optional(CHECKPOINTS, list[Checkpoint])
        self._files = self._list(CHECKPOINT_FILES, CheckpointFile)
        created_ns = ns_of(self.job.created_at) if self.job.created_at is not None else 0
        self.log = RecordedLog(self._members, created_ns)
        self.metrics = RecordedMetrics(self._members, created_ns)
        firsts = [self.log.blocks.first_ns, self.metrics.blocks.first_ns]
        first = min((moment_at(one) for one in firsts if one is not None), default=None)
        created = self.job.created_at
        if created is None:
            self.begin = first or datetime.now(UTC)
        else:
            self.begin = created if first is None else max(min(first, created), created - CLOCK_SKEW)
        lasts, lasting = [self.log.blocks.last_ns], [self.manifest.recorded_until]
        if self.manifest.complete:
            lasts.append(self.metrics.blocks.last_ns)
            lasting.append(self.job.updated_at if self.job.is_finished else None)
        lasting += [moment_at(one) for one in lasts if one is not None]
        last = max((one for one in lasting if one is not None), default=self.begin)
        self.until = min(last, self.begin + MAX_RUN)
        if last > self.until or (first is not None and first < self.begin):
            self.problems.append("it has lines or samples from long before or after the run")

    def job_at(self, at: datetime) -> TrainingJob:
        """Return the job as it was: its status comes from the events, without them from its end.

        If it still ran, its status after the recording is ``NOT_RECORDED``.
        """
        job = self.job
        if job.is_finished and at >= (job.updated_at or self.until):
            return job
        if at > self.until:
            return job.model_copy(update={"current_status": NOT_RECORDED})
        if at == self.until and self.manifest.complete:
            return job
        past = [event for event in self._own_events if event.created is None or event.created <= at]
        if past:
            status, since = past[-1].status, past[-1].created
        elif self._own_events:
            status, since = JobStatus.PENDING, job.created_at
        else:
            status, since = (JobStatus.RUNNING if job.is_finished else job.current_status), job.created_at
        if status == job.current_status:
            return job
        shown = job.error_message if is_finished(status) else None
        changes = {"current_status": status, "updated_at": since, "error_message": shown}
        return job.model_copy(update=changes)

    def events_at(self, at: datetime) -> list[QueueEvent]:
        return [event for event in self._events if event.created is None or event.created <= at]

    def queue_at(self, at: datetime) -> QueueContext | None:
        """Return the queue context with the events so far; None if the recorder could not read either."""
        if self._queue is None and not self._events:
            return None
        queue = self._queue or QueueContext(target_job_id=self.job.id, target_job_name=self.job.name)
        released = queue.released_at if queue.released_at is None or queue.released_at <= at else None
        return queue.model_copy(update={"events": self.events_at(at), "released_at": released})

    def checkpoints_at(self, at: datetime) -> list[Checkpoint] | None:
        """Return the checkpoints that existed; None if they were not recorded."""
        if self._checkpoints is None:
            return None
        return [one for one in self._checkpoints if one.created_at is None or one.created_at <= at]

    def files_at(self, at: datetime) -> list[CheckpointFile]:
        """Return the files of the checkpoints that existed."""
        existing = {one.checkpoint_id for one in self.checkpoints_at(at) or ()}
        later = {one.checkpoint_id for one in self._checkpoints or ()} - existing
        return [
            file for file in self._files if not later or not later & set(_folders(file.relative_file_name))
        ]

    def stored_file(self, file: CheckpointFile) -> bytes | None:
        """Return the content of a checkpoint's file if it was recorded."""
        name = file_member(file)
        if name not in self._members.names():
            return None
        try:
            return read_member(self._members, name)
        except DamagedMember:
            return None

    def now_ns(self, at: datetime) -> int:
        """Return the arrival time up to which log entries are visible; at the end, all are."""
        return FOREVER_NS if at >= self.until else int(at.timestamp() * 1_000_000) * 1_000

    def member_names(self) -> list[str]:
        return self._members.names()

    def close(self) -> None:
        self._members.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _required(self, name: str, kind: type[T]) -> T:
        found: T | None = self._optional(name, kind)
        if found is None:
            reason = self.problems.pop() if self.problems else f"it has no {name}"
            raise RecordingError(f"{self.path}: not a recording: {reason}")
        return found

    def _optional(self, name: str, kind: Any) -> Any:
        if name not in self._members.names():
            return None
        try:
            return TypeAdapter(kind).validate_python(json.loads(read_member(self._members, name)))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "its content"
            self.problems.append(f"{name}: {where}: {first['msg']}")
        except DamagedMember as error:
            self.problems.append(str(error))
        except OverflowError:
            self.problems.append(f"{name} has a time out of range")
        except (ValueError, RecursionError):
            self.problems.append(f"{name} is not JSON")
        return None

    def _list(self, name: str, kind: type[T]) -> list[T]:
        return self._optional(name, list[kind]) or []  # type: ignore[valid-type]


def file_member(file: CheckpointFile) -> str:
    return f"{FILES_FOLDER}/{file.node_rank}/{file.relative_file_name}"


def is_recording(path: Path) -> bool:
    """Return True if the path is a folder or begins like a zip file."""
    try:
        if path.is_dir():
            return True
        with path.open("rb") as file:
            return file.read(4) == b"PK\3\4"
    except OSError:
        return False


def _created(event: QueueEvent) -> datetime:
    return event.created or datetime.min.replace(tzinfo=UTC)


def _folders(name: str) -> list[str]:
    parts = name.removeprefix("./").split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
