"""Run a download's plan: several files at once, each in parts by concurrent requests, and verified."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import stat
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from api_client.clock import Clock
from api_client.errors import InvalidAnswer, RequestError, Unreachable, UrlExpired
from api_client.http.retry import RetryPolicy
from api_client.transfers.objects import ObjectHead, Objects, RangeOutside
from api_client.transfers.part_file import FileIdentity, PartFile, resumable_bytes
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

PART_BYTES = 16 * 1024 * 1024  # size of one request for a larger file
SAVE_BYTES = 1024 * 1024  # kept in memory until they are written at once
REQUESTS_AT_ONCE = 4  # limit for all files together; more were measured to be slower
PARTS_AT_ONCE = 4  # on loopback one is as fast; distant stores need several
FILES_AT_ONCE = 4
REPORT_EVERY_S = 0.2
FAILURES_IN_A_ROW = 8  # then the rest is skipped: nobody waits for 5,000 timeouts
MAX_FAILED_RENEWALS = 2  # fresh URLs that may fail without data before the store's refusal counts as final
MAX_FRESH_STARTS = 2  # maximum number of restarts for a file that changed or arrived damaged
TIME_TOLERANCE_S = 2.0  # coarsest resolution of modification times in common file systems
MIB = 1024 * 1024
_MAX_RENAMES = 10_000


def identity_of(file: PlannedFile, job_id: str) -> FileIdentity:
    return FileIdentity(job_id, file.name, file.node_rank, file.last_modified, file.size_bytes)


def refreshed_plan(plan: DownloadPlan) -> DownloadPlan:
    """Return the plan updated with the disk's state: parts, conflicts, free space."""
    files = tuple(
        replace(file, part_bytes=resumable_bytes(file.path, identity_of(file, plan.job_id)))
        for file in plan.files
    )
    conflicts, needed_bytes = [], 0
    for file in files:
        if is_there(file):
            continue
        if os.path.lexists(file.path):
            conflicts.append(file)
        needed_bytes += max(0, (file.size_bytes or 0) - file.part_bytes)
    return replace(
        plan,
        files=files,
        total_bytes=sum(file.size_bytes or 0 for file in files),
        needed_bytes=needed_bytes,
        free_bytes=free_bytes(plan.folder),
        conflicts=tuple(conflicts),
    )


def is_there(file: PlannedFile, path: Path | None = None) -> bool:
    """Return True if the file already exists: a regular file of the same size and time.

    The rule is the same as rsync's. The time is the server's, which downloads set on their files; without
    a time, the same size is enough.
    """
    try:
        about = (path or file.path).lstat()
    except OSError:
        return False
    if not stat.S_ISREG(about.st_mode) or about.st_size != file.size_bytes:
        return False
    modified_s = modified(file.last_modified)
    return modified_s is None or abs(about.st_mtime - modified_s) <= TIME_TOLERANCE_S


def modified(text: str) -> float | None:
    """Parse a server's time to epoch seconds; None if it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def free_bytes(folder: Path) -> int | None:
    """Return the free space where the folder is, or will be; None if unknown."""
    for candidate in (folder.absolute(), *folder.absolute().parents):
        try:
            return shutil.disk_usage(candidate).free
        except OSError:
            continue
    return None


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


@dataclass
class DownloadRun:
    """Executes one plan, once. ``renew`` lists its files again, with fresh URLs."""

    plan: DownloadPlan
    objects: Objects
    renew: Callable[[], Awaitable[list[PlannedFile]]]
    clock: Clock
    retry: RetryPolicy
    on_progress: OnProgress | None = None
    existing: Existing = Existing.SKIP

    def __post_init__(self) -> None:
        self.requests = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self.random = Random()
        self._listed = {file.key: file for file in self.plan.files}
        self._renewing = asyncio.Lock()
        self._failed_in_a_row = 0
        self._last_error = ""

    async def run(self) -> DownloadReport:
        """Run the plan. Raises NoRoom; any other error fails only its own file."""
        began_s = self.clock.monotonic()
        plan = self.plan = await asyncio.to_thread(refreshed_plan, self.plan)
        begun = await asyncio.to_thread(lambda: [self._begun(file) for file in plan.files])
        todo = [index for index, progress in enumerate(begun) if not progress.state.is_final]
        self._check_disk_space([plan.files[index] for index in todo])
        meter = self.meter = ProgressMeter(begun, self.clock.monotonic)
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
        elapsed_s = self.clock.monotonic() - began_s
        return DownloadReport(plan.folder, meter.files, plan.refused, meter.fetched_bytes, elapsed_s)

    def listed(self, index: int) -> PlannedFile:
        """Return the file as it was listed last."""
        return self._listed[self.plan.files[index].key]

    async def renew_url(self, stale: PlannedFile) -> None:
        """List the files again, once for all that wait. Raises DownloadError if the file is gone.

        Also raises the errors of listing the files.
        """
        async with self._renewing:
            if self._listed[stale.key] is stale:
                self._listed |= {file.key: file for file in await self.renew() if file.key in self._listed}
                if self._listed[stale.key] is stale:
                    raise DownloadError("the job no longer has this file")

    async def _report_progress(self) -> None:
        """Report even while no data arrives, so that the listener sees the speed fall."""
        while True:
            self._report()
            await self.clock.sleep(REPORT_EVERY_S)

    def _report(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.meter.progress())

    def _begun(self, file: PlannedFile) -> FileProgress:
        """Decide what to do about a file: its state is final if it is not fetched."""
        begun = FileProgress(file.name, file.path, size_bytes=file.size_bytes)
        if is_there(file):
            return replace(begun, state=FileState.SKIPPED, note="already there")
        if not os.path.lexists(file.path) or self.existing is Existing.OVERWRITE:
            return begun
        if self.existing is Existing.RENAME:
            path, is_same = free_name(file)
            return replace(begun, path=path, state=FileState.SKIPPED if is_same else FileState.WAITING)
        return replace(begun, state=FileState.SKIPPED, note="another file exists; left unchanged")

    async def _work(self, waiting: Iterator[int]) -> None:
        for index in waiting:
            try:
                if self._failed_in_a_row >= FAILURES_IN_A_ROW:
                    reason = f"not tried because {FAILURES_IN_A_ROW} others failed: {self._last_error}"
                    self._fail(index, reason, is_retryable=True)
                else:
                    await self._fetch(index)
                    self._failed_in_a_row = 0
            except NoRoom as error:
                self._fail(index, str(error))
                raise
            except (DownloadError, RequestError) as error:
                self._failed_in_a_row += 1
                self._last_error = str(error)
                self._fail(
                    index, str(error), is_retryable=isinstance(error, RequestError) and error.retryable
                )

    def _fail(self, index: int, error: str, *, is_retryable: bool = False) -> None:
        self.meter.change(index, state=FileState.FAILED, error=error, is_retryable=is_retryable)

    async def _fetch(self, index: int) -> None:
        path, meter = self.meter.files[index].path, self.meter
        meter.change(index, state=FileState.ACTIVE)
        part = PartFile(path, self.plan.folder, identity_of(self.listed(index), self.plan.job_id))
        try:
            await asyncio.to_thread(part.open)
            verified_by = await _FileDownload(self, index, part).fetch()
            meter.change(index, state=FileState.VERIFYING)
            await asyncio.to_thread(self._finish, part, modified(self.listed(index).last_modified))
        finally:
            # The thread finishes even if this task is canceled.
            await asyncio.shield(asyncio.to_thread(part.close))
        size_bytes = part.done_bytes
        done = {"done_bytes": size_bytes, "size_bytes": size_bytes, "verified_by": verified_by, "note": ""}
        meter.change(index, state=FileState.DONE, **done)

    def _finish(self, part: PartFile, modified_s: float | None) -> None:
        if self.existing is not Existing.OVERWRITE and os.path.lexists(part.path):
            raise DownloadError(f"{part.path.name} appeared meanwhile; left unchanged")
        if part.path.is_dir():
            raise DownloadError(f"{part.path} is a directory; left unchanged")
        part.finish(modified_s)

    def _check_disk_space(self, todo: list[PlannedFile]) -> None:
        plan = self.plan
        needed_bytes = sum(max(0, (file.size_bytes or 0) - file.part_bytes) for file in todo)
        if plan.free_bytes is not None and needed_bytes > plan.free_bytes:
            raise NoRoom(
                f"{plan.folder} has {plan.free_bytes / MIB:,.0f} MiB free, but the download needs "
                f"{needed_bytes / MIB:,.0f} MiB; nothing was downloaded"
            )


class _ObjectChanged(Exception):
    """The object differs from the one whose bytes were already downloaded."""


class _RangesIgnored(Exception):
    """The server sends the whole object instead of a part."""


class _FileDownload:
    """Downloads one file, the run's ``index``-th, into its open part file; the caller renames it."""

    def __init__(self, run: DownloadRun, index: int, part: PartFile) -> None:
        self._run = run
        self._index = index
        self._part = part
        self._honors_ranges = True

    async def fetch(self) -> str:
        """Fetch the file and verify it. Returns by what: ``size``, or the algorithm of the server's digest.

        Raises DownloadError, RequestError and its subclasses; the bytes that arrived are kept then.
        """
        self._report(done_bytes=self._part.done_bytes)
        for fresh_starts in range(MAX_FRESH_STARTS + 1):
            try:
                await self._fill()
                return await self._verify()
            except _ObjectChanged as error:
                reason = str(error)
            if fresh_starts < MAX_FRESH_STARTS:
                self._report(note=f"{reason}; starting over")
                # The listing may be as old as the bytes.
                await self._run.renew_url(self._run.listed(self._index))
            await asyncio.to_thread(self._part.start_over, self._identity())
            self._report(done_bytes=0)
        raise DownloadError(reason)

    def _report(self, **news: object) -> None:
        self._run.meter.change(self._index, **news)

    def _identity(self) -> FileIdentity:
        return identity_of(self._run.listed(self._index), self._run.plan.job_id)

    async def _verify(self) -> str:
        """Compare the digest of all bytes with the server's; the size was compared while they arrived."""
        expected = self._part.identity.digest
        if not expected:
            return "size"
        self._report(state=FileState.VERIFYING)
        algorithm = expected.partition(":")[0]
        hasher, offset = hashlib.new(algorithm, usedforsecurity=False), 0
        while read_bytes := await asyncio.to_thread(self._part.feed, hasher, offset):
            offset += read_bytes
        if f"{algorithm}:{hasher.hexdigest()}" != expected:
            raise _ObjectChanged(f"its {algorithm} differs from the server's")
        return algorithm

    async def _fill(self) -> None:
        """Fetch what is missing; bytes that arrived stay.

        Raises _ObjectChanged, DownloadError, RequestError.
        """
        missing = deque(self._part.missing(PART_BYTES if self._honors_ranges else None))
        error: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(PARTS_AT_ONCE, len(missing))):
                    group.create_task(self._fetch_parts(missing))
        except* (_ObjectChanged, _RangesIgnored, DownloadError, RequestError) as failures:
            error = _first(failures)
        if isinstance(error, _RangesIgnored):
            self._honors_ranges = False
            await self._fill()
        elif error is not None:
            raise error

    async def _fetch_parts(self, missing: deque[tuple[int, int | None]]) -> None:
        while missing:
            await self._fetch_part(*missing.popleft())

    async def _fetch_part(self, start: int, end: int | None) -> None:
        """Fetch one part, resuming after every interruption. No ``end`` means the file's end."""
        failures = renewals = 0
        while True:
            listed = self._run.listed(self._index)
            position, problem = await self._request(listed.url, start, end)
            if problem is None:
                return
            if position > start:
                start, failures, renewals = position, 0, 0
            if isinstance(problem, UrlExpired) and renewals < MAX_FAILED_RENEWALS:
                renewals += 1
                self._report(note="URL expired; requesting a new one")
                await self._run.renew_url(listed)
            else:
                failures += 1
                await self._wait(problem, failures)

    async def _wait(self, problem: RequestError, failures: int) -> None:
        """Wait before the next attempt, or raise the problem if there is none."""
        run = self._run
        delay_s = run.retry.delay_s(problem, attempt=failures, invalid_answers=failures, random=run.random)
        if delay_s is None:
            problem.attempts = failures
            raise problem
        self._report(note=f"{problem}; retrying in {delay_s:.1f} s")
        await run.clock.sleep(delay_s)

    async def _request(self, url: str, start: int, end: int | None) -> tuple[int, RequestError | None]:
        """Send one request. Returns where its bytes end, and the error that interrupted them."""
        part, starts = self._part, self._part.starts
        position = saved = start
        pieces: list[bytes] = []
        asks_range = start > 0 or end not in (None, part.size_bytes)
        try:
            async with (
                self._run.requests,
                self._run.objects.open(url, start=start, end=end if asks_range else None) as answer,
            ):
                self._check_head(answer.head, asks_range)
                async for piece in answer.pieces:
                    if part.size_bytes is not None and position + len(piece) > part.size_bytes:
                        raise InvalidAnswer("the store sent more than the size of the file")
                    pieces.append(piece)
                    position += len(piece)
                    self._run.meter.arrived(self._index, len(piece))
                    if position - saved >= SAVE_BYTES:
                        offset, content, saved, pieces = saved, pieces, position, []
                        await asyncio.to_thread(part.save, offset, content, starts)
            if answer.head.total_bytes is None:
                self._check_end(position, end)
        except RangeOutside:
            raise _ObjectChanged("the file ends before the requested part") from None
        except RequestError as error:
            return position, error
        finally:
            if pieces:  # the thread finishes even if this task is canceled
                await asyncio.shield(asyncio.to_thread(part.save, saved, pieces, starts))
        return position, None

    def _check_head(self, head: ObjectHead, asks_range: bool) -> None:
        """Check an answer's headers before its body is read."""
        part = self._part
        if asks_range and not head.is_partial and self._honors_ranges:
            raise _RangesIgnored
        if not head.is_partial and "html" in head.content_type and head.total_bytes != part.size_bytes:
            raise InvalidAnswer("got a web page instead of the file")
        if None not in (head.total_bytes, part.size_bytes) and head.total_bytes != part.size_bytes:
            raise _ObjectChanged(
                f"it has {head.total_bytes:,} bytes instead of the listed {part.size_bytes:,}"
            )
        if not part.identify(size_bytes=head.total_bytes, version=head.version, digest=head.digest):
            raise _ObjectChanged("the file was replaced")
        if part.size_bytes is not None:
            self._report(size_bytes=part.size_bytes)

    def _check_end(self, position: int, end: int | None) -> None:
        """Take the end of a body without an announced length as the end of the file, if that is possible."""
        part = self._part
        if part.size_bytes is None:
            part.identify(size_bytes=position)
            self._report(size_bytes=position)
        elif position < (part.size_bytes if end is None else end):
            raise Unreachable("the store closed the connection in the middle of the file", method="GET")


def _first(errors: BaseExceptionGroup[Exception]) -> BaseException:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
