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

    A job's code is downloaded as one file, directly to the working directory. If that is not writable or is
    the file system's root, the platform's download folder is used instead.
    """
    parent = Path.cwd()
    if not os.access(parent, os.W_OK) or parent == Path(parent.anchor):
        parent = platformdirs.user_downloads_path()
    if request.archive:
        return parent
    job = request.job
    name = re.sub(r"[^\w.-]+", "_", f"{job.project_name}_{job.id}")[:80].lstrip(".-") or "job"
    return parent / name


ResolveConflicts = Callable[[DownloadPlan, Existing | None], Awaitable[Existing | None]]
"""Decides whether to overwrite existing files, given the decision of an earlier attempt, if any.

None drops the download. Raises DownloadError.
"""


@dataclass(slots=True)
class _QueuedDownload:
    request: DownloadRequest
    folder: Path
    transfer: Transfer
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
        self._transfer_ids = count(1)
        self._transfer_lock = asyncio.Lock()

    def begin(self, request: DownloadRequest, folder: Path) -> str:
        """Add a download to the list; return its ID.

        It replaces an ended download of the same data to the same folder.
        """
        for other_id, other_download in list(self._downloads.items()):
            is_same = other_download.request.content == request.content and other_download.folder == folder
            if is_same and other_download.transfer.state in ENDED:
                self._drop(other_id)
        transfer_id = str(next(self._transfer_ids))
        transfer = Transfer(
            transfer_id, request.title, str(folder), TransferState.PLANNING, size_bytes=request.size_bytes
        )
        self._downloads[transfer_id] = _QueuedDownload(request, folder, transfer)
        self._publish_snapshot()
        return transfer_id

    async def download(self, transfer_id: str, resolve_conflicts: ResolveConflicts) -> None:
        """Plan a download, wait for its turn, and run it; the list shows the outcome."""
        queued_download = self._downloads[transfer_id]
        queued_download.task = asyncio.current_task()
        self._change(transfer_id, state=TransferState.PLANNING, error="", speed=None, eta_s=None)
        try:
            plan = await self._plan(queued_download)
            self._change(transfer_id, size_bytes=plan.total_bytes, folder=str(plan.folder))
            existing = await resolve_conflicts(plan, queued_download.existing)
            if existing is None:
                self._drop(transfer_id)
                return
            queued_download.existing = existing if plan.conflicts else queued_download.existing
            self._change(transfer_id, state=TransferState.WAITING)
            async with self._transfer_lock:
                self._change(transfer_id, state=TransferState.ACTIVE)
                report = await self._session.client.downloads.run(
                    plan, on_progress=partial(self._show_progress, transfer_id), existing=existing
                )
        except (ApiClientError, OSError) as error:
            self._end(transfer_id, TransferState.FAILED, sanitize(str(error)))
        except Exception as error:  # noqa: BLE001 - the list shows the error
            self._end(transfer_id, TransferState.FAILED, sanitize(f"{type(error).__name__}: {error}"))
        else:
            self._finish(transfer_id, report)

    async def _plan(self, queued: _QueuedDownload) -> DownloadPlan:
        downloads, request, folder = self._session.client.downloads, queued.request, queued.folder
        job = request.job
        if request.archive:
            name = job.name or job.project_name  # the name that screens show
            return await downloads.plan_archive(job.project_id, job.id, folder, project_name=name)
        if request.files:
            return await downloads.plan_files(
                job.project_id, job.id, folder, request.files, by_rank=request.by_rank
            )
        return await downloads.plan_checkpoints(
            job.project_id, job.id, folder, checkpoints=request.checkpoints
        )

    def _show_progress(self, transfer_id: str, progress: DownloadProgress) -> None:
        if self._downloads[transfer_id].transfer.state is TransferState.ACTIVE:
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
        if queued is not None and queued.task is not None and queued.transfer.state not in ENDED:
            queued.task.cancel()
            self._end(transfer_id, TransferState.CANCELLED)

    def can_retry(self, transfer_id: str) -> bool:
        return transfer_id in self._downloads and self._downloads[transfer_id].transfer.state in RESUMABLE

    def clear(self) -> None:
        for transfer_id, queued in list(self._downloads.items()):
            if queued.transfer.state in ENDED:
                self._drop(transfer_id)

    def _finish(self, transfer_id: str, report: DownloadReport) -> None:
        problems = []
        if report.failed:
            problems.append(f"{len(report.failed):,} of {counted(len(report.files), 'file')} failed")
            problems.append(sanitize(report.failed[0].error))
        if report.refused:
            refusal = report.refused[0]
            problems.append(f"{counted(len(report.refused), 'refused name')} ({sanitize(refusal.reason)})")
        size_bytes = sum(file.size_bytes or 0 for file in report.files)
        self._change(transfer_id, files=report.files, folder=str(report.folder), size_bytes=size_bytes)
        state = TransferState.FAILED if report.failed else TransferState.DONE
        self._end(transfer_id, state, "; ".join(problems))

    def _change(self, transfer_id: str, **changes: Any) -> None:
        queued = self._downloads[transfer_id]
        queued.transfer = replace(queued.transfer, **changes)
        self._publish_snapshot()

    def _drop(self, transfer_id: str) -> None:
        del self._downloads[transfer_id]
        self._publish_snapshot()

    def _end(self, transfer_id: str, state: TransferState, error: str = "") -> None:
        files = tuple(
            file if file.state.is_final else replace(file, state=FileState.WAITING)
            for file in self._downloads[transfer_id].transfer.files
        )
        reset: dict[str, Any] = {"speed": None, "eta_s": None, "stalled_s": 0.0, "note": ""}
        self._change(transfer_id, state=state, error=error, files=files, **reset)
        self._on_end(self._downloads[transfer_id].transfer)

    def _publish_snapshot(self) -> None:
        self._publish(Transfers(tuple(queued.transfer for queued in self._downloads.values())))
