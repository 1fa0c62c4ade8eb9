"""``client.downloads``: plan a download, then run it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from api_client.clock import Clock
from api_client.downloads.records import DownloadPlan, DownloadReport, Existing, OnProgress
from api_client.http.retry import RetryPolicy
from api_client.models import CheckpointFile
from api_client.objects.client import Objects
from api_client.resources.checkpoints import Checkpoints
from api_client.resources.jobs import Jobs
from api_client.resources.projects import Projects


class Downloads:
    """Downloads of checkpoints, single files and the job's code. Every method raises RequestError."""

    def __init__(
        self,
        objects: Objects,
        jobs: Jobs,
        projects: Projects,
        checkpoints: Checkpoints,
        clock: Clock,
        retry: RetryPolicy,
    ) -> None:
        self._objects = objects
        self._jobs = jobs
        self._projects = projects
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
        """Plan the files of those checkpoints (None: of all) whose names match one of the globs ``files``.

        A name is matched both whole and below its checkpoint (``*.json``, ``checkpoint-40/*``).
        """
        raise NotImplementedError

    async def plan_files(
        self, project_id: str, job_id: str, folder: Path, files: Sequence[CheckpointFile]
    ) -> DownloadPlan:
        """Plan chosen files of a listing."""
        raise NotImplementedError

    async def plan_archive(self, project_id: str, job_id: str, folder: Path) -> DownloadPlan:
        """Plan the archive of the job's code: ``<project>_<job>.tgz`` in ``folder``."""
        raise NotImplementedError

    async def run(
        self, plan: DownloadPlan, *, on_progress: OnProgress | None = None, existing: Existing = Existing.SKIP
    ) -> DownloadReport:
        """Fetch what the plan names. Cancelling leaves parts with which the next run goes on."""
        raise NotImplementedError
