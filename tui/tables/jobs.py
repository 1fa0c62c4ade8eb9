"""Jobs and projects as the commands list them: as a table, and as fields for CSV."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from api_client.models import TrainingJob, TrainingProject
from tui.analysis.export import Value
from tui.analysis.status import status_view
from tui.tables.column import Column, Span
from tui.text.times import local_time
from tui.text.units import UNKNOWN, age, hardware

ERROR_CELLS_LIMIT = 200


def status_cell(status: str) -> list[Span]:
    view = status_view(status)
    return [(f"{view.sign} {view.word}", view.tone)]


def age_of(moment: datetime | None, now: datetime | None = None) -> str:
    """Return the age at ``now``, by default the current time."""
    return age(((now or datetime.now(UTC)) - moment).total_seconds()) if moment else UNKNOWN


def _latest(project: TrainingProject) -> str:
    latest = project.latest_job
    return (latest.name or latest.id) if latest else UNKNOWN


def _latest_status(project: TrainingProject) -> list[Span]:
    latest = project.latest_job
    return status_cell(latest.current_status) if latest else [(UNKNOWN, "muted")]


PROJECTS: tuple[Column[TrainingProject], ...] = (
    Column("id", "id", lambda project: [(project.id, "plain")]),
    Column("name", "name", lambda project: [(project.name, "strong")], shrinks=True),
    Column("team", "team", lambda project: [(project.team_name or UNKNOWN, "plain")], shrinks=True),
    Column("latest", "latest job", lambda project: [(_latest(project), "plain")], shrinks=True),
    Column("status", "status", _latest_status, shrinks=True),
    Column("created", "created", lambda project: [(local_time(project.created_at) or UNKNOWN, "plain")]),
)

JOBS: tuple[Column[TrainingJob], ...] = (
    Column("status", "status", lambda job: status_cell(job.current_status), shrinks=True),
    Column("id", "id", lambda job: [(job.id, "plain")]),
    Column("name", "name", lambda job: [(job.name or UNKNOWN, "strong")], shrinks=True),
    Column("project", "project", lambda job: [(job.project_name or UNKNOWN, "plain")], shrinks=True),
    Column("gpus", "gpus", lambda job: [(hardware(job), "plain")], shrinks=True),
    Column("age", "age", lambda job: [(age_of(job.created_at), "plain")], align="right"),
    Column(
        "message",
        "message",
        lambda job: [((job.error_message or "")[:ERROR_CELLS_LIMIT], "muted")],
        shrinks=True,
    ),
)

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
    "user": lambda job: job.user_email,
    "created_at": lambda job: job.created_at,
    "updated_at": lambda job: job.updated_at,
    "error_message": lambda job: job.error_message,
}
"""``gpu_count`` is per node."""

PROJECT_FIELDS: dict[str, Callable[[TrainingProject], Value]] = {
    "id": lambda project: project.id,
    "name": lambda project: project.name,
    "team_name": lambda project: project.team_name,
    "latest_job_id": lambda project: project.latest_job.id if project.latest_job else None,
    "latest_job_status": lambda project: project.latest_job.current_status if project.latest_job else None,
    "created_at": lambda project: project.created_at,
    "updated_at": lambda project: project.updated_at,
}
