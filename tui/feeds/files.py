"""Feeds that list the files of a checkpoint or a cache, and previews, which read only part of a file."""

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
    """A preview of a file."""

    file: CheckpointFile
    read_bytes: int = 0
    """Number of bytes transferred."""
    header: SafetensorsHeader | None = None
    """The header of a safetensors file."""
    state: TrainerState | None = None
    """The contents of a trainer_state.json."""
    text: str | None = None
    """The beginning of a text file; None for any other file."""
    is_cut: bool = False
    """True if the file has more text."""
    problem: str = ""
    """Why the content does not have the format that the file's name suggests; not sanitized."""
    error: str = ""
    """Why nothing could be read."""


async def preview_file(client: TrainingClient, job: TrainingJob, file: CheckpointFile) -> FilePreview:
    """Read as much of the file as a preview shows; request errors are returned in ``error``."""
    try:
        if is_safetensors(file.relative_file_name) and file.size_bytes:
            return await _preview_weights(client, job, file)
        return await _preview_content(client, job, file)
    except RequestError as error:
        return FilePreview(file, error=sanitize(str(error)))


async def _preview_weights(client: TrainingClient, job: TrainingJob, file: CheckpointFile) -> FilePreview:
    try:
        header = await client.checkpoint_contents.safetensors_header(job.project_id, job.id, file)
    except UnreadableFile as error:
        return replace(await _preview_content(client, job, file), problem=error.problem)
    return FilePreview(file, header.header_bytes, header=header)


async def _preview_content(client: TrainingClient, job: TrainingJob, file: CheckpointFile) -> FilePreview:
    if not file.size_bytes:
        return FilePreview(file)
    name = PurePosixPath(file.relative_file_name).name
    is_state = name == TRAINER_STATE and file.size_bytes <= MAX_STATE_BYTES
    length = min(MAX_STATE_BYTES if is_state else 256 * 1024, file.size_bytes)
    content = await client.checkpoint_contents.read(job.project_id, job.id, file, length=length)
    beginning = preview(content, file.size_bytes)
    result = FilePreview(file, len(content), text=beginning.text, is_cut=not beginning.is_whole)
    if not is_state:
        return result
    try:
        return replace(result, state=parse_trainer_state(content))
    except UnreadableFile as error:
        return replace(result, problem=error.problem)


@dataclass(frozen=True, slots=True)
class FilesSnapshot:
    """The files of a checkpoint."""

    is_loading: bool = True
    files: tuple[CheckpointFile, ...] | None = None
    """None until the first page arrives; incomplete while the first list ``is_loading``."""
    by_rank: bool | None = None
    """True if nodes other than the first have files of the job; None until that is known."""
    error: str = ""
    """Why the last list failed; the files of the previous list are kept."""


@dataclass(frozen=True, slots=True)
class CacheSnapshot:
    """The files of a project's cache."""

    is_loading: bool = True
    exists: bool | None = None
    """False if the project has no cache; None until the first response."""
    entries: Sequence[FileEntry] | None = None
    captured_s: float | None = None
    """When the server listed the cache (epoch seconds)."""
    error: str = ""
    """Why the last request failed; the previous entries are kept."""


Listing = TypeVar("Listing", FilesSnapshot, CacheSnapshot)


class ListingFeed(SnapshotFeed[Listing], ABC):
    """Lists files now, on each ``refresh`` and every ``interval_s``, and publishes snapshots until cancelled.

    It retries after errors; until a new list arrives, the snapshot keeps the previous list.
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
    """Lists the files of a checkpoint; repeatedly while the checkpoint is being uploaded."""

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
            self.interval_s = 15.0
        self._job = job
        self._checkpoint = checkpoint

    async def preview(self, file: CheckpointFile) -> FilePreview:
        """Read as much of a file as a preview shows; request errors are returned in ``error``."""
        return await preview_file(self._session.client, self._job, file)

    async def _list(self) -> None:
        is_first_list = self.snapshot.files is None
        files: list[CheckpointFile] = []
        job, name = self._job, self._checkpoint.checkpoint_id
        checkpoints = self._session.client.checkpoints
        by_rank, other_names = False, set[str]()
        if name == ROOT_CHECKPOINT:
            all_checkpoints = await checkpoints.list(job.project_id, job.id)
            other_names = {other.checkpoint_id for other in all_checkpoints} - {name}
        async for file in checkpoints.files(job.project_id, job.id):
            by_rank |= bool(file.node_rank)
            if not belongs_to(file.relative_file_name, name, other_names):
                continue
            files.append(file)
            if is_first_list and len(files) % 1000 == 0:
                self._change(files=tuple(files))
        self._change(is_loading=False, files=tuple(files), by_rank=by_rank, error="")


class CacheFeed(ListingFeed[CacheSnapshot]):
    """Lists the files of a project's cache."""

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
