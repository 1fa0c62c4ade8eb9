"""Run a download plan: several files at once, progress a few times a second, and the result."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from api_client.clock import Clock
from api_client.errors import RequestError
from api_client.http.retry import RetryPolicy
from api_client.transfers.file_download import DownloadCallbacks, DownloadContext, FileDownload
from api_client.transfers.objects import Objects
from api_client.transfers.part_file import PartFile
from api_client.transfers.planning import UrlCache, is_there, refreshed_plan
from api_client.transfers.records import (
    DownloadError,
    DownloadPlan,
    DownloadProgress,
    DownloadReport,
    Existing,
    FileProgress,
    FileState,
    NoRoom,
    OnProgress,
    PlannedFile,
)

REPORT_EVERY_S = 0.2
SPEED_OVER_S = 5.0
STALLED_AFTER_S = 3.0  # report a stall after this many seconds without a byte
NOTED_FOR_S = 3.0  # show the note about a wait or a renewal for this long after data resumes


class ProgressMeter:
    """Counts bytes from any thread. ``monotonic`` returns seconds."""

    def __init__(self, files: Sequence[FileProgress], monotonic: Callable[[], float]) -> None:
        self._files = list(files)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self.fetched_bytes = 0
        self._note = ""
        self._noted_at_s = self._arrived_at_s = monotonic()
        self._samples: deque[tuple[float, int]] = deque([(monotonic(), 0)])

    @property
    def files(self) -> tuple[FileProgress, ...]:
        with self._lock:
            return tuple(self._files)

    def change(self, place: int, **news: Any) -> None:
        """Update a file's progress; ``note`` also becomes the run's latest note."""
        with self._lock:
            self._files[place] = replace(self._files[place], **news)
            if news.get("note"):
                self._note, self._noted_at_s = news["note"], self._monotonic()
            if "state" in news:
                self._arrived_at_s = self._monotonic()  # a file that has just started has not stalled

    def arrived(self, place: int, size_bytes: int, done_bytes: int) -> None:
        """Record that ``size_bytes`` more were received and ``done_bytes`` of the file exist."""
        with self._lock:
            self.fetched_bytes += size_bytes
            self._arrived_at_s = now_s = self._monotonic()
            file = self._files[place]
            is_old = now_s - self._noted_at_s > NOTED_FOR_S
            if is_old:
                self._note = ""
            note = "" if is_old else file.note
            self._files[place] = replace(file, done_bytes=done_bytes, note=note)

    def progress(self) -> DownloadProgress:
        with self._lock:
            files = tuple(self._files)
            counted = [file for file in files if file.state is not FileState.SKIPPED]
            done_bytes = sum(file.done_bytes for file in counted)
            total_bytes = sum(max(file.size_bytes or 0, file.done_bytes) for file in counted)
            speed = self._speed()
            # Failed files will not arrive in this run.
            left_bytes = sum(
                max(0, (file.size_bytes or 0) - file.done_bytes)
                for file in counted
                if not file.state.is_final
            )
            is_known = all(file.size_bytes is not None or file.state.is_final for file in counted)
            return DownloadProgress(
                files=files,
                done_bytes=done_bytes,
                total_bytes=total_bytes,
                speed_bytes_per_s=speed,
                eta_s=left_bytes / speed if speed and is_known else None,
                files_done=sum(file.state in (FileState.DONE, FileState.SKIPPED) for file in files),
                files_failed=sum(file.state is FileState.FAILED for file in files),
                stalled_s=self._stalled_s(files),
                note=self._note,
            )

    def _stalled_s(self, files: Sequence[FileProgress]) -> float:
        states = {file.state for file in files}
        if FileState.ACTIVE not in states or FileState.VERIFYING in states:
            return 0.0
        silent_s = self._monotonic() - self._arrived_at_s
        return silent_s if silent_s >= STALLED_AFTER_S else 0.0

    def _speed(self) -> float:
        now_s = self._monotonic()
        samples = self._samples
        samples.append((now_s, self.fetched_bytes))
        while len(samples) > 2 and samples[1][0] <= now_s - SPEED_OVER_S:
            samples.popleft()
        began_s, before = samples[0]
        return (self.fetched_bytes - before) / (now_s - began_s) if now_s > began_s else 0.0


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
        requests = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._context = DownloadContext(objects, urls, requests, clock, retry, Random())
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
        download = FileDownload(
            self._context,
            self._context.urls[task.file.key],
            self._plan.job_id,
            DownloadCallbacks(
                on_arrival=partial(meter.arrived, place),
                on_note_changed=lambda note: meter.change(place, note=note),
                on_size=lambda size_bytes: meter.change(place, size_bytes=size_bytes),
            ),
        )
        part = await download.fetch(
            task.path,
            self._plan.folder,
            on_open=lambda done_bytes: meter.change(place, done_bytes=done_bytes),
        )
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
