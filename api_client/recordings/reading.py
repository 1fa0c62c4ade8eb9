"""A recording opened for reading: the state of the run as of any time during it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

from pydantic import ConfigDict, TypeAdapter, ValidationError

from api_client.clock import epoch_ns
from api_client.models import (
    Checkpoint,
    CheckpointFile,
    QueueContext,
    QueueEvent,
    TrainingJob,
    TrainingProject,
)
from api_client.models.base import MAX_PAGE_ITEMS, ApiModel, OptionalDatetime
from api_client.recordings.archive import (
    MAX_DOCUMENT_BYTES,
    SUFFIX,
    DamagedMember,
    RecordingError,
    open_members,
    read_member,
)
from api_client.recordings.blocks import LOG, MAX_RUN_DURATION, METRICS, clamped_moment
from api_client.recordings.log import RecordedLog
from api_client.recordings.metrics import RecordedMetrics
from api_client.vocabulary import JobStatus, is_finished
from api_client.words import counted

FORMAT, VERSION = "bt-tui recording", 1
MANIFEST, PROJECT, JOB, EVENTS, QUEUE = (
    "manifest.json",
    "project.json",
    "job.json",
    "events.json",
    "queue_context.json",
)
CHECKPOINTS, CHECKPOINT_FILES, FILES_FOLDER = "checkpoints.json", "checkpoint_files.json", "files"
MAX_OBJECTS, MAX_VALUES = 25_000, 500_000
"""Maximum number of JSON objects, and of values, in a document; a job has up to 20,000 files."""
FOREVER_NS = 2**63
NOT_RECORDED = "TRAINING_JOB_NOT_RECORDED"


class Manifest(ApiModel):
    """Describes a recording."""

    format: str
    version: int
    recorded_from: OptionalDatetime = None
    recorded_until: OptionalDatetime = None
    remote: str = ""
    ended: bool = False
    messages: bool = True
    """False if the text of log lines was left out."""

    complete: bool = True
    """False if the recorder has not read the log to its end: the run then ends at its last recorded line."""


def document(name: str, content: bytes) -> Any:
    """Parse and validate the document ``name``. Writers call this before writing it, too.

    Raises DamagedMember.
    """
    if len(content) > MAX_DOCUMENT_BYTES:
        raise DamagedMember(f"{name} has more than {MAX_DOCUMENT_BYTES:,} bytes")
    # Count before parsing: a value of two bytes can become a Python object of a kilobyte.
    objects, values = content.count(b"{"), content.count(b"[") + content.count(b",")
    if objects > MAX_OBJECTS or values > MAX_VALUES:
        raise DamagedMember(f"{name} has more than {MAX_OBJECTS:,} objects or {MAX_VALUES:,} values")
    try:
        return _DOCUMENTS[name].validate_json(content)
    except ValidationError as error:
        first_error = error.errors(include_url=False, include_input=False)[0]
        if first_error["type"] == "json_invalid":
            raise DamagedMember(f"{name} is not JSON") from error
        location = ".".join(map(str, first_error["loc"])) or "its content"
        raise DamagedMember(f"{name}: {location}: {first_error['msg']}") from error
    except (OverflowError, ValueError) as error:
        raise DamagedMember(f"{name} has a time or a number out of range") from error


_BUILD_ON_USE = ConfigDict(defer_build=True)
_DOCUMENTS: dict[str, TypeAdapter[Any]] = {
    MANIFEST: TypeAdapter(Manifest),
    JOB: TypeAdapter(TrainingJob),
    PROJECT: TypeAdapter(TrainingProject),
    EVENTS: TypeAdapter(Annotated[list[QueueEvent], MAX_PAGE_ITEMS], config=_BUILD_ON_USE),
    QUEUE: TypeAdapter(QueueContext),
    CHECKPOINTS: TypeAdapter(Annotated[list[Checkpoint], MAX_PAGE_ITEMS], config=_BUILD_ON_USE),
    CHECKPOINT_FILES: TypeAdapter(Annotated[list[CheckpointFile], MAX_PAGE_ITEMS], config=_BUILD_ON_USE),
}


class Recording:
    """A recorded run. Reads are safe from any thread.

    The run goes from ``begin`` to ``until``. ``problems`` describes the parts that cannot be read. With
    ``complete_only``, a member that a killed recorder has not finished is left out; otherwise it becomes a
    gap. Raises RecordingError if the file is not a recording.
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
        self.manifest: Manifest = self._required_document(MANIFEST)
        if self.manifest.format != FORMAT:
            raise RecordingError(f"{self.path}: not a recording")
        if self.manifest.version > VERSION:
            raise RecordingError(f"{self.path}: made by a newer version of bt-tui")
        self.job: TrainingJob = self._required_document(JOB)
        project = {"id": self.job.project_id or "recording", "name": self.job.project_name}
        self.project = self._optional_document(PROJECT) or TrainingProject.model_validate(project)
        if self.job.project_id != self.project.id:
            self.job = self.job.model_copy(update={"training_project_id": self.project.id})
        self._events = sorted(self._optional_document(EVENTS) or [], key=_event_time)
        self._job_events = [event for event in self._events if event.training_job_id == self.job.id]
        self._queue = self._optional_document(QUEUE)
        self._checkpoints: list[Checkpoint] | None = self._optional_document(CHECKPOINTS)
        self._files: list[CheckpointFile] = self._optional_document(CHECKPOINT_FILES) or []
        created_ns = epoch_ns(self.job.created_at) if self.job.created_at is not None else 0
        self.log = RecordedLog(self._members, created_ns)
        self.metrics = RecordedMetrics(self._members, created_ns)
        self.problems += [*self.log.blocks.problems, *self.metrics.blocks.problems]
        unknown = [name for name in self._members.names() if not _is_known_member(name)]
        if unknown:
            self.problems.append(f"{counted(len(unknown), 'unknown part')}, such as {min(unknown)}")
        first_times_ns = [self.log.blocks.first_ns, self.metrics.blocks.first_ns]
        first_moment = min(
            (clamped_moment(time_ns) for time_ns in first_times_ns if time_ns is not None), default=None
        )
        created = self.job.created_at
        if created is None:
            self.begin = first_moment or datetime.now(UTC)
        else:
            self.begin = (
                created
                if first_moment is None or first_moment < created - MAX_RUN_DURATION
                else min(first_moment, created)
            )
        last_moment = self._last_moment()
        self.until = min(last_moment, self.begin + MAX_RUN_DURATION)
        if last_moment > self.until or (first_moment is not None and first_moment < self.begin):
            self.problems.append("it has lines or samples from long before or after the run")

    def _last_moment(self) -> datetime:
        """Return the end of the run: the job's or the recording's end, or the last line or checkpoint."""
        ended_at = self.job.updated_at if self.job.is_finished else None
        recorded_until = self.manifest.recorded_until
        if recorded_until is not None and ended_at is not None:
            recorded_until = min(recorded_until, ended_at)
        moments = [recorded_until]
        last_times_ns = [self.log.blocks.last_ns]
        if self.manifest.complete and ended_at is not None:
            moments += [ended_at, *(item.created_at for item in self._checkpoints or ())]
        elif self.manifest.complete:
            last_times_ns.append(self.metrics.blocks.last_ns)
        moments += [clamped_moment(item) for item in last_times_ns if item is not None]
        return max((item for item in moments if item is not None), default=self.begin)

    def job_at(self, at: datetime) -> TrainingJob:
        """Return the job as of a time.

        The status comes from the last queue event before that time; without recorded events, a finished job
        counts as running until its end. If the recording stopped before the job's end, the status after the
        recording is ``NOT_RECORDED``.
        """
        job = self.job
        if job.is_finished and at >= (job.updated_at or self.until):
            return job
        if at > self.until:
            return job.model_copy(update={"current_status": NOT_RECORDED})
        if at == self.until and self.manifest.complete:
            return job
        past_count = bisect_right(self._job_events, at, key=_event_time)
        if past_count:
            status, status_since = (
                self._job_events[past_count - 1].status,
                self._job_events[past_count - 1].created,
            )
        elif self._job_events:
            status, status_since = JobStatus.PENDING, job.created_at
        else:
            status, status_since = (
                (JobStatus.RUNNING if job.is_finished else job.current_status),
                job.created_at,
            )
        if status == job.current_status:
            return job
        error_message = job.error_message if is_finished(status) else None
        changes = {"current_status": status, "updated_at": status_since, "error_message": error_message}
        return job.model_copy(update=changes)

    def queue_at(self, at: datetime) -> QueueContext | None:
        """Return the queue context with the events until ``at``; None if no queue or event was recorded."""
        if self._queue is None and not self._events:
            return None
        queue = self._queue or QueueContext(target_job_id=self.job.id, target_job_name=self.job.name)
        released = queue.released_at if queue.released_at is None or queue.released_at <= at else None
        events = self._events[: bisect_right(self._events, at, key=_event_time)]
        return queue.model_copy(update={"events": events, "released_at": released})

    def checkpoints_at(self, at: datetime) -> list[Checkpoint] | None:
        """Return the checkpoints that existed at a time; None if they were not recorded."""
        if self._checkpoints is None:
            return None
        return [
            checkpoint
            for checkpoint in self._checkpoints
            if checkpoint.created_at is None or checkpoint.created_at <= at
        ]

    def files_at(self, at: datetime) -> list[CheckpointFile]:
        """Return the files of the checkpoints that existed at a time."""
        existing_ids = {checkpoint.checkpoint_id for checkpoint in self.checkpoints_at(at) or ()}
        later_ids = {checkpoint.checkpoint_id for checkpoint in self._checkpoints or ()} - existing_ids
        return [
            file
            for file in self._files
            if not later_ids or not later_ids & set(_parent_folders(file.relative_file_name))
        ]

    def stored_size(self, file: CheckpointFile) -> int | None:
        """Return the size of a file's recorded content in bytes; None if the content was not recorded."""
        name = self._member_of(file)
        return None if name is None else self._members.size(name)

    def stored_file(self, file: CheckpointFile) -> bytes:
        """Return a file's recorded content. Raises DamagedMember."""
        name = self._member_of(file)
        if name is None:
            raise DamagedMember(f"{file.relative_file_name} was not recorded")
        return read_member(self._members, name)

    def now_ns(self, at: datetime) -> int:
        """Return the latest arrival time of the log entries visible at ``at``; the run's end shows all."""
        return FOREVER_NS if at >= self.until else int(at.timestamp() * 1_000_000) * 1_000

    def member_names(self) -> Collection[str]:
        return self._members.names()

    def close(self) -> None:
        self._members.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _required_document(self, name: str) -> Any:
        content = self._optional_document(name)
        if content is None:
            reason = self.problems.pop() if self.problems else f"it has no {name}"
            raise RecordingError(f"{self.path}: not a recording: {reason}")
        return content

    def _optional_document(self, name: str) -> Any:
        if name not in self._members.names():
            return None
        try:
            return document(name, read_member(self._members, name))
        except DamagedMember as error:
            self.problems.append(str(error))
            return None

    def _member_of(self, file: CheckpointFile) -> str | None:
        """Return the name of the member with a file's content; None if the content was not recorded."""
        # Older recordings use the name of the file instead of a hash.
        old_name = f"{FILES_FOLDER}/{file.node_rank}/{file.relative_file_name}"
        return next((name for name in (file_member(file), old_name) if name in self._members.names()), None)


def file_member(file: CheckpointFile) -> str:
    """Return the member name for a file's content: a hash, since the file's name must not act as a path."""
    identity = f"{file.node_rank}/{file.relative_file_name}"
    return f"{FILES_FOLDER}/{sha256(identity.encode()).hexdigest()}"


def _is_known_member(name: str) -> bool:
    """Return False for a data member (``.ndjson``) that this version does not read.

    Other unknown members may be documents of newer versions, and are ignored.
    """
    is_inside = name.startswith((f"{LOG.folder}/", f"{METRICS.folder}/", f"{FILES_FOLDER}/"))
    return is_inside or name in (LOG.whole, METRICS.whole) or not name.endswith(".ndjson")


def is_recording(path: Path) -> bool:
    """Return True if the file begins like a zip file."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\3\4"
    except OSError:
        return False


def _event_time(event: QueueEvent) -> datetime:
    return event.created or datetime.min.replace(tzinfo=UTC)


def _parent_folders(name: str) -> Iterator[str]:
    return accumulate(name.removeprefix("./").split("/", 64)[:-1], "{}/{}".format)
