"""The emulated organization: its teams, projects and stores, and both job backends behind one interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from api_client.clock import Clock
from api_client.emulator.fleet.backend import FleetBackend
from api_client.emulator.job_spec import CheckedJobSpec, check_job_spec
from api_client.emulator.responses import found_or_404, invalid, new_id, not_found
from api_client.emulator.runner.backend import LocalBackend
from api_client.emulator.store.blobs import Signer
from api_client.emulator.store.stores import StoredProject, Stores, new_sessions
from api_client.models import (
    WAITING_STATUSES,
    JobStatus,
    ProjectSummary,
    Team,
    TrainingJob,
    TrainingProject,
    is_finished,
)

SPOT = "spot"
OCCUPYING_STATUSES = frozenset({JobStatus.CREATED, JobStatus.DEPLOYING, JobStatus.RUNNING})
"""A job with one of these statuses occupies its machines."""


UNKNOWN_TIME = datetime.min.replace(tzinfo=UTC)
"""Sorts jobs and projects without a time as the oldest."""


Backend = LocalBackend | FleetBackend
"""A source of jobs. Reads are plain calls, safe from any thread; actions run on the event loop.

Methods with a ``job_id`` may assume that ``owns(job_id)`` is true: ``Platform`` rejects unknown ids.
"""


class Platform:
    """The object that all routes use. Reads are plain calls, safe from any thread; actions are coroutines.

    Lookups by id raise a 404 if the object does not exist.
    """

    def __init__(
        self,
        *,
        stores: Stores,
        data_dir: Path,
        signer: Signer,
        clock: Clock,
        local: LocalBackend,
        backends: Sequence[Backend] = (),
        workspace_name: str = "Emulator",
    ) -> None:
        self.stores = stores
        self.data_dir = data_dir
        self.signer = signer
        self.clock = clock
        self.workspace_name = workspace_name
        self.local = local
        self.backends: tuple[Backend, ...] = (local, *backends)

    # Reads

    def now(self) -> datetime:
        return self.clock.now()

    def now_s(self) -> float:
        return self.clock.now().timestamp()

    def jobs(self) -> list[TrainingJob]:
        """Return the jobs of all backends, newest first, except jobs of deleted projects."""
        projects = {project.id for project in self.stores.projects.all()}
        jobs = [job for backend in self.backends for job in backend.jobs() if job.project_id in projects]
        return sorted(jobs, key=lambda job: (job.created_at or UNKNOWN_TIME, job.id), reverse=True)

    def projects(self) -> list[TrainingProject]:
        """Return all projects with their newest jobs, most recently changed first."""
        latest: dict[str, TrainingJob] = {}
        for job in self.jobs():
            latest.setdefault(job.project_id, job)
        projects = [
            self._training_project(stored, latest.get(stored.id)) for stored in self.stores.projects.all()
        ]
        return sorted(projects, key=lambda project: project.updated_at or UNKNOWN_TIME, reverse=True)

    def project(self, project_id: str) -> TrainingProject:
        stored_project = self.stored_project(project_id)
        return self._training_project(stored_project, next(iter(self.project_jobs(project_id)), None))

    def stored_project(self, project_id: str) -> StoredProject:
        return found_or_404(self.stores.projects.get(project_id), "Training project", project_id)

    def project_jobs(self, project_id: str) -> list[TrainingJob]:
        return [job for job in self.jobs() if job.project_id == project_id]

    def backend_of(self, job_id: str) -> Backend:
        for backend in self.backends:
            if backend.owns(job_id):
                return backend
        raise not_found("Training job", job_id)

    def job(self, project_id: str, job_id: str) -> TrainingJob:
        """Return a job of the project; raise a 404 if the project does not have it."""
        self.stored_project(project_id)
        job = self.backend_of(job_id).job(job_id)
        if job.project_id != project_id:
            raise not_found("Training job", job_id)
        return job

    def job_by_id(self, job_id: str) -> TrainingJob:
        job = self.backend_of(job_id).job(job_id)
        self.stored_project(job.project_id)
        return job

    def team(self, team_id: str) -> Team:
        return found_or_404(self.stores.teams.get(team_id), "Team", team_id)

    # Actions

    def upsert_project(self, name: str, team: Team) -> TrainingProject:
        """Return the team's project with that name, creating it if necessary."""
        project = self.stores.projects.named(name, team.id)
        if project is None:
            now = self.now()
            project = StoredProject(new_id(), name, team.id, created_at=now, updated_at=now)
            self.stores.projects.add(project)
        return self.project(project.id)

    async def delete_project(self, project_id: str) -> None:
        """Delete a project and all of its jobs."""
        self.stored_project(project_id)
        for job in self.project_jobs(project_id):
            await self.delete_job(project_id, job.id)
        self.stores.projects.delete(project_id)
        await self.local.delete_cache(project_id)

    async def create_job(self, project_id: str, fields: Mapping[str, Any]) -> TrainingJob:
        project = self.stored_project(project_id)
        spec = check_job_spec(fields)
        job_id = new_id()
        self._open_sessions(job_id, spec)
        job = await self.local.create(job_id, ProjectSummary(id=project.id, name=project.name), fields)
        self.stores.projects.touch(project_id, self.now())
        return job

    async def stop_job(self, project_id: str, job_id: str) -> TrainingJob:
        """Stop a job; return a finished job unchanged."""
        job = self.job(project_id, job_id)
        return job if is_finished(job.current_status) else await self.backend_of(job_id).stop(job_id)

    async def recreate_job(self, project_id: str, job_id: str) -> TrainingJob:
        self.job(project_id, job_id)
        new_job_id = new_id()
        backend = self.backend_of(job_id)
        if spec := backend.spec(job_id):
            self._open_sessions(new_job_id, check_job_spec(spec))
        job = await backend.recreate(job_id, new_job_id)
        self.stores.projects.touch(project_id, self.now())
        return job

    async def delete_job(self, project_id: str, job_id: str) -> None:
        self.job(project_id, job_id)
        await self.backend_of(job_id).delete(job_id)
        self.stores.sessions.delete(job_id)

    async def update_job(self, project_id: str, job_id: str, changes: Mapping[str, Any]) -> TrainingJob:
        """Change priority or availability model; only waiting jobs can be changed."""
        job = self.job(project_id, job_id)
        if not changes:
            raise invalid("at least one of priority and availability_model is required")
        if job.current_status not in WAITING_STATUSES:
            raise invalid(f"only a pending job can be updated; this one is {job.current_status}")
        return await self.backend_of(job_id).update(job_id, changes)

    async def preempt_job(self, job_id: str) -> TrainingJob:
        """Take the machine away from a local spot job; raise a 400 for any other job."""
        job = self.job_by_id(job_id)
        if not self.local.owns(job_id):
            raise invalid("only jobs that run on this machine can be preempted; this one is simulated")
        if (job.availability_model or "").lower() != SPOT:
            raise invalid("only spot jobs can be preempted; this one is dedicated")
        if job.current_status not in OCCUPYING_STATUSES:
            raise invalid(f"only a running job can be preempted; this one is {job.current_status}")
        return await self.local.preempt(job_id)

    def _open_sessions(self, job_id: str, spec: CheckedJobSpec) -> None:
        if sessions := new_sessions(job_id, spec, self.now()):
            self.stores.sessions.put(job_id, sessions)

    def _training_project(self, stored: StoredProject, latest_job: TrainingJob | None) -> TrainingProject:
        team = self.stores.teams.get(stored.team_id)
        change_times = [
            stored.updated_at,
            *([latest_job.updated_at] if latest_job and latest_job.updated_at else []),
        ]
        return TrainingProject(
            id=stored.id,
            name=stored.name,
            created_at=stored.created_at,
            updated_at=max(change_times),
            team_name=team.name if team else None,
            latest_job=latest_job,
        )
