"""The envelopes in which the API sends what it has.

The wanted part must be there (an answer without it is no answer), but may be null where it is a list.
The rest of an envelope is not read.
"""

from __future__ import annotations

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from api_client.models import (
    AuthCode,
    Checkpoint,
    Deployment,
    InstanceType,
    InstanceTypePrice,
    Model,
    Secret,
    Team,
    TeamGpuCapacity,
    TrainingJob,
    TrainingProject,
)

# Validators are built when an answer is first read: most commands need two or three of them.
_TOLERANT = ConfigDict(extra="ignore", defer_build=True)


@with_config(_TOLERANT)
class ProjectsAnswer(TypedDict):
    """``GET /v1/training_projects``."""

    training_projects: list[TrainingProject] | None


@with_config(_TOLERANT)
class ProjectAnswer(TypedDict):
    """One project, got or upserted."""

    training_project: TrainingProject


@with_config(_TOLERANT)
class JobsAnswer(TypedDict):
    """Jobs of a project, or found by a search."""

    training_jobs: list[TrainingJob] | None


@with_config(_TOLERANT)
class JobAnswer(TypedDict):
    """One job, got, created, changed or stopped."""

    training_job: TrainingJob


@with_config(_TOLERANT)
class DownloadAnswer(TypedDict):
    """Presigned URLs of a job's uploaded code."""

    artifact_presigned_urls: list[str] | None


@with_config(_TOLERANT)
class CheckpointsAnswer(TypedDict):
    """Checkpoints of a job."""

    checkpoints: list[Checkpoint] | None


@with_config(_TOLERANT)
class AuthCodesAnswer(TypedDict):
    """Sign-in codes of a job's sessions."""

    auth_codes: list[AuthCode] | None


@with_config(_TOLERANT)
class TeamCapacityAnswer(TypedDict):
    """A team's GPU limit after a change."""

    team_gpu_capacity: TeamGpuCapacity


@with_config(_TOLERANT)
class TeamsAnswer(TypedDict):
    """``GET /v1/teams``."""

    teams: list[Team] | None


@with_config(_TOLERANT)
class InstanceTypesAnswer(TypedDict):
    """``GET /v1/instance_types``."""

    instance_types: list[InstanceType] | None


@with_config(_TOLERANT)
class InstanceTypePricesAnswer(TypedDict):
    """``GET /v1/instance_type_prices``."""

    instance_types: list[InstanceTypePrice] | None


@with_config(_TOLERANT)
class SecretsAnswer(TypedDict):
    """Secrets by name."""

    secrets: list[Secret] | None


@with_config(_TOLERANT)
class ModelsAnswer(TypedDict):
    """``GET /v1/models``."""

    models: list[Model] | None


@with_config(_TOLERANT)
class DeploymentsAnswer(TypedDict):
    """Deployments of a model."""

    deployments: list[Deployment] | None


@with_config(_TOLERANT)
class Acknowledged(TypedDict):
    """An answer of which nothing is needed."""


PROJECTS = TypeAdapter(ProjectsAnswer)
PROJECT = TypeAdapter(ProjectAnswer)
JOBS = TypeAdapter(JobsAnswer)
JOB = TypeAdapter(JobAnswer)
DOWNLOAD = TypeAdapter(DownloadAnswer)
CHECKPOINTS = TypeAdapter(CheckpointsAnswer)
AUTH_CODES = TypeAdapter(AuthCodesAnswer)
TEAM_CAPACITY = TypeAdapter(TeamCapacityAnswer)
TEAMS = TypeAdapter(TeamsAnswer)
INSTANCE_TYPES = TypeAdapter(InstanceTypesAnswer)
INSTANCE_TYPE_PRICES = TypeAdapter(InstanceTypePricesAnswer)
SECRETS = TypeAdapter(SecretsAnswer)
MODELS = TypeAdapter(ModelsAnswer)
DEPLOYMENTS = TypeAdapter(DeploymentsAnswer)
ACKNOWLEDGED = TypeAdapter(Acknowledged)
