"""GPUs of the organisation and its teams: limits, use, the queue, and who holds them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from tui.actions import Scope
from tui.feeds.capacity import CapacityFeed
from tui.insight.fleet.capacity import CapacityView, GpuHolder, capacity_table, is_waited_for, queue_table
from tui.insight.text import inert
from tui.insight.units import age
from tui.keymap import bindings_of
from tui.messages import ExportRequested, OpenJobRequested
from tui.screens.base import AppScreen
from tui.screens.capacity.columns import GPU_COLUMNS, JOB_COLUMNS, CapacityLine
from tui.widgets.line import FactLine
from tui.widgets.notice import ConnectionNotice
from tui.widgets.row_table import RowTable
from tui.widgets.status_footer import StatusFooter
from tui.widgets.tones import Span
from tui.widgets.wrapped_text import WrappedText

MakeFeed = Callable[..., CapacityFeed]

TYPES_NAMED = 4
WORDS = {
    "loading": "Asking how many GPUs there are…",
    "empty": "There are no GPU limits for training here.",
    "absent": "This server does not tell its capacity. Below is who waits and who has GPUs.",
    "forbidden": "✗ This key may not read the capacity; an admin's may. Below is who waits and who has GPUs.",
}


class CapacityScreen(AppScreen):
    """The capacity of a remote; ``feed_with`` makes the feed that keeps it fresh."""

    CSS_PATH = "capacity.tcss"
    SCOPES = (Scope.CAPACITY,)
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(*SCOPES, Scope.SCREEN)

    snapshot: var[CapacityView] = var(CapacityView(), init=False)
    all_types: var[bool] = var(True, init=False)

    class CapacityChanged(Message):
        """The feed knows more."""

        def __init__(self, snapshot: CapacityView) -> None:
            super().__init__()
            self.snapshot = snapshot

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, CapacityScreen.CapacityChanged)

    def __init__(self, place: str, feed_with: MakeFeed) -> None:
        super().__init__()
        self._place = place
        self._feed = feed_with(publish=lambda snapshot: self.post_message(self.CapacityChanged(snapshot)))

    def compose(self) -> ComposeResult:
        """Header, GPUs, jobs, and what to say instead."""
        yield FactLine(id="header", essential=2)
        yield ConnectionNotice().data_bind(CapacityScreen.connection)
        yield WrappedText(id="stale")
        yield RowTable(GPU_COLUMNS, lambda line: line.row.key, id="gpus", opens=False)
        yield WrappedText(id="instead")
        yield RowTable(JOB_COLUMNS, lambda one: one.key, id="jobs")
        yield WrappedText(id="nobody")
        yield StatusFooter().data_bind(CapacityScreen.connection)

    def on_mount(self) -> None:
        """Start the feed; it ends with the screen."""
        self._show()
        self._jobs.focus()
        self.set_interval(5.0, self._show_header)  # its age goes on
        self.run_worker(self._feed.run(), name="capacity feed", group="feed", exit_on_error=False)

    @property
    def _gpus(self) -> RowTable[CapacityLine]:
        return self.query_one("#gpus", RowTable)

    @property
    def _jobs(self) -> RowTable[GpuHolder]:
        return self.query_one("#jobs", RowTable)

    @on(CapacityChanged)
    def _take(self, message: CapacityChanged) -> None:
        self.snapshot = message.snapshot

    def watch_snapshot(self) -> None:
        """Show what is known now."""
        self._show()

    def watch_all_types(self) -> None:
        """Other jobs."""
        self._show_jobs()

    @on(RowTable.Highlighted, "#gpus")
    def _other_type(self) -> None:
        self._show_jobs()

    def _show(self) -> None:
        """Loading, none, forbidden, absent and failing are different sights; old data stays, marked."""
        view = self.snapshot
        refresh = self.key_for("screen.refresh")
        self._show_header()
        self._gpus.set_rows([CapacityLine(row, is_waited_for(view, row)) for row in view.rows])
        self._gpus.styles.height = len(view.rows) + 1
        if not view.rows and self._gpus.has_focus:
            self._jobs.focus()
        stale = self.query_one("#stale", WrappedText)
        old_rows = bool(view.rows and view.state not in ("known", "empty"))
        why = inert(view.error if old_rows else view.jobs_error).rstrip(".")
        stale.display = old_rows or bool(view.jobs_known and view.jobs_error)
        stale.update(f"✗ Not read anew: {why}. What you see is the last known; {refresh} asks again.")
        instead = self.query_one("#instead", WrappedText)
        instead.display = not view.rows
        failed = f"✗ The capacity cannot be read.\n{inert(view.error)}\n{refresh} asks again."
        instead.update(WORDS.get(view.state, failed))
        self._show_jobs()

    def _show_header(self) -> None:
        view = self.snapshot
        facts: list[list[Span]] = [[("‹ ", "muted"), ("Capacity ", "key"), (self._place, "strong")]]
        if view.jobs_error:
            facts.append([("✗ who waits is not read anew", "bad")])
        elif view.waiting:
            gpus = sum(one.gpus for one in view.waiting)
            facts.append([(f"◌ {len(view.waiting)} wait for {gpus} GPUs", "caution")])
        elif view.jobs_known:
            facts.append([("nobody waits", "good")])
        if view.at is not None and view.state != "loading":
            seconds = (datetime.now(UTC) - view.at).total_seconds()
            facts.append([(f"seen {age(seconds)} ago", "muted")])
        own = [row for row in view.rows if not row.team][:TYPES_NAMED]
        facts += [
            [(f"{inert(row.gpu_type)} ", "muted"), (f"{row.on_demand}/{row.limit}", "plain")] for row in own
        ]
        self.query_one("#header", FactLine).set_facts(facts)

    def _show_jobs(self) -> None:
        view, line = self.snapshot, self._gpus.cursor_row
        only = None if self.all_types or line is None else line.row.gpu_type
        shown = [one for one in (*view.waiting, *view.holding) if only in (None, one.gpu_type)]
        self._jobs.set_rows(shown)
        nobody = self.query_one("#nobody", WrappedText)
        nobody.display = not shown
        of_type = f" {inert(only)}" if only else ""
        words = f"No job has or waits for{of_type} GPUs." if view.jobs_known else "Asking who waits…"
        if view.jobs_error and not view.jobs_known:
            words = f"✗ Who waits cannot be read.\n{inert(view.jobs_error)}"
        nobody.update(words)

    @on(RowTable.Selected, "#jobs")
    def _job_chosen(self) -> None:
        self.action_open_job()

    # Actions

    def action_open_job(self) -> None:
        """Open the job under the cursor."""
        row = self._jobs.cursor_row
        if row is not None:
            self.post_message(OpenJobRequested(row.job))

    def action_other_table(self) -> None:
        """From one table to the other."""
        to_jobs = not self._jobs.has_focus or not self._gpus.rows
        (self._jobs if to_jobs else self._gpus).focus()

    def action_every_type(self) -> None:
        """Jobs of one type, or of all."""
        self.all_types = not self.all_types

    def action_export(self) -> None:
        """Save what is shown."""
        tables = [capacity_table(self.snapshot.rows), queue_table(self.snapshot)]
        kept = [table for table in tables if table.rows]
        self.post_message(ExportRequested("capacity and queue", kept, ("capacity",)))

    def action_refresh(self) -> None:
        """Ask the server now."""
        self._feed.refresh()

    def action_back(self) -> None:
        """Out of the screen."""
        self.app.pop_screen()
