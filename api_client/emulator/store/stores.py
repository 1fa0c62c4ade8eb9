"""All stored state of the organization, except the simulated jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from api_client.emulator.store.account import SecretStore, SessionStore, TeamStore
from api_client.emulator.store.blobs import BlobStore
from api_client.emulator.store.database import Database
from api_client.emulator.store.deployments import DeploymentStore
from api_client.emulator.store.job_streams import JobLogStore, MetricStore
from api_client.emulator.store.jobs import JobStore, ProjectStore


@dataclass(frozen=True)
class Stores:
    teams: TeamStore
    projects: ProjectStore
    secrets: SecretStore
    sessions: SessionStore
    blobs: BlobStore
    deployments: DeploymentStore
    jobs: JobStore
    logs: JobLogStore
    metrics: MetricStore

    @classmethod
    def open(cls, database: Database, data_dir: Path) -> Stores:
        return cls(
            teams=TeamStore(database),
            projects=ProjectStore(database),
            secrets=SecretStore(database, data_dir / "secrets"),
            sessions=SessionStore(database),
            blobs=BlobStore(data_dir / "blobs"),
            deployments=DeploymentStore(database),
            jobs=JobStore(database),
            logs=JobLogStore(database),
            metrics=MetricStore(database),
        )

    def team_of(self, project_id: str) -> str:
        project = self.projects.get(project_id)
        return self.teams.default().id if project is None else project.team_id

    def secret_of(self, project_id: str, name: str) -> str | None:
        """Return a secret of the project's team: a job has no other secrets."""
        return self.secrets.value(self.team_of(project_id), name)
