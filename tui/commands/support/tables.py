"""Tables for the terminal: cells of projects and jobs, column widths, and the same as CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from api_client.models import TrainingJob, TrainingProject
from tui.analysis.export import csv_lines
from tui.analysis.status import status_view
from tui.text.hardware import hardware
from tui.text.sanitize import cell_width, clip, sanitize
from tui.text.times import local_time
from tui.text.units import UNKNOWN, age

ERROR_CELLS_LIMIT = 200


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column: if ``shrinks`` is set, its text may be clipped on a narrow terminal."""

    title: str
    right: bool = False
    shrinks: bool = False


PROJECT_COLUMNS = (
    TextColumn("ID"),
    TextColumn("NAME", shrinks=True),
    TextColumn("TEAM", shrinks=True),
    TextColumn("LATEST JOB", shrinks=True),
    TextColumn("STATUS", shrinks=True),
    TextColumn("CREATED"),
)

JOB_COLUMNS = (
    TextColumn("STATUS", shrinks=True),
    TextColumn("ID"),
    TextColumn("NAME", shrinks=True),
    TextColumn("PROJECT", shrinks=True),
    TextColumn("GPUS", shrinks=True),
    TextColumn("AGE", right=True),
    TextColumn("MESSAGE", shrinks=True),
)


def project_row(project: TrainingProject) -> list[Cell]:
    latest = project.latest_job
    return [
        Cell(project.id),
        Cell(project.name, "strong"),
        Cell(project.team_name or UNKNOWN),
        Cell((latest.name or latest.id) if latest else UNKNOWN),
        _status_cell(latest.current_status) if latest else Cell(UNKNOWN, "muted"),
        Cell(local_time(project.created_at) or UNKNOWN),
    ]


def job_row(job: TrainingJob) -> list[Cell]:
    project = job.training_project
    return [
        _status_cell(job.current_status),
        Cell(job.id),
        Cell(job.name or UNKNOWN, "strong"),
        Cell((project.name if project else "") or job.project_id or UNKNOWN),
        Cell(hardware(job)),
        Cell(_age(job.created_at)),
        Cell((job.error_message or "")[:ERROR_CELLS_LIMIT], "muted"),
    ]


def job_facts(job: TrainingJob, *, link: str) -> list[tuple[str, Cell]]:
    """Return the known facts of a job as names and values; values that the server left out are omitted."""
    project = job.training_project
    facts = [
        ("status", _status_cell(job.current_status)),
        ("name", Cell(job.name or UNKNOWN, "strong")),
        ("id", Cell(job.id)),
        ("project", Cell(f"{project.name} ({job.project_id})" if project else job.project_id)),
        ("instance", Cell(_instance(job))),
        ("created", Cell(f"{local_time(job.created_at) or UNKNOWN}, {_age(job.created_at)} ago")),
        ("updated", Cell(local_time(job.updated_at) or UNKNOWN)),
        ("priority", Cell(str(job.priority)) if job.priority is not None else None),
        ("capacity", Cell(job.availability_model.lower()) if job.availability_model else None),
        ("started by", Cell(job.user.email) if job.user and job.user.email else None),
        ("checkpoints", Cell(job.checkpoint_sync_status.lower()) if job.checkpoint_sync_status else None),
        ("message", Cell(job.error_message, "caution") if job.error_message else None),
        ("link", Cell(link)),
    ]
    return [(name, cell) for name, cell in facts if cell is not None]


def _status_cell(status: str) -> Cell:
    view = status_view(status)
    return Cell(f"{view.sign} {view.word}", view.tone)


def _instance(job: TrainingJob) -> str:
    machine = job.instance_type
    name = machine.name or machine.id
    return f"{hardware(job)} ({name})" if name else hardware(job)


def _age(moment: datetime | None) -> str:
    return age((datetime.now(UTC) - moment).total_seconds()) if moment else UNKNOWN


COLUMN_GAP = "  "
MIN_SHRUNK_CELLS = 8

Paint = Callable[[str, str | None], str]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: unsanitized text and the name of its tone."""

    text: str
    tone: str | None = None


def render_table(
    columns: Sequence[TextColumn], rows: Sequence[Sequence[Cell]], *, width_cells: int | None, paint: Paint
) -> str:
    """Render the table with its header, each line with a line break; ``width_cells`` None means no limit."""
    texts = [[sanitize(cell.text) for cell in row] for row in rows]
    titles = [sanitize(column.title) for column in columns]
    widths = [
        max([cell_width(title), *(cell_width(row[index]) for row in texts)])
        for index, title in enumerate(titles)
    ]
    if width_cells is not None:
        widths = _fit(columns, widths, width_cells)
    lines = [_line(columns, titles, ["muted"] * len(columns), widths, paint)]
    for row, row_texts in zip(rows, texts, strict=True):
        lines.append(_line(columns, row_texts, [cell.tone for cell in row], widths, paint))
    return "".join(line + "\n" for line in lines)


def render_facts(facts: Sequence[tuple[str, Cell]], *, paint: Paint) -> str:
    """Render two columns, ``name  value``, each line with a line break; values are never clipped."""
    names = [sanitize(name) for name, _cell in facts]
    width = max(map(cell_width, names), default=0)
    return "".join(
        f"{paint(name + ' ' * (width - cell_width(name)), 'muted')}{COLUMN_GAP}"
        f"{paint(sanitize(cell.text), cell.tone)}\n"
        for name, (_name, cell) in zip(names, facts, strict=True)
    )


def _fit(columns: Sequence[TextColumn], widths: Sequence[int], width_cells: int) -> list[int]:
    """Shrink the widest shrinkable column cell by cell until the line fits."""
    fitted = list(widths)
    surplus = sum(fitted) + len(COLUMN_GAP) * (len(fitted) - 1) - width_cells
    while surplus > 0:
        candidates = [
            index
            for index, column in enumerate(columns)
            if column.shrinks and fitted[index] > MIN_SHRUNK_CELLS
        ]
        if not candidates:
            break
        fitted[max(candidates, key=fitted.__getitem__)] -= 1
        surplus -= 1
    return fitted


def _line(
    columns: Sequence[TextColumn],
    texts: Sequence[str],
    tones: Sequence[str | None],
    widths: Sequence[int],
    paint: Paint,
) -> str:
    pieces = []
    for column, text, tone, width in zip(columns, texts, tones, widths, strict=True):
        shown = clip(text, width)
        padding = " " * (width - cell_width(shown))
        painted = paint(shown, tone)
        pieces.append(padding + painted if column.right else painted + padding)
    return COLUMN_GAP.join(pieces).rstrip()


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


def jobs_csv(jobs: Sequence[TrainingJob]) -> str:
    return csv_lines([tuple(JOB_FIELDS), *([read(job) for read in JOB_FIELDS.values()] for job in jobs)])


def projects_csv(projects: Sequence[TrainingProject]) -> str:
    read = PROJECT_FIELDS.values()
    return csv_lines([tuple(PROJECT_FIELDS), *([one(project) for one in read] for project in projects)])
