"""The columns that all tables and exports of jobs share, and the columns of projects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tui.analysis.status import status_view
from tui.tables.column import Column, Span, select_columns, text_cell
from tui.text.times import local_time
from tui.text.units import UNKNOWN, age, hardware

if TYPE_CHECKING:
    from api_client.models import TrainingJob, TrainingProject


def status_cell(status: str) -> list[Span]:
    view = status_view(status)
    return [(f"{view.sign} {view.word}", view.tone)]


def age_of(moment: datetime | None, now: datetime | None = None) -> str:
    """Return the age of ``moment`` at ``now`` (default: the current time); ``UNKNOWN`` without a moment."""
    return age(((now or datetime.now(UTC)) - moment).total_seconds()) if moment else UNKNOWN


def _spot(job: TrainingJob) -> list[Span]:
    return [("spot", "caution")] if job.is_spot else []


JOB_COLUMNS: tuple[Column[TrainingJob], ...] = (
    Column("id", "id", text_cell(lambda job: job.id), width=8, export=lambda job: job.id),
    Column(
        "name",
        "name",
        text_cell(lambda job: job.name or UNKNOWN, "strong"),
        width=14,
        flex=3,
        priority=8,
        shrinks=True,
        export=lambda job: job.name,
    ),
    Column(
        "status",
        "status",
        lambda job: status_cell(job.current_status),
        width=15,
        priority=9,
        shrinks=True,
        export=lambda job: job.current_status,
        field="current_status",
    ),
    Column("training_project_id", export=lambda job: job.project_id),
    Column(
        "project",
        "project",
        text_cell(lambda job: job.project_name or UNKNOWN, "muted"),
        width=12,
        flex=2,
        priority=2,
        shrinks=True,
        export=lambda job: job.training_project.name if job.training_project else None,
        field="training_project_name",
    ),
    Column(
        "gpus",
        "gpus",
        text_cell(hardware),
        width=8,
        priority=6,
        shrinks=True,
        sort_key=lambda job: (job.total_gpus, hardware(job)) if hardware(job) != UNKNOWN else None,
        descending=True,
    ),
    Column("node_count", export=lambda job: job.node_count),
    Column("instance_type", export=lambda job: job.instance_type.name),
    Column("gpu_type", export=lambda job: job.instance_type.gpu_type),
    Column("gpu_count", export=lambda job: job.instance_type.gpu_count),  # GPUs per node
    Column(
        "spot",
        "",
        _spot,
        width=4,
        needed_by=lambda job: job.is_spot,
        sort_key=lambda job: job.is_spot or None,
        export=lambda job: job.availability_model,
        field="availability_model",
    ),
    Column(
        "priority",
        "prio",
        text_cell(lambda job: str(job.priority or ""), "muted"),
        width=4,
        align="right",
        priority=1,
        needed_by=lambda job: job.priority,
        sort_key=lambda job: job.priority or 0,
        descending=True,
        export=lambda job: job.priority,
    ),
    Column(
        "user",
        "user",
        text_cell(lambda job: job.user_email or "", "muted"),
        width=14,
        flex=3,
        priority=1,
        sort_key=lambda job: (job.user_email or "").lower() or None,
        export=lambda job: job.user_email,
    ),
    Column(
        "age",
        "age",
        text_cell(lambda job: age_of(job.created_at)),
        width=4,
        align="right",
        priority=7,
        export=lambda job: job.created_at,
        field="created_at",
    ),
    Column("updated_at", export=lambda job: job.updated_at),
    Column(
        "message",
        "message",
        text_cell(lambda job: (job.error_message or "")[:200], "muted"),
        width=12,
        flex=2,
        shrinks=True,
        export=lambda job: job.error_message,
        field="error_message",
    ),
)
"""All columns, in the order of exports and with the API's field names; each table shows some of them."""

JOB_LIST_COLUMNS = select_columns(JOB_COLUMNS, "status id name project gpus age message")


def _latest_job(project: TrainingProject) -> str:
    latest = project.latest_job
    return (latest.name or latest.id) if latest else UNKNOWN


def _latest_status(project: TrainingProject) -> list[Span]:
    latest = project.latest_job
    return status_cell(latest.current_status) if latest else [(UNKNOWN, "muted")]


PROJECT_COLUMNS: tuple[Column[TrainingProject], ...] = (
    Column("id", "id", text_cell(lambda project: project.id), export=lambda project: project.id),
    Column(
        "name",
        "name",
        text_cell(lambda project: project.name, "strong"),
        shrinks=True,
        export=lambda project: project.name,
    ),
    Column(
        "team",
        "team",
        text_cell(lambda project: project.team_name or UNKNOWN),
        shrinks=True,
        export=lambda project: project.team_name,
        field="team_name",
    ),
    Column(
        "latest",
        "latest job",
        text_cell(_latest_job),
        shrinks=True,
        export=lambda project: project.latest_job.id if project.latest_job else None,
        field="latest_job_id",
    ),
    Column(
        "status",
        "status",
        _latest_status,
        shrinks=True,
        export=lambda project: project.latest_job.current_status if project.latest_job else None,
        field="latest_job_status",
    ),
    Column(
        "created",
        "created",
        text_cell(lambda project: local_time(project.created_at) or UNKNOWN),
        export=lambda project: project.created_at,
        field="created_at",
    ),
    Column("updated_at", export=lambda project: project.updated_at),
)

PROJECT_LIST_COLUMNS = select_columns(PROJECT_COLUMNS, "id name team latest status created")
