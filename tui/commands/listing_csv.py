"""Projects and jobs as CSV: a line each, by the API's own field names, times in UTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from api_client.models import TrainingJob, TrainingProject
from tui.insight.export import csv_lines

Value = str | int | float | datetime | None

JOB_FIELDS: dict[str, Callable[[TrainingJob], Value]] = {
    "id": lambda job: job.id,
    "name": lambda job: job.name,
    "current_status": lambda job: job.current_status,
    "training_project_id": lambda job: job.project_id,
    "training_project_name": lambda job: job.training_project.name if job.training_project else None,
    "node_count": lambda job: job.node_count,
    "instance_type": lambda job: job.instance_type.name,
    "gpu_type": lambda job: job.instance_type.gpu_type,
    "gpu_count": lambda job: job.instance_type.gpu_count,
    "availability_model": lambda job: job.availability_model,
    "priority": lambda job: job.priority,
    "user": lambda job: job.user.email if job.user else None,
    "created_at": lambda job: job.created_at,
    "updated_at": lambda job: job.updated_at,
    "error_message": lambda job: job.error_message,
}
"""``gpu_count`` is that of one node."""

PROJECT_FIELDS: dict[str, Callable[[TrainingProject], Value]] = {
    "id": lambda project: project.id,
    "name": lambda project: project.name,
    "team_name": lambda project: project.team_name,
    "latest_job_id": lambda project: project.latest_job.id if project.latest_job else None,
    "latest_job_status": lambda project: project.latest_job.current_status if project.latest_job else None,
    "created_at": lambda project: project.created_at,
    "updated_at": lambda project: project.updated_at,
}


def jobs_csv(jobs: Sequence[TrainingJob]) -> str:
    """A heading, and a line for each job."""
    return csv_lines([tuple(JOB_FIELDS), *([read(job) for read in JOB_FIELDS.values()] for job in jobs)])


def projects_csv(projects: Sequence[TrainingProject]) -> str:
    """A heading, and a line for each project."""
    read = PROJECT_FIELDS.values()
    return csv_lines([tuple(PROJECT_FIELDS), *([one(project) for one in read] for project in projects)])
