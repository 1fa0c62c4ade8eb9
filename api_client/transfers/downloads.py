"""Plan downloads of checkpoint files and of a job's archive, and run them.

Several files are fetched at once, each resumed where it broke off, and verified. An archive is unpacked into
a folder that appears either complete or not at all.
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
from api_client.http.retry import JITTER, RetryPolicy, retrying
from api_client.models import CheckpointFile
from api_client.models.checkpoints import ROOT_CHECKPOINT
from api_client.resources.checkpoints import Checkpoints
from api_client.resources.jobs import Jobs
from api_client.transfers.file_names import safe_component
from api_client.transfers.objects import ObjectAnswer, Objects, RangeNotSatisfiable
from api_client.transfers.part_file import PartFile, translate_os_errors
from api_client.transfers.plans import (
    chosen,
    description,
    is_there,
    make_plan,
    modified,
    plain_checkpoint,
    planned_file,
    refreshed_plan,
    renamed,
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
    return [planned_file(file) async for file in checkpoints.files(project_id, job_id)]


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a tar archive into ``folder``, which must not exist; it appears complete or not at all.

    Raises DestinationExists, and DownloadError if the archive is damaged, too large, or has a rejected
    member. The archive itself stays.
    """
    if os.path.lexists(folder):
        raise DestinationExists(folder)
    with translate_os_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        room_bytes = shutil.disk_usage(folder.parent).free - 64 * 1024**2  # not to fill the disk
        # Not in a folder of its own: others could put a link in its place, which would be followed.
        draft = folder.parent / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        draft.mkdir()
        try:
            with Unpacker(draft, max_bytes=min(MAX_BYTES, room_bytes)) as unpacker:
                unpacker.add(archive)
            draft.rename(folder)
        except BadArchive as error:
            raise DownloadError(f"the code could not be unpacked: {error}") from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder


NO_ARCHIVE = "the job has no code archive"


class Downloads:
    """Downloads of checkpoints, single files and the job's code.

    Layout: ``<folder>/<checkpoint>/…``, below ``rank-<n>/`` if several nodes have files, so that equal
    names do not collide. Planning queries the server and the disk and writes nothing. Every method raises
    RequestError; running also raises subclasses of DownloadError.
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
        (``tokenizer/*``), and the file's own name (``*.json``).
        """
        listed = await list_files(self._checkpoints, project_id, job_id)
        by_rank = any(file.node_rank for file in listed)
        others: set[str] = set()
        if ROOT_CHECKPOINT in map(plain_checkpoint, checkpoints or ()):
            others = {
                checkpoint.checkpoint_id for checkpoint in await self._checkpoints.list(project_id, job_id)
            }
        selected = chosen(listed, checkpoints, files, others)
        plan = await asyncio.to_thread(make_plan, project_id, job_id, folder, selected, by_rank=by_rank)
        absent = [name for name in checkpoints or () if not chosen(listed, [name], None, others)]
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
        """Plan selected files of a listing, with the paths that they have in a download of the whole.

        ``by_rank`` says if nodes other than the first have files of the job; if None, the listing is read.
        """
        if by_rank is None:
            listed = await list_files(self._checkpoints, project_id, job_id)
            by_rank = any(file.node_rank for file in listed)
        selected = [planned_file(file) for file in files]
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

        With ``unpack``, plan its content in the folder ``<project>_<job>`` instead. ``file_name`` replaces
        the name of either. Raises DestinationExists if that exists, and NoArchive if the job has no archive.
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
        # No listing has the size; the first answer does.
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

        A file that fails is reported in the result and does not stop the others. Raises NoRoom, before
        or during the run.
        """
        # A hidden archive left by a run that did not get to unpack it is of no use to anyone.
        existing = Existing.OVERWRITE if plan.unpack_to else existing
        renew, retry = partial(self._renewed, plan), self._retry
        run = DownloadRun(plan, self._objects, renew, self._clock, retry, on_progress, existing)
        report = await run.run()
        if plan.unpack_to is None or not report.is_complete:
            return report
        return await self._unpacked(report, plan.unpack_to)

    async def _unpacked(self, report: DownloadReport, target: Path) -> DownloadReport:
        """Unpack the archive into its folder. The first one that cannot be unpacked is kept beside it."""
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

    async def _renewed(self, plan: DownloadPlan) -> list[PlannedFile]:
        if not plan.is_archive:
            return await list_files(self._checkpoints, plan.project_id, plan.job_id)
        urls = await self._jobs.download_urls(plan.project_id, plan.job_id)
        return [PlannedFile("", plan.files[0].path, None, url) for url in urls[:1]]


SAVE_BYTES = 1024 * 1024  # written at once
FAILURES_IN_A_ROW = 8  # then the rest is skipped: nobody waits for 5,000 timeouts
MAX_ATTEMPTS = 3  # at a file that changed or arrived damaged, and at fresh URLs that bring no data


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
        needed_bytes = sum(plan.files[index].missing_bytes for index in todo)
        if plan.free_bytes is not None and needed_bytes > plan.free_bytes:
            raise NoRoom(
                f"the disk of {plan.folder} has {plan.free_bytes / 2**20:,.0f} MiB free, but the download "
                f"needs {needed_bytes / 2**20:,.0f} MiB; nothing was downloaded"
            )
        meter = self.meter = ProgressMeter(begun, self.clock.monotonic)
        waiting = iter(todo)
        reporting = asyncio.create_task(self._report_progress())
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(4):  # files at once
                    group.create_task(self._work(waiting))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            reporting.cancel()
            self._report()
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
            await self.clock.sleep(0.2)

    def _report(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.meter.progress())

    def _begun(self, file: PlannedFile) -> FileProgress:
        """Decide what to do about a file: its state is final if it is not fetched."""
        path = file.path
        if self.existing is Existing.RENAME and os.path.lexists(path) and not is_there(file):
            path = renamed(file)
        begun = FileProgress(file.name, path, size_bytes=file.size_bytes)
        if is_there(file, path):
            return replace(begun, state=FileState.SKIPPED, note="already there")
        if self.existing is Existing.SKIP and os.path.lexists(path):
            return replace(begun, state=FileState.SKIPPED, note="another file exists; left unchanged")
        return begun

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
        """Fetch a file, and once more from its beginning if it turns out to be another one."""
        path, meter = self.meter.files[index].path, self.meter
        meter.change(index, state=FileState.ACTIVE)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            listed, is_same = self.listed(index), True
            about = description(listed, self.plan.job_id)
            part = PartFile(path, self.plan.folder, about, listed.size_bytes)
            try:
                await asyncio.to_thread(part.open)
                await self._receive_rest(index, part)
                verified_by = await self._verify(index, part)
                await asyncio.to_thread(self._finish, part, modified(self.listed(index).last_modified))
                break
            except _ObjectChanged as error:
                is_same = False
                if attempt == MAX_ATTEMPTS:
                    raise DownloadError(str(error)) from None
                meter.change(index, state=FileState.ACTIVE, note=f"{error}; starting over")
            finally:
                # The thread finishes even if this task is canceled.
                await asyncio.shield(asyncio.to_thread(part.close, keep=is_same))
                meter.change(index, done_bytes=part.done_bytes)
            await self.renew_url(listed)  # the listing may be as old as the bytes
        done = {"size_bytes": part.done_bytes, "verified_by": verified_by, "note": ""}
        meter.change(index, state=FileState.DONE, **done)

    async def _verify(self, index: int, part: PartFile) -> str:
        """Compare the digest of all bytes with the server's; their number was compared before.

        Returns what was compared: ``size``, or the algorithm of the digest.
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
        """Download what the part file lacks. Raises _ObjectChanged, DownloadError and RequestError."""
        self.meter.change(index, done_bytes=part.done_bytes)
        needs_request = not part.size_bytes  # unknown, or so the listing says
        while needs_request or part.done_bytes != part.size_bytes:
            needs_request = False
            await retrying(
                partial(self._request, index, part),
                self.retry,
                sleep=self.clock.sleep,
                random=JITTER,
                on_wait=lambda error, delay_s: self.meter.change(
                    index, note=f"{error}; {retrying_words(delay_s)}"
                ),
            )

    async def _request(self, index: int, part: PartFile) -> None:
        """Receive what arrives without an interruption, with a fresh URL if necessary.

        Raises the error if nothing arrived.
        """
        for attempt in range(1, MAX_ATTEMPTS + 1):
            listed = self.listed(index)
            try:
                await self._receive(index, part, listed.url)
                return
            except UrlExpired:
                if attempt == MAX_ATTEMPTS:
                    raise
            self.meter.change(index, note="URL expired; requesting a new one")
            await self.renew_url(listed)

    async def _receive(self, index: int, part: PartFile, url: str) -> None:
        start = part.done_bytes
        try:
            async with self.objects.open(url, start=start) as answer:
                await self._check(part, answer)
                self.meter.change(index, size_bytes=part.size_bytes)
                await self._save_pieces(index, part, answer.pieces)
            # Without an announced length, the end of the body is that of the file, if that is possible.
            is_end_unknown = answer.total_bytes is None and not answer.is_partial
            if is_end_unknown and not await asyncio.to_thread(part.identify, size_bytes=part.done_bytes):
                raise Unreachable("the store closed the connection in the middle of the file", method="GET")
        except RangeNotSatisfiable:
            raise _ObjectChanged("the file ends before the requested part") from None
        except RequestError as error:
            if part.done_bytes == start or not error.retryable:
                raise

    async def _check(self, part: PartFile, answer: ObjectAnswer) -> None:
        """Check an answer's headers before its body is read."""
        size_bytes = part.size_bytes
        if not answer.is_partial and "html" in answer.content_type and answer.total_bytes != size_bytes:
            raise InvalidAnswer("got a web page instead of the file")
        if None not in (answer.total_bytes, size_bytes) and answer.total_bytes != size_bytes:
            raise _ObjectChanged(f"it has {answer.total_bytes:,} bytes instead of the listed {size_bytes:,}")
        if not await asyncio.to_thread(
            part.identify, size_bytes=answer.total_bytes, version=answer.version, digest=answer.digest
        ):
            raise _ObjectChanged("the file was replaced")

    async def _save_pieces(self, index: int, part: PartFile, pieces: AsyncIterable[bytes]) -> None:
        content, size_bytes = bytearray(), part.size_bytes
        try:
            async for piece in pieces:
                received_bytes = part.done_bytes + len(content) + len(piece)
                if size_bytes is not None and received_bytes > size_bytes:
                    raise _ObjectChanged("the store sent more than the size of the file")
                # Without an announced size it may have no end, and would fill the disk.
                if received_bytes > MAX_BYTES and size_bytes is None:
                    raise DownloadError(f"stopped after {MAX_BYTES:,} bytes: the store announced no size")
                content += piece
                self.meter.arrived(index, len(piece))
                if len(content) >= SAVE_BYTES:
                    full, content = content, bytearray()
                    await asyncio.to_thread(part.append, part.done_bytes, full)
        finally:
            await asyncio.shield(asyncio.to_thread(part.append, part.done_bytes, content))


class _ObjectChanged(Exception):
    """The object differs from the one whose bytes were already downloaded."""
