"""Submit a job: choose the team, upload the archive, create the project and the job."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from importlib import metadata
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import pydantic

from api_client.definitions import TrainingProject
from api_client.errors import ArchiveError, ConfigurationError, ErrorAnswer
from api_client.http.connection import user_agent
from api_client.models import (
    BlobCredentials,
    Team,
    TrainingJob as CreatedJob,
    TrainingProject as CreatedProject,
)
from api_client.remotes import Remote
from api_client.resources.account import Account, Capacity
from api_client.resources.jobs import Jobs
from api_client.resources.projects import Projects
from api_client.submission.archive import ArchivePlan, pack, plan_archive, writing_archive
from api_client.submission.payload import Overrides, apply_overrides, job_payload
from api_client.transfers.uploads import Blobs


class SubmissionClient(Protocol):
    """The parts of ``TrainingClient`` that a submission needs; importing it would be circular."""

    remote: Remote
    account: Account

    @property
    def blobs(self) -> Blobs: ...

    capacity: Capacity
    jobs: Jobs
    projects: Projects


Phase = Literal["archiving", "uploading", "creating"]


@dataclass(frozen=True, slots=True)
class SubmissionProgress:
    """Progress of a submission: bytes done and total bytes of its current phase.

    ``note`` is set while an upload makes no progress.
    """

    phase: Phase
    done_bytes: int = 0
    total_bytes: int = 0
    note: str = ""


OnProgress = Callable[[SubmissionProgress], object]  # called on the event loop


@dataclass(frozen=True, slots=True)
class Submission:
    """Result of a submission. ``warnings`` mention replaced values, omitted files, and a guessed team."""

    training_project: CreatedProject
    training_job: CreatedJob
    plan: ArchivePlan
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the documented result of ``push``: ``training_project`` and ``training_job``, as dicts."""
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

    The team is ``team``, else the team of the overrides, the config or the remote, else the team that already
    has the project. ``plan`` is the archive's plan, if the caller has planned it already. The request that
    creates the job is sent once: after an error it may have arrived, so it is not retried.

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
    # The temporary file has no name, so that nothing of it remains if this process is killed.
    with writing_archive(Path(tempfile.gettempdir())), tempfile.TemporaryFile() as archive:
        await _write_archive(plan, archive, report)
        credentials = await client.blobs.training_credentials()
        await _upload(client.blobs, archive, plan.size_bytes, credentials, report)
    report(SubmissionProgress("creating"))
    payload = job_payload(
        project.job, artifact=(credentials.s3_bucket, credentials.s3_key), user_env=user_env
    )
    created_project = await client.projects.upsert(
        project.name, team_id=choice.team_id, team_name=project.team_name
    )
    created_job = await client.jobs.create(created_project.id, payload)
    if choice.warning is not None:
        warnings = (*warnings, choice.warning)
    return Submission(created_project, created_job, plan, (*warnings, *plan.warnings))


def folder_of(config: Path | str) -> Path:
    """Return the folder to archive for a config file: its parent. Links in the path are not resolved."""
    return Path(config).absolute().parent


async def _write_archive(plan: ArchivePlan, archive: IO[bytes], report: OnProgress) -> None:
    """Write the archive in a thread, which stops soon if this task is cancelled."""
    loop = asyncio.get_running_loop()
    is_cancelled = threading.Event()

    def on_bytes(done_bytes: int, total_bytes: int) -> None:
        if is_cancelled.is_set():
            raise ArchiveError("cancelled")
        loop.call_soon_threadsafe(report, SubmissionProgress("archiving", done_bytes, total_bytes))

    try:
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


@dataclass(frozen=True, slots=True)
class TeamChoice:
    """Team to create the job in; without an id, the server's default team. ``warning`` explains a guess."""

    team_id: str | None = None
    name: str | None = None
    warning: str | None = None


async def choose_team(client: SubmissionClient, *, project_name: str, wanted: str | None) -> TeamChoice:
    """Find the team with the id or name ``wanted``; if that is None, the team that already has the project.

    Raises ConfigurationError if there is no such team, or if several teams have a project of that name;
    RequestError.
    """
    try:
        teams = await client.account.teams()
    except ErrorAnswer as error:
        if wanted is not None or not (error.lacks_route or error.status == HTTPStatus.FORBIDDEN):
            raise
        teams = []
    if wanted is not None:
        return _named_team(teams, wanted)
    if len(teams) <= 1:
        return _to_choice(teams[0]) if teams else TeamChoice()
    project_teams = {
        project.team_name for project in await client.projects.list() if project.name == project_name
    }
    teams_with_project = [team for team in teams if team.name in project_teams]
    if len(teams_with_project) > 1:
        names = ", ".join(sorted(team.name for team in teams_with_project))
        raise ConfigurationError(f"several teams have a project '{project_name}' ({names}); choose a team")
    if teams_with_project:
        return _to_choice(teams_with_project[0])
    default = next((f" '{team.name}'" for team in teams if team.default), "")
    return TeamChoice(warning=f"'{project_name}' is a new project and goes to the default team{default}")


def _named_team(teams: Sequence[Team], wanted: str) -> TeamChoice:
    """Return the team with this id, else this name.

    Raises ConfigurationError, which lists the existing teams.
    """
    for team in sorted(teams, key=lambda team: team.id != wanted):
        if wanted in (team.id, team.name):
            return TeamChoice(team.id, team.name)
    names = ", ".join(sorted(team.name for team in teams)) or "none visible to this key"
    raise ConfigurationError(f"no team '{wanted}' (known: {names})")


def _to_choice(team: Team) -> TeamChoice:
    # For the default team, send no id: every server supports the route without a team.
    return TeamChoice() if team.default else TeamChoice(team.id, team.name)


def describe_environment(source_dir: Path) -> dict[str, Any]:
    """Return a job's ``truss_user_env``, with our name and version instead of the official client's.

    Runs ``git`` in ``source_dir``; blocks.
    """
    return {
        "truss_client_version": user_agent().split(" ", 1)[0],
        "python_version": ".".join(str(part) for part in sys.version_info[:3]),
        "pydantic_version": pydantic.VERSION,
        "mypy_version": _version_of("mypy"),
        "git_info": _git_info(source_dir),
    }


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git_info(folder: Path) -> dict[str, Any] | None:
    """Return the commit, the latest tag before it, and a dirty flag; None outside of a repository."""
    sha = _git(folder, "rev-parse", "HEAD")
    if not sha:
        return None
    tag = _git(folder, "describe", "--tags", "--abbrev=0") or None
    commits_since = _git(folder, "rev-list", f"{tag}..HEAD", "--count") if tag else None
    return {
        "latest_commit_sha": sha,
        "latest_tag": tag,
        "commits_since_tag": int(commits_since) if commits_since and commits_since.isdigit() else None,
        "has_uncommitted_changes": bool(_git(folder, "status", "--porcelain")),
    }


def _git(folder: Path, *arguments: str) -> str | None:
    # git must not lock or refresh the index, or prompt.
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        completed = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10.0,  # if a repository takes longer, the job is submitted without its commit
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.decode(errors="replace").strip()
