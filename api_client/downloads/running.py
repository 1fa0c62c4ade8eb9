"""A plan carried out: a few files at once, each to its end or to a failure of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from api_client.clock import Clock
from api_client.downloads.errors import DownloadError, FilesExist, NoRoom
from api_client.downloads.file_download import FileDownload
from api_client.downloads.filling import Hooks, Means
from api_client.downloads.listing import UrlBook
from api_client.downloads.meter import Meter
from api_client.downloads.places import free_name
from api_client.downloads.planning import as_listed_again, is_taken, is_there, looked_at
from api_client.downloads.records import (
    DownloadPlan,
    DownloadReport,
    Existing,
    FileProgress,
    FileState,
    OnProgress,
    PlannedFile,
)
from api_client.errors import RequestError
from api_client.http.retry import RetryPolicy
from api_client.objects.client import Objects

FILES_AT_ONCE = 4
REQUESTS_AT_ONCE = 4
"""Over all files together; more were measured to be slower."""

FAILURES_IN_A_ROW = 8
"""After so many files that all failed the rest is not tried: nobody waits out 5,000 timeouts."""

BEAT_S = 1.0
"""How often the listener hears something even while nothing arrives."""

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Task:
    """One file to settle: where it goes, or why there is nothing to do."""

    place: int
    file: PlannedFile
    path: Path
    note: str = ""
    is_needed: bool = True


class Run:
    """Carries out one plan, once."""

    def __init__(
        self,
        plan: DownloadPlan,
        objects: Objects,
        urls: UrlBook,
        *,
        clock: Clock,
        retry: RetryPolicy,
        on_progress: OnProgress | None,
        existing: Existing,
    ) -> None:
        self._plan = plan
        self._clock = clock
        self._existing = existing
        requests = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._means = Means(objects, urls, requests, clock, retry, Random())
        self._meter = Meter(
            [FileProgress(file.name, file.path, size_bytes=file.size_bytes) for file in plan.files],
            on_progress,
            clock.monotonic,
        )
        self._failed_in_a_row = 0
        self._last_error = ""

    async def run(self) -> DownloadReport:
        """Do it. Raises FilesExist and NoRoom; anything else that goes wrong is a file's own."""
        began_s = self._clock.monotonic()
        plan = await asyncio.to_thread(looked_at, self._plan)
        tasks = await asyncio.to_thread(self._tasks, plan)
        self._settle_skipped(tasks)
        todo = [task for task in tasks if task.is_needed]
        self._check_room(plan, todo)
        waiting = iter(todo)
        workers = range(min(FILES_AT_ONCE, len(todo)))
        failure: NoRoom | None = None
        telling = asyncio.create_task(self._keep_telling())
        try:
            async with asyncio.TaskGroup() as group:
                for _ in workers:
                    group.create_task(self._work(waiting))
        except* NoRoom as errors:
            failure = _first(errors)
        finally:
            telling.cancel()
            self._meter.finish()
        if failure is not None:
            raise failure
        return DownloadReport(
            folder=plan.folder,
            files=self._meter.files,
            refused=plan.refused,
            fetched_bytes=self._meter.fetched_bytes,
            elapsed_s=self._clock.monotonic() - began_s,
            finished_at=self._clock.now(),
        )

    async def _keep_telling(self) -> None:
        """While nothing arrives the speed falls all the same, and the listener hears that."""
        while True:
            await self._clock.sleep(BEAT_S)
            self._meter.tell()

    def _tasks(self, plan: DownloadPlan) -> list[_Task]:
        """What is to be done about each file. Raises FilesExist where somebody must be asked."""
        if plan.conflicts and self._existing is Existing.ASK:
            names = ", ".join(str(file.path.relative_to(plan.folder)) for file in plan.conflicts[:3])
            more = f" and {len(plan.conflicts) - 3} more" if len(plan.conflicts) > 3 else ""
            raise FilesExist(f"other files are there already: {names}{more}", plan.conflicts)
        return [self._task(place, file) for place, file in enumerate(plan.files)]

    def _task(self, place: int, file: PlannedFile) -> _Task:
        if is_there(file):
            return _Task(place, file, file.path, "the same file is there already", is_needed=False)
        if not is_taken(file.path) or self._existing is Existing.OVERWRITE:
            return _Task(place, file, file.path)
        if self._existing is Existing.RENAME:
            path, is_same = free_name(file)
            return _Task(place, file, path, is_needed=not is_same)
        return _Task(place, file, file.path, "another file is there; left as it is", is_needed=False)

    def _settle_skipped(self, tasks: list[_Task]) -> None:
        for task in tasks:
            news = {"path": task.path, "note": task.note}
            if not task.is_needed:
                news["state"] = FileState.SKIPPED
            self._meter.settle(task.place, **news)

    def _check_room(self, plan: DownloadPlan, todo: list[_Task]) -> None:
        needed_bytes = sum(max(0, (task.file.size_bytes or 0) - task.file.part_bytes) for task in todo)
        if plan.free_bytes is not None and needed_bytes > plan.free_bytes:
            raise NoRoom(
                f"{plan.folder} has room for {plan.free_bytes / MIB:,.0f} MiB,"
                f" and {needed_bytes / MIB:,.0f} MiB are to be downloaded; nothing was fetched"
            )

    async def _work(self, waiting: Iterator[_Task]) -> None:
        for task in waiting:
            if self._failed_in_a_row >= FAILURES_IN_A_ROW:
                reason = f"not tried, as {FAILURES_IN_A_ROW} others failed: {self._last_error}"
                self._fail(task, reason, is_retryable=True)
                continue
            try:
                await self._settle(task)
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

    async def _settle(self, task: _Task) -> None:
        """Bring one file home."""
        place, meter, loop = task.place, self._meter, asyncio.get_running_loop()

        def arrived(new_bytes: int, done_bytes: int) -> None:
            meter.arrived(place, new_bytes, done_bytes)
            if meter.is_due():
                loop.call_soon_threadsafe(meter.tell)

        meter.change(place, state=FileState.ACTIVE)
        download = FileDownload(
            self._means,
            self._means.urls[as_listed_again(task.file).key],
            self._plan.job_id,
            Hooks(
                on_arrival=arrived,
                on_word=lambda word: meter.change(place, note=word),
                on_size=lambda size_bytes: meter.change(place, size_bytes=size_bytes),
            ),
        )
        part = await download.fetch(task.path, self._plan.folder, on_open=partial(meter.resumed, place))
        try:
            meter.change(place, state=FileState.VERIFYING)
            if self._existing is not Existing.OVERWRITE and await asyncio.to_thread(is_taken, task.path):
                raise DownloadError(f"{task.path.name} appeared meanwhile; it is left as it is")
            if await asyncio.to_thread(task.path.is_dir):
                raise DownloadError(f"{task.path} is a directory; it is left as it is")
            await asyncio.to_thread(part.finish, download.modified_s)
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


def _first(errors: BaseExceptionGroup[NoRoom]) -> NoRoom:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, NoRoom)
    return found
