"""Plan and run downloads of checkpoint files and of a job's code archive.

Several files are fetched at once; each download resumes where an earlier run stopped, and the finished file
is verified. An archive is unpacked into a temporary folder, which is renamed when it is complete.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from api_client.archives import MAX_BYTES, BadArchive, Unpacker
from api_client.clock import Clock
from api_client.errors import InvalidAnswer, NotFound, RequestError, Unreachable, UrlExpired
from api_client.files import TEMPORARY_PREFIX
from api_client.http.retry import JITTER_RANDOM, RetryPolicy, retrying
from api_client.models import CheckpointFile
from api_client.models.checkpoints import ROOT_CHECKPOINT
from api_client.resources.checkpoints import Checkpoints
from api_client.resources.jobs import Jobs
from api_client.transfers.file_names import safe_component
from api_client.transfers.objects import ObjectResponse, Objects, RangeNotSatisfiable
from api_client.transfers.part_file import PartFile, translate_os_errors
from api_client.transfers.plans import (
    alternative_path,
    checkpoint_name_of,
    identity_line,
    is_downloaded,
    make_plan,
    modified_epoch_s,
    refreshed_plan,
    select_files,
    to_planned_file,
)
from api_client.transfers.records import (
    DestinationExists,
    DownloadError,
    DownloadPlan,
    DownloadReport,
    Existing,
    FileProgress,
    FileState,
    NoArchive,
    NoRoom,
    OnProgress,
    PlannedFile,
    ProgressMeter,
)
from api_client.words import retrying_words


async def list_files(checkpoints: Checkpoints, project_id: str, job_id: str) -> list[PlannedFile]:
    return [to_planned_file(file) async for file in checkpoints.files(project_id, job_id)]


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a tar archive into ``folder``, which must not exist; it is created complete or not at all.

    Raises DestinationExists, and DownloadError if the archive is damaged, too large, or has a rejected
    member. The archive is not deleted.
    """
    if os.path.lexists(folder):
        raise DestinationExists(folder)
    with translate_os_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        max_unpacked_bytes = shutil.disk_usage(folder.parent).free - 64 * 1024**2  # don't fill the disk
        # Directly beside the target, not in a new folder there, which another user could replace by a link.
        temporary = folder.parent / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        temporary.mkdir()
        try:
            with Unpacker(temporary, max_bytes=min(MAX_BYTES, max_unpacked_bytes)) as unpacker:
                unpacker.add(archive)
            temporary.rename(folder)
        except BadArchive as error:
            raise DownloadError(f"the code could not be unpacked: {error}") from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return folder


NO_ARCHIVE = "the job has no code archive"


class Downloads:
    """Downloads of checkpoints, single files and the job's code.

    Files are stored as ``<folder>/<checkpoint>/…``, below ``rank-<n>/`` if several nodes have files, so that
    equal names do not collide. The ``plan_*`` methods read from the server and the disk, and write nothing.
    Every method raises RequestError; ``run`` also raises subclasses of DownloadError.
    """

    def __init__(
        self, objects: Objects, jobs: Jobs, checkpoints: Checkpoints, clock: Clock, retry: RetryPolicy
    ) -> None:
        self._objects = objects
        self._jobs = jobs
        self._checkpoints = checkpoints
        self._clock = clock
        self._retry = retry

    async def plan_checkpoints(
        self,
        project_id: str,
        job_id: str,
        folder: Path,
        *,
        checkpoints: Sequence[str] | None = None,
        files: Sequence[str] | None = None,
    ) -> DownloadPlan:
        """Plan the files of these checkpoints (None: all) whose names match one of the globs ``files``.

        A glob is matched against the whole name (``checkpoint-40/*``), the name within the checkpoint
        (``tokenizer/*``), and the base name (``*.json``).
        """
        listed_files = await list_files(self._checkpoints, project_id, job_id)
        by_rank = any(file.node_rank for file in listed_files)
        all_names: set[str] = set()
        if ROOT_CHECKPOINT in map(checkpoint_name_of, checkpoints or ()):
            all_names = {
                checkpoint.checkpoint_id for checkpoint in await self._checkpoints.list(project_id, job_id)
            }
        selected = select_files(listed_files, checkpoints, files, all_names)
        plan = await asyncio.to_thread(make_plan, project_id, job_id, folder, selected, by_rank=by_rank)
        absent = [
            name for name in checkpoints or () if not select_files(listed_files, [name], None, all_names)
        ]
        return replace(plan, absent=tuple(dict.fromkeys(absent)))

    async def plan_files(
        self,
        project_id: str,
        job_id: str,
        folder: Path,
        files: Sequence[CheckpointFile],
        *,
        by_rank: bool | None = None,
    ) -> DownloadPlan:
        """Plan selected files of a listing, with the same paths as in a download of all files.

        ``by_rank`` is True if nodes other than the first have files of the job; if None, the listing is read
        to find out.
        """
        if by_rank is None:
            listed_files = await list_files(self._checkpoints, project_id, job_id)
            by_rank = any(file.node_rank for file in listed_files)
        selected = [to_planned_file(file) for file in files]
        return await asyncio.to_thread(make_plan, project_id, job_id, folder, selected, by_rank=by_rank)

    async def plan_archive(
        self,
        project_id: str,
        job_id: str,
        folder: Path,
        *,
        project_name: str = "",
        unpack: bool = False,
        file_name: str | None = None,
    ) -> DownloadPlan:
        """Plan the archive of the job's code: ``<project>_<job>.tgz``, as the official CLI names it.

        With ``unpack``, plan to unpack the archive into the folder ``<project>_<job>`` instead. ``file_name``
        replaces the name of the archive or of the folder. Raises DestinationExists if that path exists, and
        NoArchive if the job has no archive.
        """
        name = safe_component(f"{project_name or project_id}_{job_id}")
        target = folder / (file_name or (name if unpack else f"{name}.tgz"))
        if await asyncio.to_thread(os.path.lexists, target):
            raise DestinationExists(target)
        path = folder / f".{name}.tgz" if unpack else target
        try:
            urls = await self._jobs.download_urls(project_id, job_id)
        except NotFound as error:
            raise NoArchive(NO_ARCHIVE) from error
        if not urls:
            raise NoArchive(NO_ARCHIVE)
        # The size is not listed; the response to the download has it.
        file = PlannedFile("", path, None, urls[0])
        return await asyncio.to_thread(
            refreshed_plan,
            DownloadPlan(
                project_id, job_id, folder, (file,), is_archive=True, unpack_to=target if unpack else None
            ),
        )

    async def run(
        self, plan: DownloadPlan, *, on_progress: OnProgress | None = None, existing: Existing = Existing.SKIP
    ) -> DownloadReport:
        """Fetch the files of the plan. If cancelled, partial files stay, and the next run resumes them.

        A failed file is part of the report and does not stop the other downloads. Raises NoRoom, before or
        during the run.
        """
        # A run that was killed before unpacking may have left its hidden archive; overwrite that archive.
        existing = Existing.OVERWRITE if plan.unpack_to else existing
        renew, retry = partial(self._list_again, plan), self._retry
        run = DownloadRun(plan, self._objects, renew, self._clock, retry, on_progress, existing)
        report = await run.run()
        if plan.unpack_to is None or not report.is_complete:
            return report
        return await self._unpack_archive(report, plan.unpack_to)

    async def _unpack_archive(self, report: DownloadReport, target: Path) -> DownloadReport:
        """Unpack the archive into ``target``.

        If unpacking fails, the archive is kept beside ``target``, unless an earlier run has left an archive
        there.
        """
        archive = report.files[0].path
        try:
            await asyncio.to_thread(unpack, archive, target)
        except DownloadError as error:
            copy = target.with_name(target.name + ".tgz")
            if copy.exists():
                archive.unlink(missing_ok=True)
                raise
            archive.rename(copy)
            raise DownloadError(f"{error} (the archive is kept: {copy})") from error
        archive.unlink(missing_ok=True)
        return replace(report, unpacked_to=target)

    async def _list_again(self, plan: DownloadPlan) -> list[PlannedFile]:
        """List the files again, to get fresh presigned URLs."""
        if not plan.is_archive:
            return await list_files(self._checkpoints, plan.project_id, plan.job_id)
        urls = await self._jobs.download_urls(plan.project_id, plan.job_id)
        return [PlannedFile("", plan.files[0].path, None, url) for url in urls[:1]]


WRITE_BYTES = 1024 * 1024  # size of a write to the disk
MAX_CONSECUTIVE_FAILURES = 8  # then skip the remaining files, rather than wait for thousands of timeouts
MAX_ATTEMPTS = 3  # per file, if its object changes, it arrives damaged, or a fresh URL is refused


@dataclass
class DownloadRun:
    """Executes one plan, once. ``renew`` lists the plan's files again, with fresh URLs."""

    plan: DownloadPlan
    objects: Objects
    renew: Callable[[], Awaitable[list[PlannedFile]]]
    clock: Clock
    retry: RetryPolicy
    on_progress: OnProgress | None = None
    existing: Existing = Existing.SKIP

    def __post_init__(self) -> None:
        self._listed = {file.key: file for file in self.plan.files}
        self._renewing = asyncio.Lock()
        self._consecutive_failures = 0
        self._last_error = ""

    async def run(self) -> DownloadReport:
        """Run the plan. Raises NoRoom; any other error fails only its own file."""
        began_s = self.clock.monotonic()
        plan = self.plan = await asyncio.to_thread(refreshed_plan, self.plan)
        initial = await asyncio.to_thread(lambda: [self._initial_progress(file) for file in plan.files])
        todo = [index for index, progress in enumerate(initial) if not progress.state.is_final]
        needed_bytes = sum(plan.files[index].missing_bytes for index in todo)
        if plan.free_bytes is not None and needed_bytes > plan.free_bytes:
            raise NoRoom(
                f"the disk of {plan.folder} has {plan.free_bytes / 2**20:,.0f} MiB free, but the download "
                f"needs {needed_bytes / 2**20:,.0f} MiB; nothing was downloaded"
            )
        meter = self.meter = ProgressMeter(initial, self.clock.monotonic)
        queue = iter(todo)
        reporter = asyncio.create_task(self._report_progress())
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(4):  # concurrent downloads
                    group.create_task(self._fetch_files(queue))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            reporter.cancel()
            self._report()
        elapsed_s = self.clock.monotonic() - began_s
        return DownloadReport(plan.folder, meter.files, plan.refused, meter.fetched_bytes, elapsed_s)

    def listed_file(self, index: int) -> PlannedFile:
        """Return the file's entry in the newest listing."""
        return self._listed[self.plan.files[index].key]

    async def renew_url(self, stale: PlannedFile) -> None:
        """List the files again, unless another task has done so. Raises DownloadError if the file is gone.

        Also raises the errors of listing the files.
        """
        async with self._renewing:
            if self._listed[stale.key] is stale:
                self._listed |= {file.key: file for file in await self.renew() if file.key in self._listed}
                if self._listed[stale.key] is stale:
                    raise DownloadError("the job no longer has this file")

    async def _report_progress(self) -> None:
        """Report progress even while no data arrives, so that the listener sees the speed fall."""
        while True:
            self._report()
            await self.clock.sleep(0.2)

    def _report(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.meter.progress())

    def _initial_progress(self, file: PlannedFile) -> FileProgress:
        """Return the progress before the run; its state is final if the file is not to be fetched."""
        path = file.path
        if self.existing is Existing.RENAME and os.path.lexists(path) and not is_downloaded(file):
            path = alternative_path(file)
        initial = FileProgress(file.name, path, size_bytes=file.size_bytes)
        if is_downloaded(file, path):
            return replace(initial, state=FileState.SKIPPED, note="already there")
        if self.existing is Existing.SKIP and os.path.lexists(path):
            return replace(initial, state=FileState.SKIPPED, note="another file exists; left unchanged")
        return initial

    async def _fetch_files(self, queue: Iterator[int]) -> None:
        for index in queue:
            try:
                if self._consecutive_failures >= MAX_CONSECUTIVE_FAILURES:
                    reason = f"not tried because {MAX_CONSECUTIVE_FAILURES} others failed: {self._last_error}"
                    self._fail(index, reason, is_retryable=True)
                else:
                    await self._fetch(index)
                    self._consecutive_failures = 0
            except NoRoom as error:
                self._fail(index, str(error))
                raise
            except (DownloadError, RequestError) as error:
                self._consecutive_failures += 1
                self._last_error = str(error)
                self._fail(
                    index, str(error), is_retryable=isinstance(error, RequestError) and error.retryable
                )

    def _fail(self, index: int, error: str, *, is_retryable: bool = False) -> None:
        self.meter.change(index, state=FileState.FAILED, error=error, is_retryable=is_retryable)

    async def _fetch(self, index: int) -> None:
        """Fetch a file; start over if the object changed meanwhile or its bytes are damaged."""
        path, meter = self.meter.files[index].path, self.meter
        meter.change(index, state=FileState.ACTIVE)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            listed_file, keep_bytes = self.listed_file(index), True
            identity = identity_line(listed_file, self.plan.job_id)
            part = PartFile(path, self.plan.folder, identity, listed_file.size_bytes)
            try:
                await asyncio.to_thread(part.open)
                await self._receive_rest(index, part)
                verified_by = await self._verify(index, part)
                await asyncio.to_thread(
                    self._finish, part, modified_epoch_s(self.listed_file(index).last_modified)
                )
                break
            except _ObjectChanged as error:
                keep_bytes = False
                if attempt == MAX_ATTEMPTS:
                    raise DownloadError(str(error)) from None
                meter.change(index, state=FileState.ACTIVE, note=f"{error}; starting over")
            finally:
                # Shielded, so that the file is closed even if this task is cancelled.
                await asyncio.shield(asyncio.to_thread(part.close, keep=keep_bytes))
                meter.change(index, done_bytes=part.done_bytes)
            await self.renew_url(listed_file)  # the object changed, so its URL and listing may be stale, too
        final_progress = {"size_bytes": part.done_bytes, "verified_by": verified_by, "note": ""}
        meter.change(index, state=FileState.DONE, **final_progress)

    async def _verify(self, index: int, part: PartFile) -> str:
        """Compare the file's digest with the server's digest, if any. Its size has been checked already.

        Returns the digest's algorithm, or ``size`` if only the size was compared. Raises _ObjectChanged.
        """
        self.meter.change(index, state=FileState.VERIFYING)
        expected = part.expected_digest
        algorithm = expected.partition(":")[0]
        if expected and await asyncio.to_thread(part.digest, algorithm) != expected:
            raise _ObjectChanged(f"its {algorithm} differs from the server's")
        return algorithm or "size"

    def _finish(self, part: PartFile, modified_s: float | None) -> None:
        if self.existing is not Existing.OVERWRITE and os.path.lexists(part.path):
            raise DownloadError(f"{part.path.name} appeared during the download and is left unchanged")
        if part.path.is_dir():
            raise DownloadError(f"{part.path} is a directory; left unchanged")
        part.finish(modified_s)

    async def _receive_rest(self, index: int, part: PartFile) -> None:
        """Download the bytes that the part file lacks. Raises _ObjectChanged, DownloadError, RequestError."""
        self.meter.change(index, done_bytes=part.done_bytes)
        needs_request = not part.size_bytes  # the size is unknown, or listed as 0, which may be wrong
        while needs_request or part.done_bytes != part.size_bytes:
            needs_request = False
            await retrying(
                partial(self._request, index, part),
                self.retry,
                sleep=self.clock.sleep,
                random=JITTER_RANDOM,
                on_wait=lambda error, delay_s: self.meter.change(
                    index, note=f"{error}; {retrying_words(delay_s)}"
                ),
            )

    async def _request(self, index: int, part: PartFile) -> None:
        """Receive bytes until the file ends or the connection breaks, with a fresh URL if necessary.

        Raises the connection's error only if no byte has arrived; otherwise the caller requests the rest.
        """
        for attempt in range(1, MAX_ATTEMPTS + 1):
            listed_file = self.listed_file(index)
            try:
                await self._receive(index, part, listed_file.url)
                return
            except UrlExpired:
                if attempt == MAX_ATTEMPTS:
                    raise
            self.meter.change(index, note="URL expired; requesting a new one")
            await self.renew_url(listed_file)

    async def _receive(self, index: int, part: PartFile, url: str) -> None:
        start = part.done_bytes
        try:
            async with self.objects.open(url, start=start) as response:
                await self._check_response(part, response)
                self.meter.change(index, size_bytes=part.size_bytes)
                await self._save_chunks(index, part, response.chunks)
            # If the store announced no length, the end of the body counts as the end of the file.
            is_end_unknown = response.total_bytes is None and not response.is_partial
            if is_end_unknown and not await asyncio.to_thread(part.identify, size_bytes=part.done_bytes):
                raise Unreachable("the store closed the connection in the middle of the file", method="GET")
        except RangeNotSatisfiable:
            raise _ObjectChanged("the file ends before the requested part") from None
        except RequestError as error:
            if part.done_bytes == start or not error.retryable:
                raise

    async def _check_response(self, part: PartFile, response: ObjectResponse) -> None:
        """Compare a response's headers with the part file before the body is read.

        Raises InvalidAnswer for a web page, and _ObjectChanged for another version of the file.
        """
        size_bytes = part.size_bytes
        if not response.is_partial and "html" in response.content_type and response.total_bytes != size_bytes:
            raise InvalidAnswer("got a web page instead of the file")
        if None not in (response.total_bytes, size_bytes) and response.total_bytes != size_bytes:
            raise _ObjectChanged(
                f"it has {response.total_bytes:,} bytes instead of the listed {size_bytes:,}"
            )
        if not await asyncio.to_thread(
            part.identify, size_bytes=response.total_bytes, version=response.version, digest=response.digest
        ):
            raise _ObjectChanged("the file was replaced")

    async def _save_chunks(self, index: int, part: PartFile, chunks: AsyncIterable[bytes]) -> None:
        buffer, size_bytes = bytearray(), part.size_bytes
        try:
            async for chunk in chunks:
                received_bytes = part.done_bytes + len(buffer) + len(chunk)
                if size_bytes is not None and received_bytes > size_bytes:
                    raise _ObjectChanged("the store sent more than the size of the file")
                # Without an announced size, an endless body would fill the disk.
                if received_bytes > MAX_BYTES and size_bytes is None:
                    raise DownloadError(f"stopped after {MAX_BYTES:,} bytes: the store announced no size")
                buffer += chunk
                self.meter.count_arrived(index, len(chunk))
                if len(buffer) >= WRITE_BYTES:
                    full, buffer = buffer, bytearray()
                    await asyncio.to_thread(part.append, part.done_bytes, full)
        finally:
            await asyncio.shield(asyncio.to_thread(part.append, part.done_bytes, buffer))


class _ObjectChanged(Exception):
    """The object has changed since its first bytes were stored in the part file, or its bytes are damaged."""
