"""The dashboard's downloads: one after the other, each several files at once; they outlive the screens."""

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
from api_client.transfers import DownloadError, DownloadPlan, DownloadProgress, DownloadReport, Existing
from tui.analysis.transfers import ENDED, RESUMABLE, Transfer, Transfers, TransferState, Wanted
from tui.readers.session import Session
from tui.text.sanitize import inert

_UNSAFE = re.compile(r"[^\w.-]+")
_LONGEST_NAME = 80


def proposed_folder(wanted: Wanted) -> Path:
    """Where a download goes unless told otherwise: a folder of the job's own, below where one is.

    The archive of a job makes a folder of its own. Where the working directory cannot be written to, it
    is the platform's folder of downloads.
    """
    here = Path.cwd()
    if not os.access(here, os.W_OK) or here == Path(here.anchor):
        here = platformdirs.user_downloads_path()
    if wanted.archive:
        return here
    job = wanted.job
    project = job.training_project.name if job.training_project else job.project_id
    name = _UNSAFE.sub("_", f"{project}_{job.id}")[:_LONGEST_NAME].lstrip(".-") or "job"
    return here / name


@dataclass(slots=True)
class _Order:
    """What was asked for, and how it is to be done."""

    wanted: Wanted
    folder: Path
    existing: Existing = Existing.ASK
    plan: DownloadPlan | None = None


class DownloadsFeed:
    """Plans and runs downloads, and publishes ``Transfers`` after every change.

    ``begin`` → ``plan`` → ``start``; what must be asked in between (files of other content, no room) is in
    the plan. ``on_end`` hears of each that has ended.
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
        """All of them, as of now."""
        return Transfers(tuple(self._items.values()))

    # What people ask for

    def begin(self, wanted: Wanted, folder: Path) -> str:
        """Put it on the list; returns its id."""
        transfer_id = str(next(self._ids))
        self._orders[transfer_id] = _Order(wanted, folder)
        self._items[transfer_id] = Transfer(
            transfer_id, wanted.title, str(folder), TransferState.PLANNING, size_bytes=wanted.size_bytes
        )
        self._tell()
        return transfer_id

    async def plan(self, transfer_id: str) -> DownloadPlan | None:
        """Ask the server what there is; None if that failed (it says so on the list) or was cancelled."""
        order = self._orders[transfer_id]
        self._change(transfer_id, state=TransferState.PLANNING, error="", speed=None, eta_s=None)
        downloads, wanted = self._session.client.downloads, order.wanted
        job, folder = wanted.job, order.folder
        try:
            if wanted.archive:
                plan = await downloads.plan_archive(job.project_id, job.id, folder)
            elif wanted.files:
                plan = await downloads.plan_files(job.project_id, job.id, folder, wanted.files)
            else:
                plan = await downloads.plan_checkpoints(
                    job.project_id, job.id, folder, checkpoints=wanted.checkpoints
                )
        except (ApiClientError, OSError) as error:
            self._end(transfer_id, TransferState.FAILED, inert(str(error)))
            return None
        if self._state(transfer_id) is not TransferState.PLANNING:
            return None
        order.plan = plan
        self._change(transfer_id, size_bytes=plan.total_bytes, folder=str(plan.folder))
        return plan

    def start(self, transfer_id: str, existing: Existing | None = None) -> None:
        """Fetch what was planned as soon as it is its turn; ``existing`` None keeps what was answered."""
        order = self._orders[transfer_id]
        if existing is not None:
            order.existing = existing
        self._change(transfer_id, state=TransferState.WAITING)
        self._queue.put_nowait(transfer_id)

    def drop(self, transfer_id: str) -> None:
        """Take it off the list."""
        self._items.pop(transfer_id, None)
        self._orders.pop(transfer_id, None)
        self._tell()

    def fail(self, transfer_id: str, reason: str) -> None:
        """It cannot be done, for this reason."""
        self._end(transfer_id, TransferState.FAILED, reason)

    def cancel(self, transfer_id: str) -> None:
        """Stop it; what has arrived is kept."""
        if self._state(transfer_id) in ENDED:
            return
        if self._running is not None and self._running[0] == transfer_id:
            self._running[1].cancel()
        else:
            self._end(transfer_id, TransferState.CANCELLED)

    def can_retry(self, transfer_id: str) -> bool:
        """Whether it has stopped before its end."""
        return self._state(transfer_id) in RESUMABLE

    def answered(self, transfer_id: str) -> bool:
        """Whether it is known already what becomes of files that are there."""
        return self._orders[transfer_id].existing is not Existing.ASK

    def clear(self) -> None:
        """Forget those that have ended."""
        for item in list(self._items.values()):
            if item.state in ENDED:
                self._items.pop(item.id)
                self._orders.pop(item.id)
        self._tell()

    # Doing it

    async def run(self) -> None:
        """Fetch one after the other, until cancelled."""
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

    async def _fetch(self, transfer_id: str, plan: DownloadPlan, existing: Existing) -> DownloadReport:
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

        # Without conflicts nothing is asked, and none may be overwritten that comes in between.
        chosen = Existing.SKIP if existing is Existing.ASK else existing
        return await self._session.client.downloads.run(plan, on_progress=note, existing=chosen)

    def _conclude(self, transfer_id: str, task: asyncio.Task[DownloadReport]) -> None:
        if task.cancelled():
            self._end(transfer_id, TransferState.CANCELLED)
            return
        error = task.exception()
        if isinstance(error, ApiClientError | DownloadError | OSError):
            self._end(transfer_id, TransferState.FAILED, inert(str(error)))
        elif error is not None:
            self._end(transfer_id, TransferState.FAILED, inert(f"{type(error).__name__}: {error}"))
        else:
            report = task.result()
            problems = (
                [f"{len(report.failed):,} of {len(report.files):,} files failed"] if report.failed else []
            )
            if report.failed:
                problems.append(inert(report.failed[0].error))
            if report.refused:
                first = report.refused[0]
                problems.append(f"{len(report.refused):,} refused by name ({inert(first.reason)})")
            state = TransferState.FAILED if report.failed else TransferState.DONE
            folder = str(report.folder)
            size = sum(file.size_bytes or 0 for file in report.files)
            self._change(transfer_id, files=report.files, folder=folder, size_bytes=size)
            self._end(transfer_id, state, "; ".join(problems))

    # Telling

    def _state(self, transfer_id: str) -> TransferState:
        item = self._items.get(transfer_id)
        return item.state if item is not None else TransferState.CANCELLED

    def _change(self, transfer_id: str, **changes: Any) -> None:
        item = self._items.get(transfer_id)
        if item is not None:
            self._items[transfer_id] = replace(item, **changes)
            self._tell()

    def _end(self, transfer_id: str, state: TransferState, error: str = "") -> None:
        self._change(transfer_id, state=state, error=error, speed=None, eta_s=None, stalled_s=0.0, note="")
        item = self._items.get(transfer_id)
        if item is not None:
            self._on_end(item)

    def _tell(self) -> None:
        self._publish(self.transfers)
