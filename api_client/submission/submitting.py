"""Submitting a job: archive, upload, create. Nothing is created on the server before the code is there.

The official client makes the project first, so that a workspace that cannot be archived leaves an empty
one behind (API facts, 3.3); here every step that can fail by itself comes before the first that creates.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from api_client.definitions import TrainingProject
from api_client.errors import ArchiveError
from api_client.models import BlobCredentials
from api_client.models import TrainingJob as CreatedJob
from api_client.models import TrainingProject as CreatedProject
from api_client.payload import job_payload, project_payload
from api_client.remotes import Remote
from api_client.resources.blobs import Blobs
from api_client.resources.jobs import Jobs
from api_client.resources.projects import Projects
from api_client.submission.archive import ARCHIVE_NAME, ArchivePlan, plan_archive, write_archive
from api_client.submission.overrides import Overrides, apply_overrides
from api_client.submission.team_choice import TeamDirectory, choose_team
from api_client.submission.user_environment import describe_environment

Phase = Literal["archiving", "uploading", "creating"]


@dataclass(frozen=True, slots=True)
class SubmissionProgress:
    """How far a submission is: bytes done and in total within its phase.

    ``note`` is not empty while something is waited for: what went wrong, and when it is tried again.
    """

    phase: Phase
    done_bytes: int = 0
    total_bytes: int = 0
    note: str = ""


OnProgress = Callable[[SubmissionProgress], object]
"""Called on the event loop."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What came of it. ``warnings`` are for the user: values replaced, files left out, teams guessed."""

    training_project: CreatedProject
    training_job: CreatedJob
    plan: ArchivePlan
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The documented result of ``push``: the API's own two objects as plain data."""
        return {
            "training_project": self.training_project.model_dump(mode="json"),
            "training_job": self.training_job.model_dump(mode="json"),
        }


class SubmissionClient(TeamDirectory, Protocol):
    """The parts of a client that a submission needs."""

    @property
    def remote(self) -> Remote:
        """Whose default team counts."""
        ...

    @property
    def projects(self) -> Projects:
        """To make or find the project."""
        ...

    @property
    def jobs(self) -> Jobs:
        """To create the job."""
        ...

    @property
    def blobs(self) -> Blobs:
        """To upload the archive."""
        ...


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
    """Archive ``source_dir`` (as the job's workspace says), upload it, and create the job.

    The team is ``team``, else the overrides', the config's, the remote's, else the one that has the
    project already. ``plan`` is the archive's, if the caller has made it already. Job creation is sent
    once: an error after it may have arrived is raised, never repeated.

    Raises ConfigurationError (ArchiveError among them), UploadFailed and the other kinds of RequestError.
    """
    overrides = overrides or Overrides()
    tell = on_progress or _tell_nobody
    project, warnings = apply_overrides(project, overrides)
    tell(SubmissionProgress("archiving"))
    wanted = team or overrides.team or project.team_name or client.remote.team
    choice = await choose_team(client, project_name=project.name, wanted=wanted)
    if choice.name is not None:
        project.team_name = choice.name
    if plan is None:
        plan = await asyncio.to_thread(plan_archive, source_dir, project.job.workspace)
    user_env = await asyncio.to_thread(describe_environment, source_dir)
    with tempfile.TemporaryDirectory(prefix="bt-tui-push-", ignore_cleanup_errors=True) as folder:
        archive = Path(folder) / ARCHIVE_NAME
        await _write(plan, archive, tell)
        credentials = await client.blobs.training_credentials()
        await _upload(client.blobs, archive, plan.size_bytes, credentials, tell)
    tell(SubmissionProgress("creating"))
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
    """What is archived for a config file: the folder that it lies in, links in its path kept."""
    return Path(config).absolute().parent


async def _write(plan: ArchivePlan, to: Path, tell: OnProgress) -> None:
    """Write the archive in a thread, which ends soon after we are cancelled."""
    loop = asyncio.get_running_loop()
    is_cancelled = threading.Event()

    def on_bytes(done_bytes: int, total_bytes: int) -> None:
        if is_cancelled.is_set():
            raise ArchiveError("cancelled")
        loop.call_soon_threadsafe(tell, SubmissionProgress("archiving", done_bytes, total_bytes))

    try:
        await asyncio.to_thread(write_archive, plan, to, on_bytes)
    finally:
        is_cancelled.set()


async def _upload(
    blobs: Blobs, archive: Path, size_bytes: int, credentials: BlobCredentials, tell: OnProgress
) -> None:
    latest = SubmissionProgress("uploading", 0, size_bytes)

    def on_bytes(done_bytes: int, total_bytes: int) -> None:
        nonlocal latest
        latest = SubmissionProgress("uploading", done_bytes, total_bytes)
        tell(latest)

    def on_note(note: str) -> None:
        tell(replace(latest, note=note))

    tell(latest)
    await blobs.upload(archive, credentials, on_progress=on_bytes, on_note=on_note)


def _tell_nobody(_progress: SubmissionProgress) -> None:
    """For callers that do not listen."""
