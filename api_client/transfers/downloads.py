"""Plan downloads of checkpoint files and of a job's archive, and run them.

An archive is unpacked into a folder that appears either complete or not at all.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from api_client.archives import MAX_BYTES, BadArchive, Unpacker
from api_client.clock import Clock
from api_client.errors import NotFound
from api_client.files import TEMPORARY_PREFIX
from api_client.http.retry import RetryPolicy
from api_client.models import CheckpointFile
from api_client.models.checkpoints import ROOT_CHECKPOINT
from api_client.resources.checkpoints import Checkpoints
from api_client.resources.jobs import Jobs
from api_client.transfers.download_run import DownloadRun
from api_client.transfers.file_names import safe_component
from api_client.transfers.objects import Objects
from api_client.transfers.part_file import translate_os_errors
from api_client.transfers.plans import chosen, make_plan, plain_checkpoint, planned_file, refreshed_plan
from api_client.transfers.records import (
    DestinationExists,
    DownloadError,
    DownloadPlan,
    DownloadReport,
    Existing,
    NoArchive,
    OnProgress,
    PlannedFile,
)


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
