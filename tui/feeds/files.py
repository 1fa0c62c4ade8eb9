"""Feeds that list the files of a checkpoint or a cache, and previews of files, which read only a part."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeVar

from api_client.checkpoints import SafetensorsHeader, TrainerState, UnreadableFile, is_safetensors
from api_client.checkpoints.reading import preview
from api_client.checkpoints.trainer_state import FILE_NAME as TRAINER_STATE, parse_trainer_state
from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.http.retry import LASTING, retrying
from api_client.models import Checkpoint, CheckpointFile, TrainingJob
from api_client.models.checkpoints import ROOT_CHECKPOINT, belongs_to
from tui.analysis.checkpoints.facts import cache_entries, epoch_s
from tui.analysis.file_tree.tree import FileEntry
from tui.feeds.throttle import SnapshotFeed
from tui.readers.session import Session
from tui.text.sanitize import sanitize

MAX_STATE_BYTES = 16 * 1024 * 1024
"""Largest trainer_state.json to read; it can only be parsed as a whole."""


@dataclass(frozen=True, slots=True)
class FilePreview:
    """A preview of a file.

    ``header`` is set for safetensors, ``state`` for a trainer_state.json. ``text`` is the beginning of a
    text file (``is_cut``: there is more), None for any other file. ``read_bytes`` is the number of bytes
    transferred. ``problem`` says why the file does not match its name, ``error`` why nothing could be read;
    ``problem`` is not sanitized.
    """

    file: CheckpointFile
    read_bytes: int = 0
    header: SafetensorsHeader | None = None
    state: TrainerState | None = None
    text: str | None = None
    is_cut: bool = False
    problem: str = ""
    error: str = ""


async def preview_file(client: TrainingClient, job: TrainingJob, file: CheckpointFile) -> FilePreview:
    """Read as much of the file as a preview shows; request errors are returned in ``error``."""
    try:
        if is_safetensors(file.relative_file_name) and file.size_bytes:
            return await _weights(client, job, file)
        return await _content(client, job, file)
    except RequestError as error:
        return FilePreview(file, error=sanitize(str(error)))


async def _weights(client: TrainingClient, job: TrainingJob, file: CheckpointFile) -> FilePreview:
    try:
        header = await client.checkpoint_contents.safetensors_header(job.project_id, job.id, file)
    except UnreadableFile as error:
        return replace(await _content(client, job, file), problem=error.problem)
    return FilePreview(file, header.header_bytes, header=header)


async def _content(client: TrainingClient, job: TrainingJob, file: CheckpointFile) -> FilePreview:
    if not file.size_bytes:
        return FilePreview(file)
    name = PurePosixPath(file.relative_file_name).name
    is_state = name == TRAINER_STATE and file.size_bytes <= MAX_STATE_BYTES
    length = min(MAX_STATE_BYTES if is_state else 256 * 1024, file.size_bytes)
    content = await client.checkpoint_contents.read(job.project_id, job.id, file, length=length)
    seen = preview(content, file.size_bytes)
    result = FilePreview(file, len(content), text=seen.text, is_cut=not seen.is_whole)
    if not is_state:
        return result
    try:
        return replace(result, state=parse_trainer_state(content))
    except UnreadableFile as error:
        return replace(result, problem=error.problem)


@dataclass(frozen=True, slots=True)
class FilesSnapshot:
    """The files of a checkpoint.

    ``files`` is None until the first page arrives, and incomplete while ``is_loading``. ``by_rank`` says if
    nodes other than the first have files of the job, None until that is known. ``error`` is set while the
    last attempt failed; the previous files are kept.
    """

    is_loading: bool = True
    files: tuple[CheckpointFile, ...] | None = None
    by_rank: bool | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class CacheSnapshot:
    """A snapshot of a cache.

    ``entries`` is None until the first response; ``exists`` is False if the project has no cache.
    ``captured_s`` (epoch seconds) is when the server listed the cache. ``error`` is set while the last
    attempt failed; the previous entries are kept.
    """

    is_loading: bool = True
    exists: bool | None = None
    entries: Sequence[FileEntry] | None = None
    captured_s: float | None = None
    error: str = ""


Listing = TypeVar("Listing", FilesSnapshot, CacheSnapshot)


class ListingFeed(SnapshotFeed[Listing], ABC):
    """Lists files now, on each ``refresh`` and every ``interval_s``, and publishes snapshots until cancelled.

    It retries after errors; until a new list arrives, the last one is kept.
    """

    interval_s: float | None = None

    async def run(self) -> None:
        while True:
            await retrying(self._read, LASTING, sleep=self._pause, on_wait=self._show_error)
            await self._pause(self.interval_s)

    @abstractmethod
    async def _list(self) -> None: ...

    async def _read(self) -> None:
        self._change(is_loading=True)
        await self._list()

    def _show_error(self, error: RequestError, _delay_s: float) -> None:
        self._change(is_loading=False, error=sanitize(str(error)))


class CheckpointFilesFeed(ListingFeed[FilesSnapshot]):
    """The files of a checkpoint, listed again while it is uploaded."""

    def __init__(
        self,
        session: Session,
        job: TrainingJob,
        checkpoint: Checkpoint,
        *,
        publish: Callable[[FilesSnapshot], object],
    ) -> None:
        super().__init__(session, FilesSnapshot(), publish)
        if (checkpoint.sync_status or "").upper() == "SYNCING":
            # more files may arrive during the upload
            self.interval_s = 15.0
        self._job = job
        self._checkpoint = checkpoint

    async def preview(self, file: CheckpointFile) -> FilePreview:
        """Read as much of a file as a preview shows; request errors are returned in ``error``."""
        return await preview_file(self._session.client, self._job, file)

    async def _list(self) -> None:
        first = self.snapshot.files is None
        files: list[CheckpointFile] = []
        job, name = self._job, self._checkpoint.checkpoint_id
        checkpoints = self._session.client.checkpoints
        by_rank, others = False, set[str]()
        if name == ROOT_CHECKPOINT:
            listed = await checkpoints.list(job.project_id, job.id)
            others = {other.checkpoint_id for other in listed} - {name}
        async for file in checkpoints.files(job.project_id, job.id):
            by_rank |= bool(file.node_rank)
            if not belongs_to(file.relative_file_name, name, others):
                continue
            files.append(file)
            if first and len(files) % 1000 == 0:
                self._change(files=tuple(files))
        self._change(is_loading=False, files=tuple(files), by_rank=by_rank, error="")


class CacheFeed(ListingFeed[CacheSnapshot]):
    def __init__(
        self, session: Session, project_id: str, *, publish: Callable[[CacheSnapshot], object]
    ) -> None:
        super().__init__(session, CacheSnapshot(), publish)
        self._project_id = project_id

    async def _list(self) -> None:
        summary = await self._session.client.cache.summary(self._project_id)
        if summary is None:
            self._change(is_loading=False, exists=False, entries=None, captured_s=None, error="")
            return
        # Converting a hundred thousand paths takes a while, so do it outside the event loop.
        entries = await asyncio.to_thread(cache_entries, summary.file_summaries)
        captured_s = epoch_s(summary.timestamp)
        self._change(is_loading=False, exists=True, entries=entries, captured_s=captured_s, error="")
