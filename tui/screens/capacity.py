"""The capacity screen: GPUs by type and team, and the jobs that hold or wait for them."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.reactive import var

from tui.actions.table import Scope
from tui.analysis.fleet.capacity import CapacityView, queued_gpu_count
from tui.feeds.capacity import CapacityFeed
from tui.screens.base import AppScreen, FeedFactory, OpenPage, Page, PageServices
from tui.screens.job.page import JobPage
from tui.screens.messages import ExportRequested
from tui.tables.capacity import GPU_COLUMNS, QUEUE_COLUMNS, CapacityLine, capacity_table, queue_table
from tui.tables.column import Span, select_columns
from tui.text.sanitize import sanitize
from tui.text.units import counted
from tui.widgets.row_table import RowTable
from tui.widgets.text_panel import WrappedText

EMPTY_TEXTS = {
    "loading": "Loading GPU capacity…",
    "empty": "No GPU limits for training on this remote.",
    "absent": "This server doesn't report its capacity. Below: jobs waiting for or using GPUs.",
    "forbidden": "✗ This key can't read the capacity (admins only). Below: jobs waiting for or using GPUs.",
}
"""Texts shown in place of the GPU table, by the state of the capacity."""


class CapacityScreen(AppScreen):
    """The GPU capacity of a remote; ``make_feed`` creates the feed that polls it."""

    CSS_PATH = "capacity.tcss"
    AUTO_FOCUS = "#jobs"
    SCOPES = (Scope.CAPACITY,)
    _feed: CapacityFeed

    snapshot: var[CapacityView] = var(CapacityView(), init=False)
    all_types: var[bool] = var(True, init=False)
    """True to list jobs of all GPU types; False for jobs of the GPU type under the cursor."""

    def __init__(self, remote_name: str, make_feed: FeedFactory) -> None:
        super().__init__(make_feed)
        self._remote_name = remote_name
        gpu_columns = select_columns(GPU_COLUMNS, "gpu team bar use free on_demand spot baseline waits")
        job_columns = select_columns(QUEUE_COLUMNS, "status gpus type name age priority spot project user")
        self._gpu_table = RowTable(gpu_columns, lambda line: line.row.key, id="gpus", opens=False)
        self._job_table = RowTable(job_columns, lambda job: job.key, id="jobs")

    def compose_body(self) -> ComposeResult:
        yield WrappedText(id="stale")
        yield self._gpu_table
        yield WrappedText(id="instead")
        yield self._job_table
        yield WrappedText(id="nobody")

    def on_mount(self) -> None:
        self.watch_snapshot()
        self.run_feed("capacity feed")

    def watch_snapshot(self) -> None:
        """Show the GPUs; while loading, without limits or access, or after an error, a text.

        After an error, GPUs from an earlier snapshot stay, with a notice that they are stale.
        """
        view = self.snapshot
        refresh_key = self.key_for("screen.refresh")
        self._show_header()
        lines = [CapacityLine(row, queued_gpu_count(view, row)) for row in view.shown_rows]
        self._gpu_table.set_rows(lines)
        self._gpu_table.styles.height = len(lines) + 1
        if not view.rows and self._gpu_table.has_focus:
            self.set_focus(self._job_table)
        has_old_rows = bool(view.rows and view.state not in ("known", "empty"))
        error_text = sanitize(view.error if has_old_rows else view.jobs_error).rstrip(".")
        stale_text = f"✗ Not updated: {error_text}. Showing last known data; press {refresh_key} to retry."
        self.show_text("#stale", stale_text if has_old_rows or (view.jobs_known and view.jobs_error) else "")
        failure_text = f"✗ Can't read the capacity.\n{sanitize(view.error)}\nPress {refresh_key} to retry."
        self.show_text("#instead", "" if view.rows else EMPTY_TEXTS.get(view.state, failure_text))
        self.watch_all_types()

    def _show_header(self) -> None:
        view = self.snapshot
        facts: list[list[Span]] = []
        if view.jobs_error:
            facts.append([("✗ queue not updated", "bad")])
        elif view.waiting:
            gpu_count = sum(job.gpus for job in view.waiting)
            facts.append([(f"◌ {len(view.waiting)} waiting for {counted(gpu_count, 'GPU')}", "caution")])
        elif view.jobs_known:
            facts.append([("queue empty", "good")])
        self.set_header("Capacity", self._remote_name, facts, 2)

    @on(RowTable.Highlighted, "#gpus")
    def watch_all_types(self) -> None:
        view, line = self.snapshot, self._gpu_table.cursor_row
        gpu_type = None if self.all_types or line is None else line.row.gpu_type
        shown_jobs = [job for job in (*view.waiting, *view.holding) if gpu_type in (None, job.gpu_type)]
        self._job_table.set_rows(shown_jobs)
        type_text = f" {sanitize(gpu_type)}" if gpu_type else ""
        empty_text = (
            f"No jobs using or waiting for{type_text} GPUs." if view.jobs_known else "Loading the queue…"
        )
        if view.jobs_error and not view.jobs_known:
            empty_text = f"✗ Can't read the queue.\n{sanitize(view.jobs_error)}"
        self.show_text("#nobody", "" if shown_jobs else empty_text)

    # Actions

    @on(RowTable.Selected, "#jobs")
    def action_open_job(self) -> None:
        row = self._job_table.cursor_row
        if row is not None:
            self.post_message(OpenPage(JobPage(row.job)))

    def action_other_table(self) -> None:
        jobs_get_focus = not self._job_table.has_focus or not self._gpu_table.rows
        self.set_focus(self._job_table if jobs_get_focus else self._gpu_table)

    def action_every_type(self) -> None:
        self.all_types = not self.all_types

    def action_export(self) -> None:
        tables = [capacity_table(self.snapshot.rows), queue_table(self.snapshot)]
        tables_with_rows = [table for table in tables if table.rows]
        self.post_message(ExportRequested("capacity and queue", tables_with_rows, ("capacity",)))


@dataclass(frozen=True, eq=False)
class CapacityPage(Page):
    def open(self, services: PageServices) -> CapacityScreen:
        return CapacityScreen(
            services.session.remote_name, lambda publish: CapacityFeed(services.session, publish=publish)
        )
