"""Download one file in parts by concurrent requests, and verify it."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from api_client.clock import Clock
from api_client.errors import InvalidAnswer, RequestError, Unreachable, UrlExpired
from api_client.http.retry import RetryPolicy
from api_client.transfers.object_answers import ObjectHead, RangeOutside
from api_client.transfers.objects import Objects
from api_client.transfers.part_file import FileIdentity, PartFile
from api_client.transfers.planning import UrlCache, identity_of, modified
from api_client.transfers.records import DownloadError, DownloadPlan, PlannedFile, ProgressMeter

PART_BYTES = 16 * 1024 * 1024  # size of one request for a larger file
RECORD_BYTES = 4 * 1024 * 1024  # all that a killed process can lose of a part
REQUESTS_AT_ONCE = 4  # limit for all files together; more were measured to be slower
PARTS_AT_ONCE = 4  # on loopback one is as fast; distant stores need several
SWIFT_RETRY_BYTES = 64 * 1024  # a connection that delivered this much before it broke is replaced at once
MAX_FAILED_RENEWALS = 2  # fresh URLs that may fail without data before the store's refusal counts as final
MAX_FRESH_STARTS = 2  # maximum number of restarts for a file that changed or arrived damaged


@dataclass(frozen=True, slots=True)
class DownloadContext:
    """What all files of a run share. ``requests`` bounds the concurrent requests."""

    plan: DownloadPlan
    objects: Objects
    urls: UrlCache
    clock: Clock
    retry: RetryPolicy
    requests: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(REQUESTS_AT_ONCE))
    random: Random = field(default_factory=Random)


class _ObjectChanged(Exception):
    """The object differs from the one whose bytes were already downloaded."""


class _RangesIgnored(Exception):
    """The server sends the whole object instead of a part."""


class FileDownload:
    """Downloads one file into its part file and verifies it; the caller renames it.

    ``place`` is the file's in the run's progress. ``verified_by`` says how a complete file was verified:
    ``size``, or a digest algorithm.
    """

    def __init__(
        self, context: DownloadContext, meter: ProgressMeter, place: int, listed: PlannedFile
    ) -> None:
        self._context = context
        self._meter = meter
        self._place = place
        self._listed = listed
        self._ignores_ranges = False
        self.verified_by = ""

    @property
    def modified_s(self) -> float | None:
        return modified(self._listed.last_modified)

    async def fetch(self, path: Path) -> PartFile:
        """Open the part file and fill it; the caller closes it.

        Raises DownloadError, RequestError and its subclasses; the bytes that arrived are kept then.
        """
        part = await self._opened(path)
        try:
            self._report(done_bytes=part.done_bytes)
            await self._fetch_verified(part)
        except BaseException:
            # The thread finishes even if this task is cancelled.
            await asyncio.shield(asyncio.to_thread(part.close))
            raise
        return part

    def _report(self, **news: object) -> None:
        self._meter.change(self._place, **news)

    def _identity(self) -> FileIdentity:
        return identity_of(self._listed, self._context.plan.job_id)

    async def _opened(self, path: Path) -> PartFile:
        opening = asyncio.ensure_future(
            asyncio.to_thread(PartFile, path, self._context.plan.folder, self._identity())
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unwanted)
            raise

    async def _fetch_verified(self, part: PartFile) -> None:
        for fresh_starts in range(MAX_FRESH_STARTS + 1):
            try:
                await self._fill(part)
                self.verified_by = await asyncio.to_thread(part.verify)
                if self.verified_by:
                    return
                reason = f"its {part.identity.digest.partition(':')[0]} differs from the server's"
            except _ObjectChanged as error:
                reason = str(error)
            if fresh_starts < MAX_FRESH_STARTS:
                self._report(note=f"{reason}; starting over")
                # The listing may be as old as the bytes.
                self._listed = await self._context.urls.renewed(self._listed)
            await self._start_over(part)
        raise DownloadError(reason)

    async def _start_over(self, part: PartFile) -> None:
        await asyncio.to_thread(part.start_over, self._identity())
        self._report(done_bytes=0)

    async def _fill(self, part: PartFile) -> None:
        """Fetch what is missing; bytes that arrived stay.

        Raises _ObjectChanged, DownloadError, RequestError.
        """
        if not self._ignores_ranges:
            missing = deque(part.missing(PART_BYTES))
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(PARTS_AT_ONCE, len(missing))):
                        group.create_task(self._work(part, missing))
                return
            except* (_ObjectChanged, _RangesIgnored, DownloadError, RequestError) as failures:
                error = _first(failures)
            if not isinstance(error, _RangesIgnored):
                raise error
            self._ignores_ranges = True
        await self._start_over(part)
        await self._fetch_part(part, 0, None)

    async def _work(self, part: PartFile, missing: deque[tuple[int, int | None]]) -> None:
        while missing:
            await self._fetch_part(part, *missing.popleft())

    async def _fetch_part(self, part: PartFile, start: int, end: int | None) -> None:
        """Fetch one part, resuming after every interruption. No ``end`` means the file's end."""
        failures = renewals = 0
        while True:
            listed = self._listed = self._context.urls[self._listed.key]
            position, problem = await self._request(part, listed, start, end)
            if problem is None:
                return
            arrived_bytes = position - start
            if arrived_bytes:
                failures = renewals = 0
            if not self._ignores_ranges:
                start = position
            if isinstance(problem, UrlExpired):
                renewals += 1
                if renewals > MAX_FAILED_RENEWALS:
                    raise problem
                self._report(note="URL expired; requesting a new one")
                await self._context.urls.renewed(listed)
            elif arrived_bytes >= SWIFT_RETRY_BYTES and problem.retryable:
                self._report(note=f"{problem}; resuming")
            else:
                failures += 1
                await self._wait(problem, failures)

    async def _wait(self, problem: RequestError, failures: int) -> None:
        """Wait before the next attempt, or raise the problem if there is none."""
        context = self._context
        delay_s = context.retry.delay_s(
            problem, attempt=failures, invalid_answers=failures, random=context.random
        )
        if delay_s is None:
            problem.attempts = failures
            raise problem
        self._report(note=f"{problem}; retrying in {delay_s:.1f} s")
        await context.clock.sleep(delay_s)

    async def _request(
        self, part: PartFile, listed: PlannedFile, start: int, end: int | None
    ) -> tuple[int, RequestError | None]:
        """Send one request. Returns where its bytes end, and the error that interrupted them."""
        position = recorded = start
        asks_range = not self._ignores_ranges and (start > 0 or end not in (None, part.size_bytes))

        def meet(head: ObjectHead) -> None:
            self._meet(part, head, asks_range)
            if part.size_bytes is not None:
                self._report(size_bytes=part.size_bytes)

        def take(offset: int, chunk: bytes) -> None:
            nonlocal position, recorded
            if part.size_bytes is not None and offset + len(chunk) > part.size_bytes:
                raise InvalidAnswer("the store sent more than the size of the file")
            part.write(offset, chunk)
            position = offset + len(chunk)
            # If ranges are ignored, the same bytes may arrive again.
            self._meter.arrived(self._place, len(chunk), position if self._ignores_ranges else None)
            if position - recorded >= RECORD_BYTES:
                part.record(recorded, position)
                recorded = position

        try:
            async with self._context.requests:
                head = await self._context.objects.fetch(
                    listed.url, start=start, end=end if asks_range else None, on_head=meet, on_chunk=take
                )
            if head.total_bytes is None:
                self._check_end(part, position, end)
        except RangeOutside as error:
            if end is not None or error.total_bytes != start or not part.identify(size_bytes=start):
                raise _ObjectChanged("the file became shorter") from None
        except RequestError as error:
            return position, error
        finally:
            await asyncio.shield(asyncio.to_thread(part.record, recorded, position))
        return position, None

    def _meet(self, part: PartFile, head: ObjectHead, asks_range: bool) -> None:
        """Check an answer's headers before its body is read. Runs in a thread."""
        if asks_range and not head.is_partial:
            raise _RangesIgnored
        size_bytes = part.size_bytes
        if not head.is_partial and "html" in head.content_type and head.total_bytes != size_bytes:
            raise InvalidAnswer("got a web page instead of the file")
        if None not in (head.total_bytes, size_bytes) and head.total_bytes != size_bytes:
            raise _ObjectChanged(f"it has {head.total_bytes:,} bytes instead of the listed {size_bytes:,}")
        if not part.identify(size_bytes=head.total_bytes, version=head.version, digest=head.digest):
            raise _ObjectChanged("the file was replaced")

    def _check_end(self, part: PartFile, position: int, end: int | None) -> None:
        """Take the end of a body without an announced length as the end of the file, if that is possible."""
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


def _close_unwanted(opening: asyncio.Future[PartFile]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
