"""The tables of GPU capacity: limits and use by type and team; jobs that hold GPUs or wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tui.analysis.export import ExportTable
from tui.analysis.fleet.capacity import CapacityRow, CapacityView, GpuAllocation
from tui.analysis.status import status_view
from tui.tables.column import Column, Span, exported, text_cell
from tui.tables.jobs import JOB_COLUMNS
from tui.text.units import age, percent, thin_bar

BAR_CELLS = 12


@dataclass(frozen=True, slots=True)
class CapacityLine:
    """A capacity row and the number of GPUs of its type that jobs are waiting for."""

    row: CapacityRow
    waited_for: int = 0


def _tone(row: CapacityRow) -> str:
    if row.share >= 1:
        return "bad"
    return "warn" if row.share >= 0.9 else "good"


def _bar(line: CapacityLine) -> list[Span]:
    sign = "!" if line.row.share >= 1 else " "
    used, free = thin_bar(line.row.share, BAR_CELLS)
    return [(used, _tone(line.row)), (free, "faint"), (sign, "bad")]


def _share(line: CapacityLine) -> list[Span]:
    row = line.row
    shown = f"{''.join(thin_bar(row.share, BAR_CELLS))} {percent(row.share)}"
    return [(shown, "caution" if row.share >= 1 else "plain")]


def _use(line: CapacityLine) -> list[Span]:
    return [(str(line.row.on_demand), "strong"), (f"/{line.row.limit}", "muted")]


def _waits(line: CapacityLine) -> list[Span]:
    return [(f"◌ {line.waited_for}", "caution")] if line.waited_for and not line.row.team else []


def _team(line: CapacityLine) -> list[Span]:
    return [(line.row.team, "plain") if line.row.team else ("all teams", "muted")]


def _count_column(
    title: str, count: Callable[[CapacityRow], int], tone: str = "muted", *, field: str, width: int, keep: int
) -> Column[CapacityLine]:
    return Column(
        field,
        title,
        text_cell(lambda line: str(count(line.row)), tone),
        width=width,
        align="right",
        keep=keep,
        heading=field.upper().replace("_", "-"),
        export=lambda line: count(line.row),
    )


GPUS: tuple[Column[CapacityLine], ...] = (
    Column("scope", export=lambda line: "team" if line.row.team else "organization"),
    Column(
        "team",
        "team",
        _team,
        width=9,
        flex=1,
        most=24,
        keep=9,
        needed_by=lambda line: line.row.team,
        shrinks=True,
        export=lambda line: line.row.team or None,
    ),
    Column(
        "gpu",
        "GPU",
        text_cell(lambda line: line.row.gpu_type, "strong"),
        width=10,
        keep=10,
        heading="GPU TYPE",
        export=lambda line: line.row.gpu_type,
        field="gpu_type",
    ),
    _count_column("base", lambda row: row.baseline, field="baseline", width=5, keep=2),
    _count_column("max", lambda row: row.limit, field="limit", width=5, keep=1),
    _count_column("on-dem.", lambda row: row.on_demand, field="on_demand", width=7, keep=4),
    _count_column("spot", lambda row: row.spot, field="spot", width=4, keep=3),
    Column("in_use", export=lambda line: line.row.in_use),
    _count_column("free", lambda row: row.free, "plain", field="free", width=5, keep=6),
    Column("bar", "in use", _bar, width=BAR_CELLS + 1, keep=7),
    Column("use", "used/max", _use, width=8, align="right", keep=8),
    Column("waits", "wait", _waits, width=6, align="right", keep=5),
    Column("share", "used/max", _share, heading="USED/LIMIT"),
)
"""All columns, in the order of exports; the screen and the command each show some of them."""


def _status(allocation: GpuAllocation) -> list[Span]:
    view = status_view(allocation.job.current_status)
    location = f"{allocation.place}. " if allocation.place else ""
    return [(view.sign, view.tone), (f" {location}{view.word}", "plain" if allocation.waits else "muted")]


_JOB_COLUMN: dict[str, Column[GpuAllocation]] = {
    column.id: replace(
        column.of(lambda allocation: allocation.job), value=None
    )  # not sortable: rows stay in the order of the queue
    for column in JOB_COLUMNS
}

QUEUE: tuple[Column[GpuAllocation], ...] = (
    Column("state", export=lambda allocation: "waiting" if allocation.waits else "holding"),
    Column("place", export=lambda allocation: allocation.place or None),
    replace(_JOB_COLUMN["id"], title="job", field="job_id"),
    replace(
        _JOB_COLUMN["name"],
        title="job",
        cell=text_cell(lambda allocation: allocation.job.name or allocation.job.id),
        width=14,
        flex=3,
        most=40,
        keep=8,
        heading="NAME",
    ),
    replace(
        _JOB_COLUMN["project"],
        width=10,
        most=24,
        export=lambda allocation: allocation.job.project_name,
        field="project",
    ),
    replace(_JOB_COLUMN["user"], width=12, flex=1),
    Column(
        "type",
        "type",
        text_cell(lambda allocation: allocation.gpu_type, "muted"),
        width=6,
        keep=5,
        export=lambda allocation: allocation.gpu_type,
        field="gpu_type",
    ),
    Column(
        "gpus",
        "GPUs",
        text_cell(lambda allocation: str(allocation.gpus), "strong"),
        width=4,
        align="right",
        keep=10,
        export=lambda allocation: allocation.gpus,
    ),
    replace(_JOB_COLUMN["priority"], keep=4),
    Column(
        "status",
        "status",
        _status,
        width=15,
        keep=9,
        shrinks=True,
        export=lambda allocation: status_view(allocation.job.current_status).word,
    ),
    Column(
        "age",
        "for",
        text_cell(lambda allocation: age(allocation.age_s)),
        width=4,
        align="right",
        keep=7,
        heading="AGE",
        export=lambda allocation: round(allocation.age_s),
        field="age_s",
    ),
    replace(_JOB_COLUMN["spot"], keep=3, export=None),
)
"""All columns, in the order of exports; the screen and the command each show some of them."""


def capacity_table(rows: Iterable[CapacityRow]) -> ExportTable:
    return exported("capacity", GPUS, map(CapacityLine, rows))


def queue_table(view: CapacityView) -> ExportTable:
    return exported("jobs", QUEUE, (*view.waiting, *view.holding))
