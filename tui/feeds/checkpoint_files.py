"""The feed of a checkpoint's inside: its files page by page, and a look into one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from api_client.checkpoint_files import Weights
from api_client.checkpoint_names import ROOT_CHECKPOINT, belongs_to
from api_client.errors import RequestError
from api_client.models import Checkpoint, CheckpointFile, TrainingJob
from tui.feeds.file_look import FileLook, look_into
from tui.feeds.resting import rest
from tui.feeds.session import Session
from tui.insight.text import inert

PAGE_FILES = 1000
"""So many new files are shown at a time while the listing goes on."""
SYNCING_INTERVAL_S = 15.0
"""How often the listing of a checkpoint that is still being uploaded is read again."""

AGAIN_S = 10.0
"""Until a listing that failed is tried again."""


@dataclass(frozen=True, slots=True)
class FilesSnapshot:
    """The files of a checkpoint.

    ``files`` is None until the first page came, and has only a part of them while ``is_loading``.
    ``error`` is set while the last try failed; the files before it are kept.
    """

    is_loading: bool = True
    files: tuple[CheckpointFile, ...] | None = None
    asked_at: datetime | None = None
    error: str = ""


class CheckpointFilesFeed:
    """Publishes ``FilesSnapshot``s until cancelled; ``look`` reads a little of one file."""

    def __init__(
        self,
        session: Session,
        job: TrainingJob,
        checkpoint: Checkpoint,
        *,
        publish: Callable[[FilesSnapshot], object],
    ) -> None:
        self._session = session
        self._job = job
        self._checkpoint = checkpoint
        self._publish = publish
        self._snapshot = FilesSnapshot()
        self._asked = asyncio.Event()

    async def run(self) -> None:
        """List now, at every ``refresh``, and now and then while the checkpoint is being uploaded."""
        while True:
            self._asked.clear()
            await self._list()
            syncing = (self._checkpoint.sync_status or "").upper() == "SYNCING"
            pause_s = AGAIN_S if self._snapshot.error else SYNCING_INTERVAL_S if syncing else None
            await rest(self._session.clock, self._asked, pause_s)

    def refresh(self) -> None:
        """List again."""
        self._asked.set()

    async def look(self, file: CheckpointFile) -> FileLook:
        """What can be told of a file by reading a little of it; trouble is told in its ``error``."""
        return await look_into(self._session.client, self._job, file)

    async def weigh(self, files: Sequence[CheckpointFile]) -> Weights | str:
        """The headers of these files of weights together; or why they cannot be read, inert."""
        try:
            return await self._session.client.checkpoint_contents.weights(
                self._job.project_id, self._job.id, files
            )
        except RequestError as error:
            return inert(str(error))

    async def _list(self) -> None:
        self._tell(replace(self._snapshot, is_loading=True))
        first = self._snapshot.files is None
        found: list[CheckpointFile] = []
        job, name = self._job, self._checkpoint.checkpoint_id
        checkpoints = self._session.client.checkpoints
        others: set[str] = set()
        try:
            if name == ROOT_CHECKPOINT:
                listed = await checkpoints.list(job.project_id, job.id)
                others = {other.checkpoint_id for other in listed} - {name}
            async for file in checkpoints.files(job.project_id, job.id):
                if not belongs_to(file.relative_file_name, name, others):
                    continue
                found.append(file)
                if first and len(found) % PAGE_FILES == 0:
                    self._tell(replace(self._snapshot, files=tuple(found)))
        except RequestError as error:
            self._tell(replace(self._snapshot, is_loading=False, error=inert(str(error))))
            return
        self._tell(FilesSnapshot(False, tuple(found), self._session.clock.now()))

    def _tell(self, snapshot: FilesSnapshot) -> None:
        self._snapshot = snapshot
        self._publish(snapshot)


async def list_files(session: Session, job: TrainingJob, checkpoint_id: str) -> list[CheckpointFile]:
    """All files of a checkpoint. Raises RequestError."""
    return await session.client.checkpoints.files_of(job.project_id, job.id, checkpoint_id)
