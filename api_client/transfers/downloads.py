"""Plan and run downloads of checkpoint files and of a job's archive: several files at once.

An archive is unpacked into a folder that appears either complete or not at all.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from api_client.archives import MAX_BYTES, BadArchive, Unpacker
from api_client.clock import Clock
from api_client.errors import NotFound, RequestError
from api_client.files import TEMPORARY_PREFIX
from api_client.http.retry import RetryPolicy
from api_client.models import CheckpointFile
from api_client.models.checkpoints import ROOT_CHECKPOINT
from api_client.resources.checkpoints import Checkpoints
from api_client.resources.jobs import Jobs
from api_client.transfers.file_download import DownloadContext, FileDownload
from api_client.transfers.file_names import safe_component
from api_client.transfers.objects import Objects
from api_client.transfers.part_file import PartFile, translate_os_errors
from api_client.transfers.planning import (
    UrlCache,
    chosen,
    from_api_file,
    is_there,
    list_files,
    make_plan,
    plain_checkpoint,
    refreshed_plan,
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

RESERVED_DISK_BYTES = 64 * 1024**2  # disk space that unpacking leaves free
REPORT_EVERY_S = 0.2
FILES_AT_ONCE = 4
FAILURES_IN_A_ROW = 8  # then the rest is skipped: nobody waits for 5,000 timeouts
MIB = 1024 * 1024
_MAX_RENAMES = 10_000


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a tar archive into ``folder``, which must not exist; it appears complete or not at all.

    Raises DestinationExists, and DownloadError if the archive is damaged, too large, or has a rejected
    member. The archive itself stays.
    """
    if os.path.lexists(folder):
        raise DestinationExists(folder)
    with translate_os_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = folder.parent / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"
        draft.mkdir()
        try:
            max_bytes = min(MAX_BYTES, shutil.disk_usage(draft).free - RESERVED_DISK_BYTES)
            with Unpacker(draft, max_bytes=max_bytes) as unpacker:
                unpacker.add(archive)
            draft.rename(folder)
        except BadArchive as error:
            raise DownloadError(f"the code could not be unpacked: {error}") from None
        finally:
            if draft.exists():
                shutil.rmtree(draft, ignore_errors=True)
    return folder


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


@dataclass(frozen=True, slots=True)
class _Task:
    """A file to fetch: its place in the plan, and its destination."""

    place: int
    file: PlannedFile
    path: Path


@dataclass
class DownloadRun:
    """Executes one plan, once."""

    context: DownloadContext
    on_progress: OnProgress | None = None
    existing: Existing = Existing.SKIP
    _failed_in_a_row: int = 0
    _last_error: str = ""

    async def run(self) -> DownloadReport:
        """Run the plan. Raises NoRoom; any other error fails only its own file."""
        clock = self.context.clock
        began_s = clock.monotonic()
        plan = await asyncio.to_thread(refreshed_plan, self.context.plan)
        begun = await asyncio.to_thread(lambda: [self._begun(file) for file in plan.files])
        todo = [
            _Task(place, file, progress.path)
            for place, (file, progress) in enumerate(zip(plan.files, begun, strict=True))
            if not progress.state.is_final
        ]
        _check_disk_space(plan, todo)
        meter = self._meter = ProgressMeter(begun, clock.monotonic)
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
            elapsed_s=clock.monotonic() - began_s,
        )

    async def _report_progress(self) -> None:
        """Report even while no data arrives, so that the listener sees the speed fall."""
        while True:
            self._report()
            await self.context.clock.sleep(REPORT_EVERY_S)

    def _report(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self._meter.progress())

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
        download = FileDownload(self.context, meter, place, self.context.urls[task.file.key])
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
        if self.existing is not Existing.OVERWRITE and os.path.lexists(path):
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
            others = {one.checkpoint_id for one in await self._checkpoints.list(project_id, job_id)}
        wanted = chosen(listed, checkpoints, files, others)
        plan = await asyncio.to_thread(make_plan, project_id, job_id, folder, wanted, by_rank=by_rank)
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
        """Plan selected files of a listing; sends no request.

        ``by_rank`` says if other nodes of the job have files too (None: if one of these is not node 0's),
        so that a selection gets the same paths as the whole.
        """
        listed = [from_api_file(file) for file in files]
        by_rank = any(file.node_rank for file in files) if by_rank is None else by_rank
        return await asyncio.to_thread(make_plan, project_id, job_id, folder, listed, by_rank=by_rank)

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
            raise NoArchive(f"{NO_ARCHIVE}: {error}") from error
        if not urls:
            raise NoArchive(f"{NO_ARCHIVE}: none was submitted")
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
        urls = UrlCache(plan.files, partial(self._renewed, plan))
        context = DownloadContext(plan, self._objects, urls, self._clock, self._retry)
        # A hidden archive left by a run that did not get to unpack it is of no use to anyone.
        existing = Existing.OVERWRITE if plan.unpack_to else existing
        report = await DownloadRun(context, on_progress, existing).run()
        if plan.unpack_to is None or not report.is_complete:
            return report
        return await self._unpacked(report, plan.unpack_to)

    async def _unpacked(self, report: DownloadReport, target: Path) -> DownloadReport:
        """Unpack the archive into its folder. The first one that cannot be unpacked is kept beside it."""
        archive = report.files[0].path
        try:
            await asyncio.to_thread(unpack, archive, target)
        except DownloadError as error:
            kept = target.with_name(target.name + ".tgz")
            if kept.exists():
                archive.unlink(missing_ok=True)
                raise
            archive.rename(kept)
            raise DownloadError(f"{error} (the archive is kept: {kept})") from error
        archive.unlink(missing_ok=True)
        return replace(report, unpacked_to=target)

    async def _renewed(self, plan: DownloadPlan) -> list[PlannedFile]:
        if not plan.is_archive:
            return await list_files(self._checkpoints, plan.project_id, plan.job_id)
        urls = await self._jobs.download_urls(plan.project_id, plan.job_id)
        return [PlannedFile("", plan.files[0].path, None, url) for url in urls[:1]]
