"""Training projects."""

from __future__ import annotations

from api_client.models.base import ApiModel, UtcDatetime
from api_client.models.jobs import TrainingJob


class TrainingProject(ApiModel):
    """A group of training jobs. ``latest_job`` is the newest of them, if there is any."""

    id: str
    name: str = ""
    created_at: UtcDatetime | None = None
    updated_at: UtcDatetime | None = None
    team_name: str | None = None
    latest_job: TrainingJob | None = None


class ProjectTombstone(ApiModel):
    """The answer to a project's deletion."""

    id: str
    deleted: bool = True
