"""Download one file in chunks by concurrent requests, and verify it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from api_client.clock import Clock
from api_client.errors import InvalidAnswer, RequestError, Unreachable, UrlExpired
from api_client.http.retry import RetryPolicy
from api_client.transfers.object_connection import ObjectHead
from api_client.transfers.objects import Objects
from api_client.transfers.part_file import ExpectedDigests, FileIdentity, PartFile, Span, parse_digest
from api_client.transfers.planning import ListedFile, UrlCache, modified
from api_client.transfers.records import DownloadError

RANGE_BYTES = 32 * 1024 * 1024
"""Size of one request for a larger file; the overhead of a request is small compared to this."""


class RangeQueue:
    """Assigns missing chunks and tracks which are being fetched."""

    def __init__(self) -> None:
        self._claimed: set[Span] = set()

    def claim(self, part: PartFile) -> Span | None:
        """Return the next missing chunk that is not being fetched; its end is -1 if the size is unknown."""
        size_bytes = part.size_bytes
        if size_bytes is None or size_bytes == 0:
            # The end is unknown, or reached already: one request finds out.
            span = (part.done_bytes, -1)
            if span in self._claimed:
                return None
            self._claimed.add(span)
            return span
        taken = [(start, end if end >= 0 else size_bytes) for start, end in self._claimed]
        for start, end in part.gaps(size_bytes):
            cursor = start
            while cursor < end:
                span = (cursor, min(end, cursor + RANGE_BYTES))
                blocking = next((each for each in taken if each[0] < span[1] and cursor < each[1]), None)
                if blocking is None:
                    self._claimed.add(span)
                    return span
                cursor = blocking[1]
        return None

    def release(self, span: Span) -> None:
        """Mark the chunk as not being fetched."""
        self._claimed.discard(span)


RANGES_IN_FLIGHT = 4
"""Concurrent requests for one file. On loopback one is as fast; distant stores need several."""

SWIFT_RETRY_BYTES = 64 * 1024
"""A connection that delivered this much before it broke is replaced at once."""

MAX_FAILED_RENEWALS = 2
"""Fresh URLs that may fail without data before the store's refusal counts as final."""


@dataclass(frozen=True, slots=True)
class DownloadCallbacks:
    """Callbacks for the progress of one file.

    ``on_arrival`` gets the number of new bytes and of all bytes, on worker threads. On the event loop,
    ``on_note_changed`` gets messages about waits and renewals; ``on_size`` gets the size once it is known.
    """

    on_arrival: Callable[[int, int], object]
    on_note_changed: Callable[[str], object]
    on_size: Callable[[int], object]


class ObjectChanged(Exception):
    """The object differs from the one whose bytes were already downloaded."""


class _RangesIgnored(Exception):
    """The server ignores ranges."""


@dataclass(frozen=True, slots=True)
class DownloadContext:
    """Resources shared by all files of a run. ``requests`` bounds the concurrent requests."""

    objects: Objects
    urls: UrlCache
    requests: asyncio.Semaphore
    clock: Clock
    retry: RetryPolicy
    random: Random


class RangeFetcher:
    """Single attempt to fill a part file: first one chunk, to probe the server, then several.

    ``promises`` collects the digests in the answers; ``listed`` is the file as it was last listed.
    """

    def __init__(
        self,
        means: DownloadContext,
        part: PartFile,
        listed: ListedFile,
        job_id: str,
        promises: ExpectedDigests,
        hooks: DownloadCallbacks,
    ) -> None:
        self._download_context = means
        self._part = part
        self.listed = listed
        self._job_id = job_id
        self._expected_digests = promises
        self._callbacks = hooks
        self._stretches = RangeQueue()
        self._ignores_ranges = False
        self._may_spread = asyncio.Event()

    async def fill(self) -> None:
        """Fill the file; bytes that arrived stay. Raises ObjectChanged, DownloadError, RequestError."""
        part = self._part
        leader_done = False

        async def lead() -> None:
            nonlocal leader_done
            try:
                await self._work()
            finally:
                leader_done = True
                self._may_spread.set()

        async def help_out() -> None:
            await self._may_spread.wait()
            if not leader_done and not self._ignores_ranges:
                await self._work()

        is_large = part.size_bytes is None or part.size_bytes - part.done_bytes > RANGE_BYTES
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(lead())
                for _ in range(RANGES_IN_FLIGHT - 1 if is_large else 0):
                    group.create_task(help_out())
        except* (ObjectChanged, DownloadError, RequestError) as failures:
            first = failures
        else:
            return
        error: BaseException = first
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error

    async def _work(self) -> None:
        part = self._part
        while (span := self._stretches.claim(part)) is not None:
            try:
                await self._fetch_span(*span)
            finally:
                self._stretches.release(span)
            if part.size_bytes is None or (part.size_bytes == 0 and not part.done_bytes):
                return

    async def _fetch_span(self, start: int, end: int) -> None:
        """Fetch one chunk, resuming after every interruption. A negative ``end`` means the file's end."""
        part = self._part
        failures = renewals = 0
        while end < 0 or start < end:
            position = start
            listed = self.listed = self._download_context.urls[self.listed.key]

            def take(offset: int, chunk: bytes) -> None:
                nonlocal position
                size_bytes = part.size_bytes
                if size_bytes is not None and offset + len(chunk) > size_bytes:
                    raise InvalidAnswer("the store sent more than the size of the file")
                part.write(offset, chunk)
                position = offset + len(chunk)
                self._callbacks.on_arrival(len(chunk), part.done_bytes)

            try:
                await self._request(listed, start, end, take)
                if end < 0 or self._ignores_ranges:
                    return
                start = position
                failures = 0
                continue
            except _RangesIgnored:
                continue
            except UrlExpired as error:
                problem: RequestError = error
            except RequestError as error:
                problem = error
            arrived_bytes = position - start
            start = position
            if arrived_bytes:
                failures = renewals = 0
            if isinstance(problem, UrlExpired):
                renewals += 1
                if renewals > MAX_FAILED_RENEWALS:
                    raise problem
                self._callbacks.on_note_changed("URL expired; requesting a new one")
                await self._download_context.urls.renewed(listed)
                continue
            if arrived_bytes >= SWIFT_RETRY_BYTES and problem.retryable:
                self._callbacks.on_note_changed(f"{problem}; resuming")
                continue
            failures += 1
            await self._wait(problem, failures)

    async def _wait(self, problem: RequestError, failures: int) -> None:
        """Wait before the next attempt, or raise the problem if there is none."""
        delay_s = self._download_context.retry.delay_s(
            problem, attempt=failures, random=self._download_context.random
        )
        if delay_s is None:
            problem.attempts = failures
            raise problem
        self._callbacks.on_note_changed(f"{problem}; retrying in {delay_s:.1f} s")
        await self._download_context.clock.sleep(delay_s)

    async def _request(
        self, listed: ListedFile, start: int, end: int, take: Callable[[int, bytes], None]
    ) -> None:
        from api_client.transfers.object_connection import RangeOutside

        part = self._part
        is_whole = start == 0 and (end < 0 or end == part.size_bytes)
        asks_range = not is_whole and not self._ignores_ranges
        loop = asyncio.get_running_loop()

        def meet(head: ObjectHead) -> None:
            self._meet(head, asks_range=asks_range)
            loop.call_soon_threadsafe(self._met, part.size_bytes)

        async with self._download_context.requests:
            try:
                head = await self._download_context.objects.fetch(
                    listed.url,
                    # A server that ignores ranges sends the whole file; existing bytes are overwritten.
                    start=start if asks_range or start else 0,
                    end=end if asks_range and end >= 0 else None,
                    on_head=meet,
                    on_chunk=take,
                )
            except RangeOutside as error:
                if error.total_bytes == start == 0 or (end < 0 and error.total_bytes == start):
                    self._settle(start)
                    return
                raise ObjectChanged("the file became shorter") from None
        if head.total_bytes is None:
            self._settle_unknown(end)

    def _meet(self, head: ObjectHead, *, asks_range: bool) -> None:
        """Check an answer's headers before its body is read. Runs in a thread."""
        if asks_range and not head.is_partial:
            self._ignores_ranges = True
            raise _RangesIgnored
        part = self._part
        size_bytes = part.size_bytes
        if not head.is_partial and "html" in head.content_type and head.total_bytes != size_bytes:
            raise InvalidAnswer("got a web page instead of the file")
        if head.total_bytes is not None and size_bytes is not None and head.total_bytes != size_bytes:
            raise ObjectChanged(f"it has {head.total_bytes:,} bytes instead of the listed {size_bytes:,}")
        self._expected_digests.add_response(head)
        promise = self._expected_digests.strongest()
        seen = replace(
            identity_of_listed(self.listed, self._job_id),
            size_bytes=head.total_bytes,
            etag=head.etag,
            last_modified=head.last_modified,
            digest=":".join(promise) if promise else "",
        )
        if not part.identify(seen):
            raise ObjectChanged("the file was replaced")

    def _met(self, size_bytes: int | None) -> None:
        if size_bytes is not None:
            self._callbacks.on_size(size_bytes)
        self._may_spread.set()

    def _settle(self, size_bytes: int) -> None:
        """Record the file's size; raise Changed if it differs from the listed one."""
        if not self._part.identify(
            replace(identity_of_listed(self.listed, self._job_id), size_bytes=size_bytes)
        ):
            raise ObjectChanged(f"it has {size_bytes:,} bytes, which differs from the listing")
        self._callbacks.on_size(size_bytes)

    def _settle_unknown(self, end: int) -> None:
        """Take the end of a body without an announced length as the end of the file."""
        part = self._part
        if part.size_bytes is None:
            self._settle(part.done_bytes)
            return
        is_last = end < 0 or self._ignores_ranges or end == part.size_bytes
        if is_last and part.gaps(part.size_bytes if end < 0 else end):
            raise Unreachable("the store closed the connection in the middle of the file", method="GET")


def identity_of_listed(listed: ListedFile, job_id: str) -> FileIdentity:
    """Build a file's identity from its listing."""
    return FileIdentity(
        job_id, listed.key.name, listed.key.node_rank, listed.last_modified, listed.size_bytes
    )


MAX_FRESH_STARTS = 2
"""Maximum number of restarts for a file that changed or arrived damaged."""


class FileDownload:
    """Downloads one file into its part file and verifies it; the caller renames it.

    ``verified_by`` says how a complete file was verified: ``size``, or a digest algorithm.
    """

    def __init__(
        self, means: DownloadContext, listed: ListedFile, job_id: str, hooks: DownloadCallbacks
    ) -> None:
        self._download_context = means
        self._listed = listed
        self._job_id = job_id
        self._callbacks = hooks
        self._expected_digests = ExpectedDigests()
        self.verified_by = "size"

    async def fetch(self, path: Path, root: Path, *, on_open: Callable[[int], object]) -> PartFile:
        """Open the part file below ``root`` and fill it; the caller closes it.

        ``on_open`` is called with the number of bytes already there. Raises DownloadError, RequestError
        and its subclasses; the bytes that arrived are kept then.
        """
        part = await self._opened(path, root)
        try:
            on_open(part.done_bytes)
            await self._fetch_verified(part)
        except BaseException:
            # The thread finishes even if this task is cancelled.
            await asyncio.shield(asyncio.to_thread(part.close))
            raise
        return part

    async def _opened(self, path: Path, root: Path) -> PartFile:
        identity = identity_of_listed(self._listed, self._job_id)
        opening = asyncio.ensure_future(
            asyncio.to_thread(PartFile, path, root, identity, self._download_context.clock.monotonic)
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unwanted)
            raise

    async def _fetch_verified(self, part: PartFile) -> None:
        fresh_starts = 0
        while True:
            reason = ""
            try:
                await self._fill(part)
            except ObjectChanged as error:
                reason = str(error)
            else:
                promise = self._expected_digests.strongest() or parse_digest(part.identity.digest)
                if promise is None:
                    return
                # The disk flushes the last bytes while the digest is computed.
                digest, _ = await asyncio.gather(
                    asyncio.to_thread(part.digest, promise[0]), asyncio.to_thread(part.save)
                )
                if digest == promise[1]:
                    self.verified_by = promise[0]
                    return
                reason = f"its {promise[0]} differs from the server's"
            fresh_starts += 1
            if fresh_starts > MAX_FRESH_STARTS:
                # Nothing in the part file is worth resuming.
                await asyncio.to_thread(part.start_over, identity_of_listed(self._listed, self._job_id))
                raise DownloadError(reason)
            self._callbacks.on_note_changed(f"{reason}; starting over")
            # The listing may be as old as the bytes.
            self._listed = await self._download_context.urls.renewed(self._listed)
            self._expected_digests = ExpectedDigests()
            await asyncio.to_thread(part.start_over, identity_of_listed(self._listed, self._job_id))
            self._callbacks.on_arrival(0, 0)

    @property
    def modified_s(self) -> float | None:
        """Modification time from the listing, in epoch seconds."""
        return modified(self._listed.last_modified)

    async def _fill(self, part: PartFile) -> None:
        filling = RangeFetcher(
            self._download_context, part, self._listed, self._job_id, self._expected_digests, self._callbacks
        )
        try:
            await filling.fill()
        finally:
            self._listed = filling.listed


def _close_unwanted(opening: asyncio.Future[PartFile]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
