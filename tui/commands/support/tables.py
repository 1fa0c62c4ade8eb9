"""Tables for the terminal, with columns that fit its width, and lists of facts: names with their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from api_client.client import TrainingClient
from api_client.models import ApiModel, TrainingJob
from tui.analysis.export import csv_text, records
from tui.analysis.status import upload_text
from tui.commands.support.options import recorded_job_id
from tui.commands.support.output import CommandOutput
from tui.tables.column import Column, Span, export_table, fitted_columns, sized_columns
from tui.tables.jobs import age_of, status_cell
from tui.text.sanitize import cell_width, clip, sanitize, sanitize_whole
from tui.text.times import local_time
from tui.text.units import UNKNOWN, hardware

Row = TypeVar("Row")


COLUMN_GAP = "  "

Paint = Callable[[str, str | None], str]


@dataclass(frozen=True, slots=True)
class Cell:
    """The value of a fact: unsanitized text and the name of its tone."""

    text: str
    tone: str | None = None


def facts_text(facts: Sequence[tuple[str, Cell]], output: CommandOutput) -> str:
    """Return the facts that have a text as lines of ``name  value``."""
    return render_facts([fact for fact in facts if fact[1].text], paint=output.paint)


def table_text(columns: Sequence[Column[Row]], rows: Sequence[Row], output: CommandOutput) -> str:
    """Return the table with its header, at most as wide as the terminal; each line has a line break.

    Each cell has the tone of its first text.
    """
    header = [(sanitize(column.heading or column.title.upper()), "muted") for column in columns]
    lines = [header, *([_rendered_cell(column, row) for column in columns] for row in rows)]
    widths = [max(cell_width(text) for text, _tone in cells) for cells in zip(*lines, strict=True)]
    if output.width_cells is not None:
        widths = _fitted_widths(columns, widths, output.width_cells)
    return "".join(_table_line(columns, cells, widths, output.paint) + "\n" for cells in lines)


def _rendered_cell(column: Column[Row], row: Row) -> Span:
    spans = column.cell(row)
    return sanitize_whole("".join(text for text, _tone in spans)), spans[0][1] if spans else ""


def render_facts(facts: Sequence[tuple[str, Cell]], *, paint: Paint) -> str:
    """Render two columns, ``name  value``, each line with a line break; values are never clipped."""
    names = [sanitize(name) for name, _cell in facts]
    width = max(map(cell_width, names), default=0)
    return "".join(
        f"{paint(name + ' ' * (width - cell_width(name)), 'muted')}{COLUMN_GAP}"
        f"{paint(sanitize_whole(cell.text), cell.tone)}\n"
        for name, (_name, cell) in zip(names, facts, strict=True)
    )


def _fitted_widths(columns: Sequence[Column[Row]], widths: Sequence[int], width_cells: int) -> list[int]:
    fitted_widths = list(widths)
    excess_cells = sum(fitted_widths) + len(COLUMN_GAP) * (len(fitted_widths) - 1) - width_cells
    while excess_cells > 0:
        candidates = [
            index for index, column in enumerate(columns) if column.shrinks and fitted_widths[index] > 8
        ]
        if not candidates:
            break
        fitted_widths[max(candidates, key=fitted_widths.__getitem__)] -= 1
        excess_cells -= 1
    return fitted_widths


def _table_line(
    columns: Sequence[Column[Row]], cells: Sequence[Span], widths: Sequence[int], paint: Paint
) -> str:
    padded_cells = []
    for column, (text, tone), width in zip(columns, cells, widths, strict=True):
        clipped_text = clip(text, width)
        padding = " " * (width - cell_width(clipped_text))
        painted_text = paint(clipped_text, tone)
        padded_cells.append(padding + painted_text if column.align == "right" else painted_text + padding)
    return COLUMN_GAP.join(padded_cells).rstrip()


def table_text_if_any(columns: Sequence[Column[Row]], rows: Sequence[Row], output: CommandOutput) -> str:
    """Return the table as text; without rows an empty text, not even the header."""
    return table_text(columns, rows, output) if rows else ""


def print_list(
    output: CommandOutput,
    rows: Sequence[Row],
    columns: Sequence[Column[Row]],
    fields: Sequence[Column[Row]],
    empty_message: str = "",
) -> None:
    """Print rows as a table, or the values of ``fields`` as CSV or JSON; models as the API's JSON.

    Without rows, print ``empty_message`` to stderr, too.
    """
    if not rows and empty_message:
        output.print_message(empty_message)
    are_api_models = all(isinstance(row, ApiModel) for row in rows)
    output.print_result(
        rows if are_api_models else lambda: records(export_table("", fields, rows)),
        lambda: table_text(columns, rows, output),
        lambda: csv_text([export_table("", fields, rows)]),
    )


def fitting_columns(
    columns: Sequence[Column[Row]], rows: Sequence[Row], output: CommandOutput
) -> Sequence[Column[Row]]:
    """Return the columns that have room on the terminal; empty columns are dropped first."""
    if output.width_cells is None:
        return columns
    columns_with_widths = sized_columns(columns, rows, output.width_cells)
    visible_ids = {
        column.id for column, _ in fitted_columns(columns_with_widths, output.width_cells, len(COLUMN_GAP))
    }
    return [column for column in columns if column.id in visible_ids]


def row_facts(columns: Sequence[Column[Row]], row: Row) -> list[tuple[str, Cell]]:
    """Return the cells of one row as facts, named by column titles; skip untitled columns."""
    cells = [(column.title, *_rendered_cell(column, row)) for column in columns if column.title]
    return [(title, Cell(text.strip(), tone)) for title, text, tone in cells]


def print_job(
    client: TrainingClient,
    output: CommandOutput,
    job: TrainingJob,
    document: object = None,
    extra_facts: Sequence[tuple[str, Cell]] = (),
) -> None:
    """Print the facts of a job and ``extra_facts``, or as JSON ``document`` (default: the job itself)."""
    link = "" if recorded_job_id() else client.job_link(job.project_id, job.id)
    facts = _job_facts(job, link, client.clock.now(), extra_facts)
    output.print_result(document or job, facts_text(facts, output))


def _job_facts(
    job: TrainingJob, link: str, now: datetime, extra_facts: Sequence[tuple[str, Cell]]
) -> list[tuple[str, Cell]]:
    project = job.training_project
    return [
        ("status", Cell(*status_cell(job.current_status)[0])),
        *extra_facts,
        ("name", Cell(job.name or UNKNOWN, "strong")),
        ("id", Cell(job.id)),
        ("project", Cell(f"{project.name} ({job.project_id})" if project else job.project_id)),
        ("instance", Cell(_instance(job))),
        ("created", Cell(f"{local_time(job.created_at) or UNKNOWN}, {age_of(job.created_at, now)} ago")),
        ("updated", Cell(local_time(job.updated_at) or UNKNOWN)),
        ("priority", Cell("" if job.priority is None else str(job.priority))),
        ("capacity", Cell((job.availability_model or "").lower())),
        ("started by", Cell((job.user.email if job.user else "") or "")),
        ("checkpoint upload", Cell(upload_text(job.checkpoint_sync_status))),
        ("message", Cell(job.error_message or "", "caution")),
        ("link", Cell(link)),
    ]


def _instance(job: TrainingJob) -> str:
    machine = job.instance_type
    name = machine.name or machine.id
    return f"{hardware(job)} ({name})" if name else hardware(job)
