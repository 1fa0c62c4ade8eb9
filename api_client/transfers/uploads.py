"""Upload a file as one object of an S3-compatible store: in parts, a few at a time, each retried separately.

Only the data being sent is held in memory. Uploaded parts stay in the store, so a broken connection costs
at most the parts in progress. If the upload fails, the store is asked to discard it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import IO

import httpx

from api_client.addresses import Destinations
from api_client.clock import Clock, SystemClock
from api_client.errors import UploadFailed
from api_client.http.connection import connect
from api_client.models import BlobCredentials
from api_client.transfers.object_store import Body, ObjectStore, OnNote, element, store_remote

PART_BYTES = 8 * 1024 * 1024
"""Size of all parts but the last, as in the official client (API facts, 3.5)."""

PARTS_AT_ONCE = 4
"""Concurrent parts: enough to saturate a connection, few enough to share one."""

CHUNK_BYTES = 256 * 1024
"""Bytes read and passed to the connection at a time."""

COMPLETION_TIMEOUT_S = 300.0
"""The store needs some time to join the parts of a large object."""

ABORT_TIMEOUT_S = 5.0
"""Time limit for asking the store to discard a failed upload."""
ABORT_DRAIN_S = 5.0
"""Before an abort, wait this long for the answers to completely sent parts, which may outlive the abort."""

OnBytes = Callable[[int, int], object]
"""Called with bytes sent and bytes in total; the first never decreases."""


async def upload_file(
    path: Path,
    credentials: BlobCredentials,
    *,
    destinations: Destinations | None = None,
    clock: Clock | None = None,
    on_progress: OnBytes | None = None,
    on_note: OnNote | None = None,
    http_transport: httpx.AsyncBaseTransport | None = None,
) -> None:
    """Upload the file to the object that the credentials are for.

    ``destinations`` decides which addresses may be connected to, by default only those of the public
    internet. ``on_note`` is called with a text for every wait before a retry. ``http_transport`` replaces
    the network in tests. Raises UploadFailed, after which nothing of the file is left in the store if it
    can be reached, and ConfigurationError for an unusable endpoint.
    """
    remote, endpoint = store_remote(credentials)
    http = await connect(remote, (endpoint,), http_transport)
    try:
        allowed = (destinations or Destinations()) if http_transport is None else None
        store = ObjectStore(http, credentials, allowed, clock=clock or SystemClock(), on_note=on_note)
        with path.open("rb") as file:
            source = _Source(file, os.fstat(file.fileno()).st_size)
            meter = _UploadMeter(source.size_bytes, on_progress)
            if source.size_bytes <= PART_BYTES:
                body = await source.body(0, source.size_bytes, partial(meter.sent, 1))
                await store.send("PUT", {}, what="uploading the archive", body=body)
            else:
                await _upload_parts(store, source, meter)
            meter.finish()
    finally:
        # The caller closes a transport that it passed in.
        if http_transport is None:
            await http.aclose()


async def _upload_parts(store: ObjectStore, source: _Source, meter: _UploadMeter) -> None:
    answer = await store.send("POST", {"uploads": ""}, what="starting the upload")
    upload_id = element(answer, "UploadId")
    if upload_id is None:
        raise UploadFailed("starting the upload: the object store returned no upload id", method="POST")
    try:
        tags = await _send_parts(store, source, meter, upload_id)
        await _complete(store, source, upload_id, tags)
    except BaseException:
        await _abort(store, upload_id)
        raise


async def _send_parts(store: ObjectStore, source: _Source, meter: _UploadMeter, upload_id: str) -> list[str]:
    """Send all parts; return their entity tags in order. Raises the first UploadFailed of any.

    No part is in progress when this returns or raises.
    """
    parts = _Parts(store, source, meter, upload_id)
    workers = [asyncio.create_task(parts.send_next()) for _ in range(min(PARTS_AT_ONCE, parts.count))]
    ended: set[asyncio.Task[None]] = set()
    try:
        ended, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await parts.end(workers)
    for worker in ended:
        worker.result()
    return parts.tags


class _Parts:
    def __init__(self, store: ObjectStore, source: _Source, meter: _UploadMeter, upload_id: str) -> None:
        self._store = store
        self._source = source
        self._meter = meter
        self._upload_id = upload_id
        self.count = -(-source.size_bytes // PART_BYTES)
        self.tags = [""] * self.count
        self._numbers = iter(range(1, self.count + 1))
        self._ending = False

    async def send_next(self) -> None:
        """Send parts until none is left. Raises UploadFailed, OSError."""
        for number in self._numbers:
            what = f"uploading part {number} of {self.count}"
            start = (number - 1) * PART_BYTES
            size_bytes = min(PART_BYTES, self._source.size_bytes - start)
            body = await self._source.body(start, size_bytes, partial(self._meter.sent, number))
            query = {"partNumber": str(number), "uploadId": self._upload_id}
            answer = await self._store.send("PUT", query, what=what, body=body)
            self.tags[number - 1] = answer.headers.get("etag", "")
            if not self.tags[number - 1]:
                raise UploadFailed(f"{what}: the object store returned no tag")
            if self._ending:
                return  # do not start another part

    async def end(self, workers: Sequence[asyncio.Task[None]]) -> None:
        """Stop all workers; a part that was not sent completely is interrupted, so no store counts it.

        Waits briefly for the answers to completely sent parts, because the store may still be storing
        them.
        """
        self._ending = True
        try:
            for worker in workers:
                if not self._store.is_awaiting_response(worker):
                    worker.cancel()
            await asyncio.wait(workers, timeout=ABORT_DRAIN_S)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)


async def _complete(store: ObjectStore, source: _Source, upload_id: str, tags: Sequence[str]) -> None:
    content = _list_of_parts(tags)
    body = Body(len(content), hashlib.sha256(content).hexdigest(), lambda: _once(content))
    query = {"uploadId": upload_id}
    try:
        await store.send(
            "POST",
            query,
            what="completing the upload",
            body=body,
            answer_timeout_s=COMPLETION_TIMEOUT_S,
        )
    except UploadFailed as error:
        # The first answer may have been lost; then the upload no longer exists.
        if error.status != HTTPStatus.NOT_FOUND or error.attempts == 1:
            raise
        answer = await store.send("HEAD", {}, what="checking the uploaded archive")
        if answer.headers.get("content-length") != str(source.size_bytes):
            raise


async def _abort(store: ObjectStore, upload_id: str) -> None:
    """Ask the store to discard the parts; if it cannot be reached, it discards them by itself eventually."""
    with suppress(UploadFailed, TimeoutError):
        async with asyncio.timeout(ABORT_TIMEOUT_S):
            await store.send("DELETE", {"uploadId": upload_id}, what="aborting the upload", attempts=1)


def _list_of_parts(tags: Sequence[str]) -> bytes:
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag, quote=False)}</ETag></Part>"
        for number, tag in enumerate(tags, start=1)
    )
    namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
    return f'<CompleteMultipartUpload xmlns="{namespace}">{parts}</CompleteMultipartUpload>'.encode()


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


class _Source:
    """The file, read in chunks in threads. One reader at a time: the file has one position."""

    def __init__(self, file: IO[bytes], size_bytes: int) -> None:
        self._file = file
        self._reading = asyncio.Lock()
        self.size_bytes = size_bytes

    async def body(self, start: int, size_bytes: int, sent: Callable[[int], None]) -> Body:
        """Return a byte range as the body of a request; ``sent`` is called with the number of bytes sent."""
        digest = hashlib.sha256()
        async for chunk in self._chunks(start, size_bytes):
            digest.update(chunk)

        async def chunks() -> AsyncIterator[bytes]:
            gone = 0
            sent(gone)
            async for chunk in self._chunks(start, size_bytes):
                yield chunk
                gone += len(chunk)
                sent(gone)

        return Body(size_bytes, digest.hexdigest(), chunks)

    async def _chunks(self, start: int, size_bytes: int) -> AsyncIterator[bytes]:
        for offset in range(start, start + size_bytes, CHUNK_BYTES):
            wanted = min(CHUNK_BYTES, start + size_bytes - offset)
            async with self._reading:
                chunk = await asyncio.to_thread(self._read, offset, wanted)
            if len(chunk) != wanted:
                raise UploadFailed("the archive became shorter during the upload")
            yield chunk

    def _read(self, offset: int, size_bytes: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size_bytes)


class _UploadMeter:
    """Adds up the bytes sent of each part; reports only new maxima, as an interrupted part starts over."""

    def __init__(self, total_bytes: int, on_progress: OnBytes | None) -> None:
        self._total_bytes = total_bytes
        self._on_progress = on_progress
        self._by_part: dict[int, int] = {}
        self._sum_bytes = 0
        self._reported_bytes = -1

    def sent(self, number: int, size_bytes: int) -> None:
        self._sum_bytes += size_bytes - self._by_part.get(number, 0)
        self._by_part[number] = size_bytes
        # The upload is complete only when the store has confirmed it.
        self._report_progress(min(self._sum_bytes, max(0, self._total_bytes - 1)))

    def finish(self) -> None:
        self._report_progress(self._total_bytes)

    def _report_progress(self, done_bytes: int) -> None:
        if done_bytes > self._reported_bytes and self._on_progress is not None:
            self._reported_bytes = done_bytes
            self._on_progress(done_bytes, self._total_bytes)
