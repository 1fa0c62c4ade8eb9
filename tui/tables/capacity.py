"""The tables of GPU capacity: limits and use by type and team; jobs that hold GPUs or wait for them."""

from __future__ import annotations

from dataclasses import dataclass

from tui.analysis.fleet.capacity import CapacityRow, GpuAllocation
from tui.analysis.status import status_view
from tui.tables.column import Column, Span
from tui.text.sanitize import sanitize
from tui.text.units import age, percent, share_bar

BAR_CELLS = 12
CROWDED = 0.9


@dataclass(frozen=True, slots=True)
class CapacityLine:
    """A capacity row and the number of GPUs of its type that jobs are waiting for."""

    row: CapacityRow
    waited_for: int = 0


def _tone(row: CapacityRow) -> str:
    if row.share >= 1:
        return "bad"
    return "warn" if row.share >= CROWDED else "good"


def _bar(line: CapacityLine) -> list[Span]:
    sign = "!" if line.row.share >= 1 else " "
    return [(share_bar(line.row.share, BAR_CELLS), _tone(line.row)), (sign, "bad")]


def _share(line: CapacityLine) -> list[Span]:
    row = line.row
    text = f"{share_bar(row.share, BAR_CELLS)} {percent(row.share)}"
    return [(text, "caution" if row.share >= 1 else "plain")]


def _use(line: CapacityLine) -> list[Span]:
    return [(str(line.row.on_demand), "strong"), (f"/{line.row.limit}", "muted")]


def _waits(line: CapacityLine) -> list[Span]:
    return [(f"◌ {line.waited_for}", "caution")] if line.waited_for and not line.row.team else []


def _gpu(line: CapacityLine) -> list[Span]:
    return [(sanitize(line.row.gpu_type), "strong")]


def _team(line: CapacityLine) -> list[Span]:
    return [(sanitize(line.row.team), "plain") if line.row.team else ("all teams", "muted")]


def _figure(column_id: str, title: str, heading: str, width: int, keep: int) -> Column[CapacityLine]:
    def cell(line: CapacityLine) -> list[Span]:
        return [(str(getattr(line.row, column_id)), "plain" if column_id == "free" else "muted")]

    return Column(column_id, title, cell, width=width, align="right", keep=keep, heading=heading)


GPUS: tuple[Column[CapacityLine], ...] = (
    Column("gpu", "GPU", _gpu, 10, keep=10, heading="GPU TYPE"),
    Column("team", "team", _team, width=9, flex=1, most=24, keep=9, shrinks=True),
    Column("bar", "in use", _bar, width=BAR_CELLS + 1, keep=7),
    Column("use", "used/max", _use, width=8, align="right", keep=8),
    _figure("free", "free", "FREE", 5, 6),
    _figure("on_demand", "on-dem.", "ON-DEMAND", 7, 4),
    _figure("spot", "spot", "SPOT", 4, 3),
    _figure("baseline", "base", "BASELINE", 5, 2),
    _figure("limit", "max", "LIMIT", 5, 1),
    Column("waits", "wait", _waits, width=6, align="right", keep=5),
    Column("share", "used/max", _share, heading="USED/LIMIT"),
)


def _status(one: GpuAllocation) -> list[Span]:
    view = status_view(one.job.current_status)
    place = f"{one.place}. " if one.place else ""
    return [(f"{view.sign} {place}{view.word}", view.tone)]


def _name(one: GpuAllocation) -> list[Span]:
    return [(sanitize(one.job.name or one.job.id), "plain")]


def _project(one: GpuAllocation) -> list[Span]:
    return [(sanitize(one.job.project_name), "muted")]


def _spot(one: GpuAllocation) -> list[Span]:
    return [("spot", "caution")] if one.job.is_spot else []


def _user(one: GpuAllocation) -> list[Span]:
    return [(sanitize(one.job.user_email or ""), "muted")]


QUEUE: tuple[Column[GpuAllocation], ...] = (
    Column("status", "status", _status, width=15, keep=9, shrinks=True),
    Column("gpus", "GPUs", lambda one: [(str(one.gpus), "strong")], width=4, align="right", keep=10),
    Column("type", "type", lambda one: [(sanitize(one.gpu_type), "muted")], width=6, keep=5),
    Column("id", "job", lambda one: [(one.job.id, "plain")]),
    Column("name", "job", _name, 14, 3, 40, keep=8, heading="NAME", shrinks=True),
    Column("age", "for", lambda one: [(age(one.age_s), "plain")], 4, align="right", keep=7, heading="AGE"),
    Column("priority", "prio", lambda one: [(str(one.job.priority or 0), "muted")], 4, align="right", keep=4),
    Column("spot", "", _spot, width=4, keep=3),
    Column("project", "project", _project, width=10, flex=2, most=24, keep=2, shrinks=True),
    Column("user", "user", _user, width=12, flex=1, keep=1),
)
