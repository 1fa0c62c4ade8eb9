"""The capacity screen: GPUs by type and team, and the jobs that hold or wait for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from tui.actions import Scope
from tui.actions.keymap import bindings_of
from tui.analysis.fleet.capacity import (
    CapacityRow,
    CapacityView,
    GpuAllocation,
    capacity_table,
    queue_table,
    queued_gpu_count,
)
from tui.analysis.status import status_view
from tui.feeds.capacity import CapacityFeed
from tui.screens.base import AppScreen
from tui.screens.messages import ExportRequested, OpenJobRequested
from tui.text.sanitize import sanitize
from tui.text.units import age, share_bar
from tui.widgets.notice import ConnectionNotice, StatusLine
from tui.widgets.row_table import Column, RowTable
from tui.widgets.status_footer import StatusFooter
from tui.widgets.text_panel import WrappedText
from tui.widgets.tones import Span

BAR_CELLS = 12
CROWDED = 0.9


@dataclass(frozen=True, slots=True)
class CapacityLine:
    """A capacity row and the number of GPUs of its type that jobs are waiting for."""

    row: CapacityRow
    waited_for: int


def _tone(row: CapacityRow) -> str:
    if row.share >= 1:
        return "bad"
    return "warn" if row.share >= CROWDED else "good"


def _bar(line: CapacityLine) -> list[Span]:
    row = line.row
    sign = "!" if row.share >= 1 else " "
    return [(share_bar(row.share, BAR_CELLS), _tone(row)), (sign, "bad")]


def _use(line: CapacityLine) -> list[Span]:
    return [(str(line.row.on_demand), "strong"), (f"/{line.row.limit}", "muted")]


def _waits(line: CapacityLine) -> list[Span]:
    return [(f"◌ {line.waited_for}", "caution")] if line.waited_for and not line.row.team else []


GPU_COLUMNS: tuple[Column[CapacityLine], ...] = (
    Column("gpu", "GPU", lambda line: [(sanitize(line.row.gpu_type), "strong")], width=10, keep=10),
    Column(
        "team",
        "team",
        lambda line: [(sanitize(line.row.team) or "all teams", "plain" if line.row.team else "muted")],
        width=9,
        flex=1,
        most=24,
        keep=9,
    ),
    Column("bar", "in use", _bar, width=BAR_CELLS + 1, keep=7),
    Column("use", "used/max", _use, width=8, align="right", keep=8),
    Column("free", "free", lambda line: [(str(line.row.free), "plain")], width=5, align="right", keep=6),
    Column(
        "on_demand",
        "on-dem.",
        lambda line: [(str(line.row.on_demand), "muted")],
        width=7,
        align="right",
        keep=4,
    ),
    Column("spot", "spot", lambda line: [(str(line.row.spot), "muted")], width=4, align="right", keep=3),
    Column(
        "baseline",
        "base",
        lambda line: [(str(line.row.baseline), "muted")],
        width=5,
        align="right",
        keep=2,
    ),
    Column("waits", "wait", _waits, width=6, align="right", keep=5),
)


def _status(one: GpuAllocation) -> list[Span]:
    view = status_view(one.job.current_status)
    place = f"{one.place}. " if one.place else ""
    return [(f"{view.sign} {place}{view.word}", view.tone)]


def _project(one: GpuAllocation) -> str:
    project = one.job.training_project
    return sanitize(project.name if project else "") or one.job.project_id


JOB_COLUMNS: tuple[Column[GpuAllocation], ...] = (
    Column("status", "status", _status, width=15, keep=9),
    Column("gpus", "GPUs", lambda one: [(str(one.gpus), "strong")], width=4, align="right", keep=10),
    Column("type", "type", lambda one: [(sanitize(one.gpu_type), "muted")], width=6, keep=5),
    Column(
        "name",
        "job",
        lambda one: [(sanitize(one.job.name or one.job.id), "plain")],
        width=14,
        flex=3,
        most=40,
        keep=8,
    ),
    Column("age", "for", lambda one: [(age(one.age_s), "plain")], width=4, align="right", keep=7),
    Column(
        "priority",
        "prio",
        lambda one: [(str(one.job.priority or 0), "muted")],
        width=4,
        align="right",
        keep=4,
    ),
    Column(
        "spot",
        "",
        lambda one: [("spot", "caution")] if (one.job.availability_model or "").lower() == "spot" else [],
        width=4,
        keep=3,
    ),
    Column("project", "project", lambda one: [(_project(one), "muted")], width=10, flex=2, most=24, keep=2),
    Column(
        "user",
        "user",
        lambda one: [(sanitize((one.job.user.email if one.job.user else None) or ""), "muted")],
        width=12,
        flex=1,
        keep=1,
    ),
)


MakeFeed = Callable[..., CapacityFeed]

TYPES_NAMED = 4
WORDS = {
    "loading": "Loading GPU capacity…",
    "empty": "No GPU limits for training here.",
    "absent": "This server doesn't report its capacity. Below: jobs waiting for or using GPUs.",
    "forbidden": "✗ This key can't read the capacity (admins only). Below: jobs waiting for or using GPUs.",
}


class CapacityScreen(AppScreen):
    """The GPU capacity of a remote; ``feed_with`` creates the feed that keeps it fresh."""

    CSS_PATH = "capacity.tcss"
    SCOPES = (Scope.CAPACITY,)
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(*SCOPES, Scope.SCREEN)

    snapshot: var[CapacityView] = var(CapacityView(), init=False)
    all_types: var[bool] = var(True, init=False)

    @dataclass
    class CapacityChanged(Message):
        """The feed has newer data."""

        snapshot: CapacityView

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, CapacityScreen.CapacityChanged)

    def __init__(self, place: str, feed_with: MakeFeed) -> None:
        super().__init__()
        self._place = place
        self._feed = feed_with(publish=lambda snapshot: self.post_message(self.CapacityChanged(snapshot)))

    def compose(self) -> ComposeResult:
        yield StatusLine(id="header", priority_count=2)
        yield ConnectionNotice().data_bind(CapacityScreen.connection)
        yield WrappedText(id="stale")
        yield RowTable(GPU_COLUMNS, lambda line: line.row.key, id="gpus", opens=False)
        yield WrappedText(id="instead")
        yield RowTable(JOB_COLUMNS, lambda one: one.key, id="jobs")
        yield WrappedText(id="nobody")
        yield StatusFooter().data_bind(CapacityScreen.connection)

    def on_mount(self) -> None:
        self._show()
        self._jobs.focus()
        self.set_interval(5.0, self._show_header)  # the header shows an age
        self.run_worker(self._feed.run(), name="capacity feed", group="feed", exit_on_error=False)

    @property
    def _gpus(self) -> RowTable[CapacityLine]:
        return self.query_one("#gpus", RowTable)

    @property
    def _jobs(self) -> RowTable[GpuAllocation]:
        return self.query_one("#jobs", RowTable)

    @on(CapacityChanged)
    def _take(self, message: CapacityChanged) -> None:
        self.snapshot = message.snapshot

    def watch_snapshot(self) -> None:
        self._show()

    def watch_all_types(self) -> None:
        self._show_jobs()

    @on(RowTable.Highlighted, "#gpus")
    def _other_type(self) -> None:
        self._show_jobs()

    def _show(self) -> None:
        """Distinguish loading, empty, forbidden, unsupported and failed; keep and mark old data."""
        view = self.snapshot
        refresh = self.key_for("screen.refresh")
        self._show_header()
        self._gpus.set_rows([CapacityLine(row, queued_gpu_count(view, row)) for row in view.rows])
        self._gpus.styles.height = len(view.rows) + 1
        if not view.rows and self._gpus.has_focus:
            self._jobs.focus()
        stale = self.query_one("#stale", WrappedText)
        old_rows = bool(view.rows and view.state not in ("known", "empty"))
        why = sanitize(view.error if old_rows else view.jobs_error).rstrip(".")
        stale.display = old_rows or bool(view.jobs_known and view.jobs_error)
        stale.update(f"✗ Not updated: {why}. Showing last known data; press {refresh} to retry.")
        instead = self.query_one("#instead", WrappedText)
        instead.display = not view.rows
        failed = f"✗ Can't read the capacity.\n{sanitize(view.error)}\nPress {refresh} to retry."
        instead.update(WORDS.get(view.state, failed))
        self._show_jobs()

    def _show_header(self) -> None:
        view = self.snapshot
        facts: list[list[Span]] = [[("‹ ", "muted"), ("Capacity ", "key"), (self._place, "strong")]]
        if view.jobs_error:
            facts.append([("✗ queue not updated", "bad")])
        elif view.waiting:
            gpus = sum(one.gpus for one in view.waiting)
            facts.append([(f"◌ {len(view.waiting)} waiting for {gpus} GPUs", "caution")])
        elif view.jobs_known:
            facts.append([("queue empty", "good")])
        if view.at is not None and view.state != "loading":
            seconds = (datetime.now(UTC) - view.at).total_seconds()
            facts.append([(f"data {age(seconds)} old", "muted")])
        own = [row for row in view.rows if not row.team][:TYPES_NAMED]
        facts += [
            [(f"{sanitize(row.gpu_type)} ", "muted"), (f"{row.on_demand}/{row.limit}", "plain")]
            for row in own
        ]
        self.query_one("#header", StatusLine).set_facts(facts)

    def _show_jobs(self) -> None:
        view, line = self.snapshot, self._gpus.cursor_row
        only = None if self.all_types or line is None else line.row.gpu_type
        shown = [one for one in (*view.waiting, *view.holding) if only in (None, one.gpu_type)]
        self._jobs.set_rows(shown)
        nobody = self.query_one("#nobody", WrappedText)
        nobody.display = not shown
        of_type = f" {sanitize(only)}" if only else ""
        words = f"No jobs using or waiting for{of_type} GPUs." if view.jobs_known else "Loading the queue…"
        if view.jobs_error and not view.jobs_known:
            words = f"✗ Can't read the queue.\n{sanitize(view.jobs_error)}"
        nobody.update(words)

    @on(RowTable.Selected, "#jobs")
    def _job_chosen(self) -> None:
        self.action_open_job()

    # Actions

    def action_open_job(self) -> None:
        row = self._jobs.cursor_row
        if row is not None:
            self.post_message(OpenJobRequested(row.job))

    def action_other_table(self) -> None:
        to_jobs = not self._jobs.has_focus or not self._gpus.rows
        (self._jobs if to_jobs else self._gpus).focus()

    def action_every_type(self) -> None:
        """Toggle between jobs of the selected GPU type and all jobs."""
        self.all_types = not self.all_types

    def action_export(self) -> None:
        tables = [capacity_table(self.snapshot.rows), queue_table(self.snapshot)]
        kept = [table for table in tables if table.rows]
        self.post_message(ExportRequested("capacity and queue", kept, ("capacity",)))

    def action_refresh(self) -> None:
        self._feed.refresh()

    def action_back(self) -> None:
        self.app.pop_screen()
