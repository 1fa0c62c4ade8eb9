"""The dashboard's download queue: one download at a time, several files at once; independent of screens."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import platformdirs

from api_client.errors import ApiClientError
from api_client.transfers import (
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


def proposed_folder(request: DownloadRequest) -> Path:
    """Return the default folder of a download: a subfolder for the job in the working directory.

    The archive of a job creates its own folder. If the working directory is not writable or is the file
    system's root, the platform's download folder is used.
    """
    here = Path.cwd()
    if not os.access(here, os.W_OK) or here == Path(here.anchor):
        here = platformdirs.user_downloads_path()
    if request.archive:
        return here
    job = request.job
    name = re.sub(r"[^\w.-]+", "_", f"{job.project_name}_{job.id}")[:80].lstrip(".-") or "job"
    return here / name


Check = Callable[[DownloadPlan, Existing | None], Awaitable[Existing | None]]
"""Decides whether to overwrite existing files, given an earlier decision; None drops the download.

Raises DownloadError.
"""


@dataclass(slots=True)
class _QueuedDownload:
    request: DownloadRequest
    folder: Path
    item: Transfer
    existing: Existing | None = None
    task: asyncio.Task[None] | None = None


class DownloadsFeed:
    """Plans and runs downloads, and publishes ``Transfers`` after every change.

    ``on_end`` is called for each download that has ended.
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
        self._downloads: dict[str, _QueuedDownload] = {}
        self._ids = count(1)
        self._running = asyncio.Lock()

    def begin(self, request: DownloadRequest, folder: Path) -> str:
        """Add a download to the list; it replaces an ended one of the same data in the same folder."""
        for old_id, old in list(self._downloads.items()):
            is_same = old.request.content == request.content and old.folder == folder
            if is_same and old.item.state in ENDED:
                self._drop(old_id)
        transfer_id = str(next(self._ids))
        item = Transfer(
            transfer_id, request.title, str(folder), TransferState.PLANNING, size_bytes=request.size_bytes
        )
        self._downloads[transfer_id] = _QueuedDownload(request, folder, item)
        self._publish_snapshot()
        return transfer_id

    async def download(self, transfer_id: str, check: Check) -> None:
        """Plan a download, wait for its turn, and run it; the list shows the outcome."""
        queued = self._downloads[transfer_id]
        queued.task = asyncio.current_task()
        self._change(transfer_id, state=TransferState.PLANNING, error="", speed=None, eta_s=None)
        try:
            plan = await self._plan(queued)
            self._change(transfer_id, size_bytes=plan.total_bytes, folder=str(plan.folder))
            existing = await check(plan, queued.existing)
            if existing is None:
                self._drop(transfer_id)
                return
            queued.existing = existing if plan.conflicts else queued.existing
            self._change(transfer_id, state=TransferState.WAITING)
            async with self._running:
                self._change(transfer_id, state=TransferState.ACTIVE)
                report = await self._session.client.downloads.run(
                    plan, on_progress=partial(self._show_progress, transfer_id), existing=existing
                )
        except (ApiClientError, OSError) as error:
            self._end(transfer_id, TransferState.FAILED, sanitize(str(error)))
        except Exception as error:  # noqa: BLE001 - the list shows it
            self._end(transfer_id, TransferState.FAILED, sanitize(f"{type(error).__name__}: {error}"))
        else:
            self._finish(transfer_id, report)

    async def _plan(self, queued: _QueuedDownload) -> DownloadPlan:
        downloads, request, folder = self._session.client.downloads, queued.request, queued.folder
        job = request.job
        if request.archive:
            name = job.name or job.project_name  # as the job is called on the screen
            return await downloads.plan_archive(job.project_id, job.id, folder, project_name=name)
        if request.files:
            return await downloads.plan_files(
                job.project_id, job.id, folder, request.files, by_rank=request.by_rank
            )
        return await downloads.plan_checkpoints(
            job.project_id, job.id, folder, checkpoints=request.checkpoints
        )

    def _show_progress(self, transfer_id: str, progress: DownloadProgress) -> None:
        if self._downloads[transfer_id].item.state is TransferState.ACTIVE:
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

    def cancel(self, transfer_id: str) -> None:
        """Cancel a download; files received so far are kept."""
        queued = self._downloads.get(transfer_id)
        if queued is not None and queued.task is not None and queued.item.state not in ENDED:
            queued.task.cancel()
            self._end(transfer_id, TransferState.CANCELLED)

    def can_retry(self, transfer_id: str) -> bool:
        return transfer_id in self._downloads and self._downloads[transfer_id].item.state in RESUMABLE

    def clear(self) -> None:
        for transfer_id, queued in list(self._downloads.items()):
            if queued.item.state in ENDED:
                self._drop(transfer_id)

    def _finish(self, transfer_id: str, report: DownloadReport) -> None:
        problems = []
        if report.failed:
            problems.append(f"{len(report.failed):,} of {counted(len(report.files), 'file')} failed")
            problems.append(sanitize(report.failed[0].error))
        if report.refused:
            first = report.refused[0]
            problems.append(f"{counted(len(report.refused), 'refused name')} ({sanitize(first.reason)})")
        size = sum(file.size_bytes or 0 for file in report.files)
        self._change(transfer_id, files=report.files, folder=str(report.folder), size_bytes=size)
        state = TransferState.FAILED if report.failed else TransferState.DONE
        self._end(transfer_id, state, "; ".join(problems))

    def _change(self, transfer_id: str, **changes: Any) -> None:
        queued = self._downloads[transfer_id]
        queued.item = replace(queued.item, **changes)
        self._publish_snapshot()

    def _drop(self, transfer_id: str) -> None:
        del self._downloads[transfer_id]
        self._publish_snapshot()

    def _end(self, transfer_id: str, state: TransferState, error: str = "") -> None:
        files = tuple(
            file if file.state.is_final else replace(file, state=FileState.WAITING)
            for file in self._downloads[transfer_id].item.files
        )
        idle: dict[str, Any] = {"speed": None, "eta_s": None, "stalled_s": 0.0, "note": ""}
        self._change(transfer_id, state=state, error=error, files=files, **idle)
        self._on_end(self._downloads[transfer_id].item)

    def _publish_snapshot(self) -> None:
        self._publish(Transfers(tuple(queued.item for queued in self._downloads.values())))
