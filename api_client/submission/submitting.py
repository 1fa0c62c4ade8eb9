"""Submit a job: choose the team, upload the archive, create the project and the job."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

from api_client.definitions import TrainingProject
from api_client.errors import ArchiveError
from api_client.models import BlobCredentials
from api_client.models import TrainingJob as CreatedJob
from api_client.models import TrainingProject as CreatedProject
from api_client.submission.archive import ArchivePlan, pack, plan_archive, writing_to
from api_client.submission.client import SubmissionClient
from api_client.submission.payload import Overrides, apply_overrides, job_payload, project_payload
from api_client.submission.team_choice import choose_team
from api_client.submission.user_environment import describe_environment
from api_client.transfers.uploads import Blobs

Phase = Literal["archiving", "uploading", "creating"]


@dataclass(frozen=True, slots=True)
class SubmissionProgress:
    """Progress of a submission: bytes done and in total within its phase.

    ``note`` is set while an upload makes no progress.
    """

    phase: Phase
    done_bytes: int = 0
    total_bytes: int = 0
    note: str = ""


OnProgress = Callable[[SubmissionProgress], object]  # called on the event loop


@dataclass(frozen=True, slots=True)
class Submission:
    """Result of a submission. ``warnings`` name replaced values, omitted files, guessed teams."""

    training_project: CreatedProject
    training_job: CreatedJob
    plan: ArchivePlan
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the documented result of ``push``: the API's own two objects as plain data."""
        return {
            "training_project": self.training_project.model_dump(mode="json"),
            "training_job": self.training_job.model_dump(mode="json"),
        }


async def submit(
    client: SubmissionClient,
    project: TrainingProject,
    *,
    source_dir: Path,
    team: str | None = None,
    overrides: Overrides | None = None,
    on_progress: OnProgress | None = None,
    plan: ArchivePlan | None = None,
) -> Submission:
    """Archive ``source_dir`` (according to the job's workspace), upload it, and create the job.

    The team is ``team``, else the overrides', the config's, the remote's, else the one that already has
    the project. ``plan`` is the archive's plan, if the caller already has it. The request that creates
    the job is sent once: an error after it may have arrived is raised, never retried.

    Raises ConfigurationError (including ArchiveError), UploadFailed and the other subclasses of RequestError.
    """
    overrides = overrides or Overrides()
    report = on_progress or (lambda _progress: None)
    project, warnings = apply_overrides(project, overrides)
    report(SubmissionProgress("archiving"))
    team_name = team or overrides.team or project.team_name or client.remote.team
    choice = await choose_team(client, project_name=project.name, wanted=team_name)
    if choice.name is not None:
        project.team_name = choice.name
    if plan is None:
        plan = await asyncio.to_thread(plan_archive, source_dir, project.job.workspace)
    user_env = await asyncio.to_thread(describe_environment, source_dir)
    with tempfile.TemporaryFile() as archive:  # it has no name, so a kill leaves nothing of it
        await _write(plan, archive, report)
        credentials = await client.blobs.training_credentials()
        await _upload(client.blobs, archive, plan.size_bytes, credentials, report)
    report(SubmissionProgress("creating"))
    payload = job_payload(
        project.job, artifact=(credentials.s3_bucket, credentials.s3_key), user_env=user_env
    )
    created_project = await client.projects.upsert(
        project.name, team_id=choice.team_id, team_name=project_payload(project).get("team_name")
    )
    created_job = await client.jobs.create(created_project.id, payload)
    if choice.warning is not None:
        warnings = (*warnings, choice.warning)
    return Submission(created_project, created_job, plan, (*warnings, *plan.warnings))


def folder_of(config: Path | str) -> Path:
    """Return the folder to archive for a config file: its parent, without resolving links in the path."""
    return Path(config).absolute().parent


async def _write(plan: ArchivePlan, archive: IO[bytes], report: OnProgress) -> None:
    """Write the archive in a thread, which ends soon after this task is cancelled."""
    loop = asyncio.get_running_loop()
    is_cancelled = threading.Event()

    def on_bytes(done_bytes: int, total_bytes: int) -> None:
        if is_cancelled.is_set():
            raise ArchiveError("cancelled")
        loop.call_soon_threadsafe(report, SubmissionProgress("archiving", done_bytes, total_bytes))

    try:
        with writing_to(Path(tempfile.gettempdir())):
            await asyncio.to_thread(pack, plan, archive, on_bytes)
    finally:
        is_cancelled.set()


async def _upload(
    blobs: Blobs, archive: IO[bytes], size_bytes: int, credentials: BlobCredentials, report: OnProgress
) -> None:
    latest = SubmissionProgress("uploading", 0, size_bytes)

    def on_bytes(done_bytes: int, total_bytes: int) -> None:
        nonlocal latest
        latest = SubmissionProgress("uploading", done_bytes, total_bytes)
        report(latest)

    def on_note(note: str) -> None:
        report(replace(latest, note=note))

    report(latest)
    await blobs.upload(archive, credentials, on_progress=on_bytes, on_note=on_note)
