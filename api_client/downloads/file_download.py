"""One file, from its first byte to its name: in stretches, a few at once, each tried again on its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from api_client.clock import Clock
from api_client.downloads.digests import Promises, read_promise
from api_client.downloads.errors import DownloadError
from api_client.downloads.listing import ListedFile, UrlBook
from api_client.downloads.part_file import Identity, PartFile
from api_client.downloads.planning import modified
from api_client.downloads.spans import Span
from api_client.errors import InvalidAnswer, RequestError, Unreachable, UrlExpired
from api_client.http.retry import RetryPolicy
from api_client.objects.answer import ObjectHead
from api_client.objects.client import Objects

STRETCH_BYTES = 32 * 1024 * 1024
"""What one request asks for of a larger file: the time of a request is little beside its bytes."""

STRETCHES_AT_ONCE = 4
"""Requests for one file at the same time. On loopback one is as fast; far stores need several."""

SWIFT_RETRY_BYTES = 64 * 1024
"""A connection that brought so much before it broke is replaced at once."""

MAX_RENEWALS_IN_VAIN = 2
"""Fresh URLs that bring nothing: then the store means it."""

MAX_FRESH_STARTS = 2
"""How often a file that changed, or arrived damaged, is begun anew."""

OnArrival = Callable[[int, int], object]
OnWord = Callable[[str], object]


class _Changed(Exception):
    """The object is another one than that of which there are bytes."""


class _WholeOnly(Exception):
    """The server ignores ranges."""


@dataclass(frozen=True, slots=True)
class Means:
    """What every file of a run shares. ``requests`` bounds the requests under way."""

    objects: Objects
    urls: UrlBook
    requests: asyncio.Semaphore
    clock: Clock
    retry: RetryPolicy
    random: Random


class FileDownload:
    """Fetches one file into its part file, checks it, and gives it its name.

    ``on_arrival`` hears new bytes and all bytes, from threads; ``on_word`` hears of waits and renewals, on
    the event loop; ``on_size`` hears the size when it is known. ``verified_by`` names what vouches for
    the bytes of a complete file: ``size``, or the algorithm of a digest.
    """

    def __init__(
        self,
        means: Means,
        listed: ListedFile,
        job_id: str,
        *,
        on_arrival: OnArrival,
        on_word: OnWord,
        on_size: Callable[[int], object],
    ) -> None:
        self._means = means
        self._listed = listed
        self._job_id = job_id
        self._on_arrival = on_arrival
        self._on_word = on_word
        self._on_size = on_size
        self.verified_by = "size"
        self._promises = Promises()
        self._claimed: set[Span] = set()
        self._is_whole_only = False
        self._may_spread = asyncio.Event()

    async def fetch(self, path: Path, *, on_open: Callable[[int], object]) -> PartFile:
        """Open the part file and fill it; ``on_open`` hears what is there already. The caller closes it.

        Raises DownloadError, RequestError and its kinds; what has arrived is kept then.
        """
        part = await self._opened(path)
        try:
            on_open(part.done_bytes)
            await self._fetch_sound(part)
        except BaseException:
            # Whatever happens to this task, the thread goes through with it.
            await asyncio.shield(asyncio.to_thread(part.close))
            raise
        return part

    async def _opened(self, path: Path) -> PartFile:
        opening = asyncio.ensure_future(
            asyncio.to_thread(PartFile, path, self._identity(), self._means.clock.monotonic)
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unwanted)
            raise

    async def _fetch_sound(self, part: PartFile) -> None:
        """Fill the part file, and again if it turns out to be another's, or damaged."""
        fresh_starts = 0
        while True:
            reason = ""
            try:
                await self._fill(part)
            except _Changed as error:
                reason = str(error)
            else:
                promise = self._promises.strongest() or read_promise(part.identity.digest)
                if promise is None:
                    return
                # The disk takes the last bytes while they are summed up.
                digest, _ = await asyncio.gather(
                    asyncio.to_thread(part.digest, promise[0]), asyncio.to_thread(part.save)
                )
                if digest == promise[1]:
                    self.verified_by = promise[0]
                    return
                reason = f"its bytes do not have the {promise[0]} that the server promises"
            fresh_starts += 1
            if fresh_starts > MAX_FRESH_STARTS:
                # Nothing of it is worth going on with.
                await asyncio.to_thread(part.start_over, self._identity())
                raise DownloadError(reason)
            self._on_word(f"{reason}; starting over")
            # What the listing says may be as old as the bytes.
            with_news = await self._means.urls.renewed(self._listed)
            self._listed = with_news
            self._promises = Promises()
            await asyncio.to_thread(part.start_over, self._identity())
            self._on_arrival(0, 0)

    @property
    def modified_s(self) -> float | None:
        """The time that the listing gives the file, in epoch seconds."""
        return modified(self._listed.last_modified)

    def _identity(self) -> Identity:
        listed = self._listed
        return Identity(
            self._job_id, listed.key.name, listed.key.node_rank, listed.last_modified, listed.size_bytes
        )

    async def _fill(self, part: PartFile) -> None:
        """Fetch what is missing: one stretch first, which tells what the server can do, then several."""
        self._claimed.clear()
        self._is_whole_only = False
        self._may_spread = asyncio.Event()
        leader_done = False

        async def lead() -> None:
            nonlocal leader_done
            try:
                await self._work(part)
            finally:
                leader_done = True
                self._may_spread.set()

        async def help_out() -> None:
            await self._may_spread.wait()
            if not leader_done and not self._is_whole_only:
                await self._work(part)

        is_large = part.size_bytes is None or part.size_bytes - part.done_bytes > STRETCH_BYTES
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(lead())
                for _ in range(STRETCHES_AT_ONCE - 1 if is_large else 0):
                    group.create_task(help_out())
        except* (_Changed, DownloadError, RequestError) as failures:
            first = failures
        else:
            return
        error: BaseException = first
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error

    async def _work(self, part: PartFile) -> None:
        while (span := self._claim(part)) is not None:
            try:
                await self._fetch_span(part, *span)
            finally:
                self._claimed.discard(span)
            if part.size_bytes is None or (part.size_bytes == 0 and not part.done_bytes):
                return

    def _claim(self, part: PartFile) -> Span | None:
        """The next stretch that is missing and that nobody fetches; (0, -1) for a file of unknown end."""
        size_bytes = part.size_bytes
        if size_bytes is None or size_bytes == 0:
            # Nothing is known of its end but that it comes, or is here at once: one request finds out.
            span = (part.done_bytes, -1)
            if span in self._claimed:
                return None
            self._claimed.add(span)
            return span
        taken = [(start, end if end >= 0 else size_bytes) for start, end in self._claimed]
        for start, end in part.gaps(size_bytes):
            cursor = start
            while cursor < end:
                span = (cursor, min(end, cursor + STRETCH_BYTES))
                blocking = next((each for each in taken if each[0] < span[1] and cursor < each[1]), None)
                if blocking is None:
                    self._claimed.add(span)
                    return span
                cursor = blocking[1]
        return None

    async def _fetch_span(self, part: PartFile, start: int, end: int) -> None:
        """Fetch one stretch, however often it is cut. An ``end`` below zero: to the end of the file."""
        failures = renewals = 0
        while end < 0 or start < end:
            position = start
            listed = self._listed = self._means.urls[self._listed.key]

            def take(offset: int, chunk: bytes) -> None:
                nonlocal position
                size_bytes = part.size_bytes
                if size_bytes is not None and offset + len(chunk) > size_bytes:
                    raise InvalidAnswer("the store sends more of the file than there is of it")
                part.write(offset, chunk)
                position = offset + len(chunk)
                self._on_arrival(len(chunk), part.done_bytes)

            try:
                await self._request(part, listed, start, end, take)
                if end < 0 or self._is_whole_only:
                    return
                start = position
                failures = 0
                continue
            except _WholeOnly:
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
                if renewals > MAX_RENEWALS_IN_VAIN:
                    raise problem
                self._on_word("its URL has expired; asking for a fresh one")
                await self._means.urls.renewed(listed)
                continue
            if arrived_bytes >= SWIFT_RETRY_BYTES and problem.retryable:
                self._on_word(f"{problem}; going on from there")
                continue
            failures += 1
            await self._wait(problem, failures)

    async def _wait(self, problem: RequestError, failures: int) -> None:
        """Wait before the next try, or raise the problem if there is none."""
        delay_s = self._means.retry.delay_s(
            problem, attempt=failures, idempotent=True, arrived=True, random=self._means.random
        )
        if delay_s is None:
            problem.attempts = failures
            raise problem
        self._on_word(f"{problem}; trying again in {delay_s:.1f} s")
        await self._means.clock.sleep(delay_s)

    async def _request(
        self, part: PartFile, listed: ListedFile, start: int, end: int, take: Callable[[int, bytes], None]
    ) -> None:
        """One request. Raises _Changed, _WholeOnly, RequestError."""
        from api_client.objects.failures import RangeOutside

        is_whole = start == 0 and (end < 0 or end == part.size_bytes)
        asks_range = not is_whole and not self._is_whole_only
        loop = asyncio.get_running_loop()

        def meet(head: ObjectHead) -> None:
            self._meet(part, head, asks_range=asks_range)
            loop.call_soon_threadsafe(self._met, part.size_bytes)

        async with self._means.requests:
            try:
                head = await self._means.objects.fetch(
                    listed.url,
                    # A server that ignores ranges sends all of it; what is there already is overwritten.
                    start=start if asks_range or start else 0,
                    end=end if asks_range and end >= 0 else None,
                    on_head=meet,
                    on_chunk=take,
                )
            except RangeOutside as error:
                if error.total_bytes == start == 0 or (end < 0 and error.total_bytes == start):
                    self._settle(part, start)
                    return
                raise _Changed("the file is shorter than it was") from None
        if head.total_bytes is None:
            self._settle_unknown(part, end)

    def _meet(self, part: PartFile, head: ObjectHead, *, asks_range: bool) -> None:
        """Look at an answer before its bytes are taken. In a thread."""
        if asks_range and not head.is_partial:
            self._is_whole_only = True
            raise _WholeOnly
        size_bytes = part.size_bytes
        if not head.is_partial and "html" in head.content_type and head.total_bytes != size_bytes:
            raise InvalidAnswer("a web page came in the place of the file")
        if head.total_bytes is not None and size_bytes is not None and head.total_bytes != size_bytes:
            raise _Changed(f"it has {head.total_bytes:,} bytes and not the {size_bytes:,} that were listed")
        self._promises.hear(head)
        promise = self._promises.strongest()
        seen = replace(
            self._identity(),
            size_bytes=head.total_bytes,
            etag=head.etag,
            last_modified=head.last_modified,
            digest=":".join(promise) if promise else "",
        )
        if not part.identify(seen):
            raise _Changed("the file was replaced by another")

    def _met(self, size_bytes: int | None) -> None:
        """An answer has begun: the size is known, and whether ranges are served."""
        if size_bytes is not None:
            self._on_size(size_bytes)
        self._may_spread.set()

    def _settle(self, part: PartFile, size_bytes: int) -> None:
        """The file has turned out to have so many bytes."""
        if not part.identify(replace(self._identity(), size_bytes=size_bytes)):
            raise _Changed(f"it has {size_bytes:,} bytes and not those that were listed")
        self._on_size(size_bytes)

    def _settle_unknown(self, part: PartFile, end: int) -> None:
        """A body without an announced length has come to its end: that is the end of the file."""
        if part.size_bytes is None:
            self._settle(part, part.done_bytes)
            return
        is_last = end < 0 or self._is_whole_only or end == part.size_bytes
        if is_last and part.gaps(part.size_bytes if end < 0 else end):
            raise Unreachable("the store broke off the file in the middle", method="GET")


def _close_unwanted(opening: asyncio.Future[PartFile]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
