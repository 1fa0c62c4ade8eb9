"""Tables of GPU capacity: limit and usage per GPU type and team; jobs that hold GPUs or wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tui.analysis.export import ExportTable
from tui.analysis.fleet.capacity import CapacityRow, CapacityView, GpuAllocation
from tui.analysis.status import status_view
from tui.tables.column import Column, Span, export_table, text_cell
from tui.tables.jobs import JOB_COLUMNS
from tui.text.units import age, percent, thin_bar

BAR_CELLS = 12


@dataclass(frozen=True, slots=True)
class CapacityLine:
    """Capacity of a GPU type, and the number of GPUs of that type that jobs are waiting for."""

    row: CapacityRow
    waiting_gpus: int = 0


def _usage_tone(row: CapacityRow) -> str:
    if row.share >= 1:
        return "bad"
    return "warn" if row.share >= 0.9 else "good"


def _bar(line: CapacityLine) -> list[Span]:
    limit_sign = "!" if line.row.share >= 1 else " "
    used, free = thin_bar(line.row.share, BAR_CELLS)
    return [(used, _usage_tone(line.row)), (free, "faint"), (limit_sign, "bad")]


def _limit_share(line: CapacityLine) -> list[Span]:
    share = line.row.share
    text = f"{''.join(thin_bar(share, BAR_CELLS))} {percent(share)}"
    return [(text, "caution" if share >= 1 else "plain")]


def _used_of_limit(line: CapacityLine) -> list[Span]:
    return [(str(line.row.on_demand), "strong"), (f"/{line.row.limit}", "muted")]


def _waiting_gpus(line: CapacityLine) -> list[Span]:
    return [(f"◌ {line.waiting_gpus}", "caution")] if line.waiting_gpus and not line.row.team else []


def _team(line: CapacityLine) -> list[Span]:
    return [(line.row.team, "plain") if line.row.team else ("all teams", "muted")]


def _count_column(
    title: str,
    count: Callable[[CapacityRow], int],
    tone: str = "muted",
    *,
    field: str,
    width: int,
    priority: int,
) -> Column[CapacityLine]:
    return Column(
        field,
        title,
        text_cell(lambda line: str(count(line.row)), tone),
        width=width,
        align="right",
        priority=priority,
        heading=field.upper().replace("_", "-"),
        export=lambda line: count(line.row),
    )


GPU_COLUMNS: tuple[Column[CapacityLine], ...] = (
    Column("scope", export=lambda line: "team" if line.row.team else "organization"),
    Column(
        "team",
        "team",
        _team,
        width=9,
        flex=1,
        max_width=24,
        priority=9,
        needed_by=lambda line: line.row.team,
        shrinks=True,
        export=lambda line: line.row.team or None,
    ),
    Column(
        "gpu",
        "GPU",
        text_cell(lambda line: line.row.gpu_type, "strong"),
        width=10,
        priority=10,
        heading="GPU TYPE",
        export=lambda line: line.row.gpu_type,
        field="gpu_type",
    ),
    _count_column("base", lambda row: row.baseline, field="baseline", width=5, priority=2),
    _count_column("max", lambda row: row.limit, field="limit", width=5, priority=1),
    _count_column("on-dem.", lambda row: row.on_demand, field="on_demand", width=7, priority=4),
    _count_column("spot", lambda row: row.spot, field="spot", width=4, priority=3),
    Column("in_use", export=lambda line: line.row.in_use),
    _count_column("free", lambda row: row.free, "plain", field="free", width=5, priority=6),
    Column("bar", "in use", _bar, width=BAR_CELLS + 1, priority=7),
    Column("use", "used/max", _used_of_limit, width=8, align="right", priority=8),
    Column("waits", "wait", _waiting_gpus, width=6, align="right", priority=5),
    Column("share", "used/max", _limit_share, heading="USED/LIMIT"),
)
"""All columns, in the order of exports; the screen and the command each show some of them."""


def _status(allocation: GpuAllocation) -> list[Span]:
    view = status_view(allocation.job.current_status)
    location = f"{allocation.place}. " if allocation.place else ""
    return [(view.sign, view.tone), (f" {location}{view.word}", "plain" if allocation.waits else "muted")]


_JOB_COLUMN_BY_ID: dict[str, Column[GpuAllocation]] = {
    column.id: replace(
        column.for_rows(lambda allocation: allocation.job), sort_key=None
    )  # not sortable: rows stay in the order of the queue
    for column in JOB_COLUMNS
}

QUEUE_COLUMNS: tuple[Column[GpuAllocation], ...] = (
    Column("state", export=lambda allocation: "waiting" if allocation.waits else "holding"),
    Column("place", export=lambda allocation: allocation.place or None),
    replace(_JOB_COLUMN_BY_ID["id"], title="job", field="job_id"),
    replace(
        _JOB_COLUMN_BY_ID["name"],
        title="job",
        cell=text_cell(lambda allocation: allocation.job.name or allocation.job.id),
        width=14,
        flex=3,
        max_width=40,
        priority=8,
        heading="NAME",
    ),
    replace(
        _JOB_COLUMN_BY_ID["project"],
        width=10,
        max_width=24,
        export=lambda allocation: allocation.job.project_name,
        field="project",
    ),
    replace(_JOB_COLUMN_BY_ID["user"], width=12, flex=1),
    Column(
        "type",
        "type",
        text_cell(lambda allocation: allocation.gpu_type, "muted"),
        width=6,
        priority=5,
        export=lambda allocation: allocation.gpu_type,
        field="gpu_type",
    ),
    Column(
        "gpus",
        "GPUs",
        text_cell(lambda allocation: str(allocation.gpus), "strong"),
        width=4,
        align="right",
        priority=10,
        export=lambda allocation: allocation.gpus,
    ),
    replace(_JOB_COLUMN_BY_ID["priority"], priority=4),
    Column(
        "status",
        "status",
        _status,
        width=15,
        priority=9,
        shrinks=True,
        export=lambda allocation: status_view(allocation.job.current_status).word,
    ),
    Column(
        "age",
        "for",
        text_cell(lambda allocation: age(allocation.age_s)),
        width=4,
        align="right",
        priority=7,
        heading="AGE",
        export=lambda allocation: round(allocation.age_s),
        field="age_s",
    ),
    replace(_JOB_COLUMN_BY_ID["spot"], priority=3, export=None),
)
"""All columns, in the order of exports; the screen and the command each show some of them."""


def capacity_table(rows: Iterable[CapacityRow]) -> ExportTable:
    return export_table("capacity", GPU_COLUMNS, map(CapacityLine, rows))


def queue_table(view: CapacityView) -> ExportTable:
    return export_table("jobs", QUEUE_COLUMNS, (*view.waiting, *view.holding))
