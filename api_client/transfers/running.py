"""Run a download plan: several files at once, progress a few times a second, and the result."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from api_client.clock import Clock
from api_client.errors import RequestError
from api_client.http.retry import RetryPolicy
from api_client.transfers.file_download import DownloadContext, FileDownload
from api_client.transfers.objects import Objects
from api_client.transfers.part_file import PartFile
from api_client.transfers.planning import UrlCache, is_there, refreshed_plan
from api_client.transfers.records import (
    DownloadError,
    DownloadPlan,
    DownloadReport,
    Existing,
    FileProgress,
    FileState,
    NoRoom,
    OnProgress,
    PlannedFile,
    ProgressMeter,
)

REPORT_EVERY_S = 0.2


_MAX_RENAMES = 10_000


def free_name(file: PlannedFile) -> tuple[Path, bool]:
    """Return an unused name beside the file's own, or one that already holds this file (then True)."""
    stem, ending = file.path.stem, file.path.suffix
    for number in range(1, _MAX_RENAMES):
        candidate = file.path.with_name(f"{stem}.{number}{ending}")
        if is_there(file, candidate):
            return candidate, True
        if not os.path.lexists(candidate):
            return candidate, False
    raise DownloadError(f"{file.path.name}: too many files with this name")


FILES_AT_ONCE = 4
REQUESTS_AT_ONCE = 4  # limit for all files together; more were measured to be slower
FAILURES_IN_A_ROW = 8
"""After this many consecutive failures the rest is skipped: nobody waits for 5,000 timeouts."""

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Task:
    """A file to fetch: its place in the plan, and its destination."""

    place: int
    file: PlannedFile
    path: Path


class DownloadRun:
    """Executes one plan, once."""

    def __init__(
        self,
        plan: DownloadPlan,
        objects: Objects,
        urls: UrlCache,
        *,
        clock: Clock,
        retry: RetryPolicy,
        on_progress: OnProgress | None,
        existing: Existing,
    ) -> None:
        self._plan = plan
        self._clock = clock
        self._existing = existing
        self._on_progress = on_progress
        self._objects = objects
        self._urls = urls
        self._retry = retry
        self._failed_in_a_row = 0
        self._last_error = ""

    async def run(self) -> DownloadReport:
        """Run the plan. Raises NoRoom; any other error fails only its own file."""
        began_s = self._clock.monotonic()
        plan = await asyncio.to_thread(refreshed_plan, self._plan)
        begun = await asyncio.to_thread(lambda: [self._begun(file) for file in plan.files])
        todo = [
            _Task(place, file, progress.path)
            for place, (file, progress) in enumerate(zip(plan.files, begun, strict=True))
            if not progress.state.is_final
        ]
        _check_disk_space(plan, todo)
        meter = self._meter = ProgressMeter(begun, self._clock.monotonic)
        self._context = DownloadContext(
            job_id=plan.job_id,
            folder=plan.folder,
            objects=self._objects,
            urls=self._urls,
            requests=asyncio.Semaphore(REQUESTS_AT_ONCE),
            meter=meter,
            clock=self._clock,
            retry=self._retry,
        )
        waiting = iter(todo)
        failure: BaseException | None = None
        reporting = asyncio.create_task(self._report_progress())
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(FILES_AT_ONCE, len(todo))):
                    group.create_task(self._work(waiting))
        except* NoRoom as errors:
            failure = errors.exceptions[0]
        finally:
            reporting.cancel()
            self._report()
        if failure is not None:
            raise failure
        return DownloadReport(
            folder=plan.folder,
            files=meter.files,
            refused=plan.refused,
            fetched_bytes=meter.fetched_bytes,
            elapsed_s=self._clock.monotonic() - began_s,
        )

    async def _report_progress(self) -> None:
        """Report even while no data arrives, so that the listener sees the speed fall."""
        while True:
            self._report()
            await self._clock.sleep(REPORT_EVERY_S)

    def _report(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._meter.progress())

    def _begun(self, file: PlannedFile) -> FileProgress:
        """Decide what to do about a file: its state is final if it is not fetched."""
        begun = FileProgress(file.name, file.path, size_bytes=file.size_bytes)
        if is_there(file):
            return replace(begun, state=FileState.SKIPPED, note="already there")
        if not os.path.lexists(file.path) or self._existing is Existing.OVERWRITE:
            return begun
        if self._existing is Existing.RENAME:
            path, is_same = free_name(file)
            return replace(begun, path=path, state=FileState.SKIPPED if is_same else FileState.WAITING)
        return replace(begun, state=FileState.SKIPPED, note="another file exists; left unchanged")

    async def _work(self, waiting: Iterator[_Task]) -> None:
        for task in waiting:
            if self._failed_in_a_row >= FAILURES_IN_A_ROW:
                reason = f"not tried because {FAILURES_IN_A_ROW} others failed: {self._last_error}"
                self._fail(task, reason, is_retryable=True)
                continue
            try:
                await self._fetch(task)
            except NoRoom as error:
                self._fail(task, str(error))
                raise
            except (DownloadError, RequestError) as error:
                self._failed_in_a_row += 1
                self._last_error = str(error)
                self._fail(task, str(error), is_retryable=isinstance(error, RequestError) and error.retryable)
            else:
                self._failed_in_a_row = 0

    def _fail(self, task: _Task, error: str, *, is_retryable: bool = False) -> None:
        self._meter.change(task.place, state=FileState.FAILED, error=error, is_retryable=is_retryable)

    async def _fetch(self, task: _Task) -> None:
        place, meter = task.place, self._meter
        meter.change(place, state=FileState.ACTIVE)
        download = FileDownload(self._context, place, self._urls[task.file.key])
        part = await download.fetch(task.path)
        try:
            meter.change(place, state=FileState.VERIFYING)
            await asyncio.to_thread(self._finish, part, task.path, download.modified_s)
        finally:
            await asyncio.shield(asyncio.to_thread(part.close))
        meter.change(
            place,
            state=FileState.DONE,
            done_bytes=part.done_bytes,
            size_bytes=part.done_bytes,
            verified_by=download.verified_by,
            note="",
        )

    def _finish(self, part: PartFile, path: Path, modified_s: float | None) -> None:
        if self._existing is not Existing.OVERWRITE and os.path.lexists(path):
            raise DownloadError(f"{path.name} appeared meanwhile; left unchanged")
        if path.is_dir():
            raise DownloadError(f"{path} is a directory; left unchanged")
        part.finish(modified_s)


def _check_disk_space(plan: DownloadPlan, todo: Sequence[_Task]) -> None:
    needed_bytes = sum(max(0, (task.file.size_bytes or 0) - task.file.part_bytes) for task in todo)
    if plan.free_bytes is not None and needed_bytes > plan.free_bytes:
        raise NoRoom(
            f"{plan.folder} has {plan.free_bytes / MIB:,.0f} MiB free, but the download needs "
            f"{needed_bytes / MIB:,.0f} MiB; nothing was downloaded"
        )
