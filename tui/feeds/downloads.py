"""The dashboard's download queue: one download at a time, several files at once. It outlives the screens."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import platformdirs

from api_client.errors import ApiClientError
from api_client.transfers import (
    DownloadError,
    DownloadPlan,
    DownloadProgress,
    DownloadReport,
    Existing,
    FileState,
)
from tui.analysis.transfers import ENDED, RESUMABLE, DownloadRequest, Transfer, Transfers, TransferState
from tui.readers.session import Session
from tui.text.sanitize import sanitize
from tui.text.units import counted

_UNSAFE = re.compile(r"[^\w.-]+")
_LONGEST_NAME = 80


def proposed_folder(wanted: DownloadRequest) -> Path:
    """Return the default folder of a download: a subfolder for the job in the working directory.

    The archive of a job creates its own folder. If the working directory is not writable or is the file
    system's root, the platform's download folder is used.
    """
    here = Path.cwd()
    if not os.access(here, os.W_OK) or here == Path(here.anchor):
        here = platformdirs.user_downloads_path()
    if wanted.archive:
        return here
    job = wanted.job
    name = _UNSAFE.sub("_", f"{job.project_name}_{job.id}")[:_LONGEST_NAME].lstrip(".-") or "job"
    return here / name


@dataclass(slots=True)
class _Order:
    wanted: DownloadRequest
    folder: Path
    existing: Existing | None = None
    plan: DownloadPlan | None = None


class DownloadsFeed:
    """Plans and runs downloads, and publishes ``Transfers`` after every change.

    Call ``begin``, ``plan``, then ``start``; the plan contains the questions to ask in between (files
    with different content, not enough space). ``on_end`` is called for each download that has ended.
    """

    def __init__(
        self,
        session: Session,
        *,
        publish: Callable[[Transfers], object],
        on_end: Callable[[Transfer], object],
    ) -> None:
        self._session = session
        self._publish = publish
        self._on_end = on_end
        self._items: dict[str, Transfer] = {}
        self._orders: dict[str, _Order] = {}
        self._ids = count(1)
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._running: tuple[str, asyncio.Task[DownloadReport]] | None = None

    @property
    def transfers(self) -> Transfers:
        return Transfers(tuple(self._items.values()))

    # User requests

    def begin(self, wanted: DownloadRequest, folder: Path) -> str:
        """Put a download on the list; it takes the place of an ended one of the same into the same folder."""
        for old_id, old in list(self._orders.items()):
            if old.wanted.content == wanted.content and old.folder == folder and self._state(old_id) in ENDED:
                self.drop(old_id)
        transfer_id = str(next(self._ids))
        self._orders[transfer_id] = _Order(wanted, folder)
        self._items[transfer_id] = Transfer(
            transfer_id, wanted.title, str(folder), TransferState.PLANNING, size_bytes=wanted.size_bytes
        )
        self._publish_snapshot()
        return transfer_id

    async def plan(self, transfer_id: str) -> DownloadPlan | None:
        """Ask the server for the files; None if that failed (the list shows the error) or was cancelled."""
        order = self._orders[transfer_id]
        self._change(transfer_id, state=TransferState.PLANNING, error="", speed=None, eta_s=None)
        downloads, request = self._session.client.downloads, order.wanted
        job, folder = request.job, order.folder
        try:
            if request.archive:
                plan = await downloads.plan_archive(job.project_id, job.id, folder)
            elif request.files:
                plan = await downloads.plan_files(job.project_id, job.id, folder, request.files)
            else:
                plan = await downloads.plan_checkpoints(
                    job.project_id, job.id, folder, checkpoints=request.checkpoints
                )
        except (ApiClientError, OSError) as error:
            self._end(transfer_id, TransferState.FAILED, sanitize(str(error)))
            return None
        if self._state(transfer_id) is not TransferState.PLANNING:
            return None
        order.plan = plan
        self._change(transfer_id, size_bytes=plan.total_bytes, folder=str(plan.folder))
        return plan

    def start(self, transfer_id: str, existing: Existing | None = None) -> None:
        """Queue a planned download; if ``existing`` is None, the earlier choice applies."""
        order = self._orders[transfer_id]
        if existing is not None:
            order.existing = existing
        self._change(transfer_id, state=TransferState.WAITING)
        self._queue.put_nowait(transfer_id)

    def drop(self, transfer_id: str) -> None:
        self._items.pop(transfer_id, None)
        self._orders.pop(transfer_id, None)
        self._publish_snapshot()

    def fail(self, transfer_id: str, reason: str) -> None:
        self._end(transfer_id, TransferState.FAILED, reason)

    def cancel(self, transfer_id: str) -> None:
        """Cancel a download; files received so far are kept."""
        if self._state(transfer_id) in ENDED:
            return
        if self._running is not None and self._running[0] == transfer_id:
            self._running[1].cancel()
        else:
            self._end(transfer_id, TransferState.CANCELLED)

    def can_retry(self, transfer_id: str) -> bool:
        return self._state(transfer_id) in RESUMABLE

    def answered(self, transfer_id: str) -> bool:
        """Return True if it has been decided what to do with existing files."""
        return self._orders[transfer_id].existing is not None

    def clear(self) -> None:
        for item in list(self._items.values()):
            if item.state in ENDED:
                self._items.pop(item.id)
                self._orders.pop(item.id)
        self._publish_snapshot()

    # Running downloads

    async def run(self) -> None:
        while True:
            transfer_id = await self._queue.get()
            order = self._orders.get(transfer_id)
            if order is None or order.plan is None or self._state(transfer_id) is not TransferState.WAITING:
                continue
            self._change(transfer_id, state=TransferState.ACTIVE)
            task = asyncio.create_task(self._fetch(transfer_id, order.plan, order.existing))
            self._running = (transfer_id, task)
            try:
                await asyncio.wait({task})
            finally:
                if not task.done():
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
                self._running = None
            self._conclude(transfer_id, task)

    async def _fetch(self, transfer_id: str, plan: DownloadPlan, existing: Existing | None) -> DownloadReport:
        def note(progress: DownloadProgress) -> None:
            self._change(
                transfer_id,
                done_bytes=progress.done_bytes,
                size_bytes=progress.total_bytes,
                speed=progress.speed_bytes_per_s,
                eta_s=progress.eta_s,
                stalled_s=progress.stalled_s,
                files=progress.files,
                note=progress.note,
            )

        # Nothing is asked if there are no conflicts, and files created in the meantime must not be
        # overwritten.
        return await self._session.client.downloads.run(
            plan, on_progress=note, existing=existing or Existing.SKIP
        )

    def _conclude(self, transfer_id: str, task: asyncio.Task[DownloadReport]) -> None:
        if task.cancelled():
            self._end(transfer_id, TransferState.CANCELLED)
            return
        error = task.exception()
        if isinstance(error, ApiClientError | DownloadError | OSError):
            self._end(transfer_id, TransferState.FAILED, sanitize(str(error)))
        elif error is not None:
            self._end(transfer_id, TransferState.FAILED, sanitize(f"{type(error).__name__}: {error}"))
        else:
            report = task.result()
            problems = []
            if report.failed:
                problems.append(f"{len(report.failed):,} of {counted(len(report.files), 'file')} failed")
                problems.append(sanitize(report.failed[0].error))
            if report.refused:
                first = report.refused[0]
                problems.append(
                    f"{len(report.refused):,} refused because of their names ({sanitize(first.reason)})"
                )
            state = TransferState.FAILED if report.failed else TransferState.DONE
            folder = str(report.folder)
            size = sum(file.size_bytes or 0 for file in report.files)
            self._change(transfer_id, files=report.files, folder=folder, size_bytes=size)
            self._end(transfer_id, state, "; ".join(problems))

    # Publishing

    def _state(self, transfer_id: str) -> TransferState:
        item = self._items.get(transfer_id)
        return item.state if item is not None else TransferState.CANCELLED

    def _change(self, transfer_id: str, **changes: Any) -> None:
        item = self._items.get(transfer_id)
        if item is not None:
            self._items[transfer_id] = replace(item, **changes)
            self._publish_snapshot()

    def _end(self, transfer_id: str, state: TransferState, error: str = "") -> None:
        item = self._items.get(transfer_id)
        if item is None:
            return
        files = tuple(
            file if file.state.is_final else replace(file, state=FileState.WAITING) for file in item.files
        )
        idle: dict[str, Any] = {"speed": None, "eta_s": None, "stalled_s": 0.0, "note": ""}
        self._change(transfer_id, state=state, error=error, files=files, **idle)
        self._on_end(self._items[transfer_id])

    def _publish_snapshot(self) -> None:
        self._publish(self.transfers)
