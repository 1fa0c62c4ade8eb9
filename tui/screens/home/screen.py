"""Home: projects beside jobs, running jobs first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import var

from tui.actions.table import Scope, actions_of
from tui.analysis.connection import LISTS, LOG, METRICS, Connection, ConnectionState
from tui.analysis.cost import price_of
from tui.analysis.fleet.batches import ProjectDeletion, Verb
from tui.analysis.fleet.query import Query, filtered, parse
from tui.analysis.fleet.snapshot import (
    FleetSnapshot,
    JobRow,
    Need,
    ProjectRow,
    status_line,
    without_snoozed,
    worst_first,
)
from tui.feeds.fleet import FleetFeed
from tui.screens import messages
from tui.screens.base import AppScreen, FeedFactory, OpenPage, Page, PageServices, PaletteItem
from tui.screens.filter_field import FilterField
from tui.screens.job.page import JobPage, import_screen
from tui.settings.remembered import Bookmarks, HomeState, Memory
from tui.tables.column import Sort, Span, clicked_sort, next_sort, sortable_columns, sorted_rows
from tui.tables.fleet import (
    ALL_PROJECTS,
    ATTENTION_TONE,
    DEFAULT_SORT,
    PROJECT_COLUMNS,
    group_headings,
    header_facts,
    job_columns,
    jobs_table,
    projects_width_cells,
)
from tui.text.sanitize import sanitize
from tui.text.units import counted
from tui.widgets.background import run_in_background
from tui.widgets.charts.braille import small_curve
from tui.widgets.row_table import RowTable
from tui.widgets.status_line import FACT_KEY, StatusLine
from tui.widgets.text_panel import WrappedText

if TYPE_CHECKING:
    from api_client.models import TrainingJob
    from tui.analysis.run.snapshot import RunSnapshot
    from tui.screens.home.preview import JobPreviewPane

MAX_BOOKMARKS = 200


class JobsPane(Vertical):
    """Holds the list of jobs and the preview; posts ``Resized`` when its size changes."""

    class Resized(Message):
        pass

    def on_resize(self) -> None:
        self.post_message(self.Resized())


class HomeScreen(AppScreen):
    """All jobs of the remote; ``make_feed`` creates the feed that polls them."""

    CSS_PATH = "home.tcss"
    AUTO_FOCUS = "#jobs"
    SCOPES = (Scope.HOME,)
    SHOWN_RESOURCES = frozenset({LISTS, LOG, METRICS})
    LOW_PRIORITY_HINTS = frozenset({"deploy", "compare", "open_cache", "open_capacity"})
    _feed: FleetFeed
    HORIZONTAL_BREAKPOINTS = [(0, "-slim"), (70, "-narrow"), (140, "-wide")]

    snapshot: var[FleetSnapshot | None] = var(None)
    marked_ids: var[tuple[str, ...]] = var((), init=False)
    """Ids of the marked jobs, in the order in which they were marked."""
    query_text: var[str] = var("", init=False)
    sort: var[Sort] = var(DEFAULT_SORT, init=False)
    bookmarks: var[tuple[str, ...]] = var((), init=False)
    """Ids of the bookmarked jobs, the newest last; saved to disk."""

    def __init__(self, make_feed: FeedFactory, remote_label: str, memory: Memory | None = None) -> None:
        super().__init__(make_feed)
        self._memory = memory if memory is not None else Memory()
        self._remote_label = remote_label
        self._query = Query()
        self._is_outdated = False
        """True if the newest snapshot arrived while another screen covered Home."""
        self._preview: JobPreviewPane | None = None
        self._attention_index = -1
        self._columns = job_columns(lambda: self.snapshot, small_curve)
        self._jobs = RowTable(self._columns, lambda row: row.id, id="jobs")
        self._projects = RowTable(PROJECT_COLUMNS, lambda row: row.id, id="projects")
        self._filter = FilterField("words, is:alarmed status:running gpu:h100 user:ada age<2d")

    def compose_body(self) -> ComposeResult:
        with Horizontal(id="body"):
            yield self._projects
            with JobsPane(id="jobs-pane"):
                yield self._filter
                yield WrappedText(id="problem")
                yield self._jobs
                yield WrappedText(id="empty")

    @property
    def chosen_job(self) -> TrainingJob | None:
        row = self._jobs.cursor_row
        return row.job if row is not None else None

    def on_mount(self) -> None:
        self._restore_layout()
        self._show_header()
        self._show_placeholder()
        # Connecting imports more modules: paint first, which Textual does only once the app is ready. With
        # ``call_after_refresh``, the screen on top would do the call, or lose it when it closes unpainted.
        self.app.call_later(self._invoke_later, self._start_reading, self)
        self.set_timer(2.0, partial(run_in_background, self, import_screen, "import"))

    async def _start_reading(self) -> None:
        """Start the feed, and meanwhile mount the preview."""
        if self not in self.app.screen_stack:
            return  # the user has switched to another remote
        self.run_feed("fleet feed")
        from tui.screens.home.preview import JobPreviewPane  # imports the charts

        preview = JobPreviewPane(id="preview")
        await self.query_one(JobsPane).mount(preview)
        self._preview = preview
        self._show_preview()

    def _restore_layout(self) -> None:
        remembered = self._memory.state.home
        if remembered.sort in sortable_columns(self._columns):
            self.sort = (remembered.sort, remembered.descending)
        if remembered.filter and len(remembered.filter) <= 200:
            self._filter.value = remembered.filter
        self.set_class(remembered.projects_flipped, "-projects-flipped")
        self.bookmarks = tuple(self._memory.state.bookmarks.jobs[-MAX_BOOKMARKS:])

    def _remember_layout(self) -> None:
        column, descending = self.sort
        layout = HomeState(
            sort=column,
            descending=descending,
            filter=self.query_text,
            projects_flipped=self.has_class("-projects-flipped"),
        )
        self._memory.put(home=layout)

    def on_screen_suspend(self) -> None:
        self._feed.is_shown = False

    def on_screen_resume(self) -> None:
        self._feed.is_shown = True
        if self._is_outdated and self.snapshot is not None:
            self._show_fleet(self.snapshot)

    # Updates from the feed

    def watch_snapshot(self, snapshot: FleetSnapshot | None) -> None:
        if snapshot is None:
            return
        self._is_outdated = self.is_covered
        if not self._is_outdated:
            self._show_fleet(snapshot)
        self.post_message(messages.FleetChecked(snapshot))

    def _show_fleet(self, snapshot: FleetSnapshot) -> None:
        self._is_outdated = False
        all_projects = ProjectRow(ALL_PROJECTS, "all", "", len(snapshot.jobs), snapshot.running)
        self._projects.set_rows((all_projects, *snapshot.projects))
        self._projects.styles.width = projects_width_cells(snapshot.projects)
        self._show_jobs()

    def palette_items(self) -> Iterator[PaletteItem]:
        snapshot = self.snapshot
        if snapshot is None:
            return
        for project in snapshot.projects:
            description = f"{counted(project.jobs, 'job')}, {project.running} running"
            if project.team:
                description = f"{project.team} · {description}"
            choose = partial(self.post_message, messages.OpenProjectRequested(project.id))
            yield PaletteItem("project", project.name, description, choose, project.id)
        positions = {row.id: index for index, row in enumerate(self._jobs.rows)}
        for row in sorted(snapshot.jobs, key=lambda row: positions.get(row.id, len(positions))):
            state = row.note if row.alarmed else row.status.word
            description = f"{state} · {row.gpu} · {row.project} · {row.age} · {sanitize(row.id)}"
            yield PaletteItem(
                "job",
                row.name,
                description,
                partial(self.post_message, OpenPage(JobPage(row.job))),
                row.id,
            )

    def watch_snoozed(self) -> None:
        self._show_jobs()

    watch_marked_ids = watch_planned_stops = watch_snoozed

    def watch_connection(self, previous: Connection, connection: Connection) -> None:
        """Update the placeholder: while no jobs are shown, it explains the connection problem."""
        if self.is_mounted and (previous.link is not connection.link or previous.stale != connection.stale):
            self._show_placeholder()

    def watch_query_text(self, text: str) -> None:
        self._remember_layout()
        self._show_jobs()

    def _parse_query(self) -> None:
        rows = self.snapshot.jobs if self.snapshot is not None else None
        self._query = parse(self.query_text, {row.status.name for row in rows} if rows is not None else None)
        left_out = self.snapshot.left_out if self.snapshot is not None else ""
        self.show_text("#problem", "; ".join(filter(None, (left_out, *self._query.problems))))

    def watch_sort(self) -> None:
        self._remember_layout()
        self._show_jobs()

    def watch_bookmarks(self) -> None:
        self._memory.put(bookmarks=Bookmarks(jobs=list(self.bookmarks)))
        self._show_jobs()

    def toggle_bookmark(self, job_id: str) -> bool:
        """Toggle the bookmark of a job; return True if it is bookmarked now."""
        other_ids = tuple(other_id for other_id in self.bookmarks if other_id != job_id)
        was_bookmarked = len(other_ids) < len(self.bookmarks)
        self.bookmarks = other_ids if was_bookmarked else (*other_ids, job_id)[-MAX_BOOKMARKS:]
        return not was_bookmarked

    def _show_jobs(self) -> None:
        if not self.is_mounted:  # a late message, such as a bookmark, for a Home screen that was closed
            return
        self._parse_query()
        snapshot = self.snapshot
        if snapshot is not None:
            project_id = self._projects.cursor_key or ALL_PROJECTS
            jobs = (
                [without_snoozed(row, self.snoozed) for row in snapshot.jobs]
                if self.snoozed
                else snapshot.jobs
            )
            if self.bookmarks:
                bookmarked_ids = frozenset(self.bookmarks)
                jobs = [replace(row, bookmarked=True) if row.id in bookmarked_ids else row for row in jobs]
            if self.planned_stops:
                jobs = [replace(row, stopping=self.planned_stops.get(row.id, "")) for row in jobs]
            matching_rows = filtered(jobs, project_id=project_id, query=self._query)
            is_default_order = self.sort == DEFAULT_SORT
            # the rows of a snapshot are already in the default order
            rows = tuple(
                matching_rows
                if is_default_order and not self.snoozed
                else sorted_rows(self._columns, matching_rows, self.sort)
            )
            if self.marked_ids:
                marked_ids = frozenset(self.marked_ids)
                rows = tuple(replace(row, marked=True) if row.id in marked_ids else row for row in rows)
            self._jobs.stays_on_top = is_default_order
            # the default order has group headings instead of a mark on a column
            self._jobs.sort_mark = None if is_default_order else self.sort
            self._jobs.headings_of = group_headings if is_default_order else lambda _rows: ()
            self._jobs.set_rows(rows)
        self._show_header()
        self._show_placeholder()

    def _show_header(self) -> None:
        project = self._projects.cursor_row
        facts, priority_count = header_facts(
            self._remote_label,
            self.snapshot,
            self._jobs.rows,
            marked_count=len(self.marked_ids),
            compare_key=self.key_for("home.compare"),
            filter_key=self.key_prefix("home.filter"),
            query=sanitize(self.query_text.strip()),
            project=project.name if project is not None and project.id != ALL_PROJECTS else "",
        )
        self._attention_index = next(
            (index for index, fact in enumerate(facts) if fact[-1][1] == ATTENTION_TONE), -1
        )
        self.query_one("#header", StatusLine).set_facts(facts, priority_count)
        self._show_hints()

    @on(RowTable.Highlighted, "#jobs")
    def _show_hints(self) -> None:
        jobs = self._selected_jobs()
        ended_jobs = [job for job in jobs if job.is_finished]
        self.hide_hints(
            open_job=not jobs,
            next_alarmed=self._attention_index < 0,
            stop_job=len(ended_jobs) == len(jobs),
            recreate_job=not jobs or len(ended_jobs) < len(jobs),
        )
        self._show_preview()

    def _show_preview(self) -> None:
        """Show the preview if the screen is tall, or if the list leaves room for it."""
        row, preview = self._jobs.cursor_row, self._preview
        if preview is None:
            return
        widgets_above = [widget for widget in self.query("#filter, #problem") if widget.display]
        available_lines = self.query_one("#jobs-pane").size.height - sum(
            widget.size.height for widget in widgets_above
        )
        free_lines = available_lines - self._jobs.virtual_size.height
        preview_lines = max(free_lines, 9 if self.size.height >= 30 else 0)
        preview.display = row is not None and preview_lines >= 4
        if row is not None and preview.display and self.snapshot is not None:
            preview.styles.height = preview_lines
            preview.show(row, self.snapshot.at, self._keys_for(row))

    def _keys_for(self, row: JobRow) -> list[Span]:
        """Return the keys that fit the state of a job, each with its label."""
        fitting_actions = {"open_job", "recreate_job"} if row.need is Need.ENDED else {"open_job", "stop_job"}
        fitting_actions |= {"snooze", "next_alarmed"} if row.alarmed else set()
        spans: list[Span] = []
        for action in actions_of(Scope.HOME):
            if action.id in fitting_actions:
                spans += [(self.key_for(f"home.{action.id}"), "key"), (f" {action.label}   ", "muted")]
        return spans

    @on(JobsPane.Resized)
    def _fit_preview(self) -> None:
        self.call_after_refresh(self._show_preview)

    def _show_placeholder(self) -> None:
        """Without rows, show why: loading, no connection, no jobs at all, or no jobs that match."""
        snapshot, has_rows = self.snapshot, bool(self._jobs.rows)
        connection = self.connection
        has_connection_problem = connection.link in (
            ConnectionState.LOST,
            ConnectionState.UNAUTHORIZED,
        ) or bool(connection.stale)
        if has_rows:
            placeholder = ""
        elif snapshot is None and not has_connection_problem:
            placeholder = "Loading projects and jobs…"
        elif snapshot is None:
            key = self.key_for("screen.refresh")
            placeholder = f"Nothing to show yet. Retrying automatically; press {key} to retry now."
        elif not snapshot.jobs:
            key = self.key_for("home.new_job")
            placeholder = f"No training jobs here yet.\n\n{key} submits one, or creates a starter project."
        else:
            placeholder = "\n".join((self._no_match_text(), *self._query.problems))
        self.show_text("#empty", placeholder)

    def _no_match_text(self) -> str:
        query, project = sanitize(self.query_text.strip()), self._projects.cursor_row
        no_jobs_text = f"No job matches “{query}”" if query else "No jobs"
        in_project = f" in {project.name}" if project is not None and project.id != ALL_PROJECTS else ""
        key_effect = "clears the filter" if query else "shows every project"
        return f"{no_jobs_text}{in_project}.\n\n{self.key_for('screen.back')} {key_effect}.\n"

    # Navigation

    @on(RowTable.Highlighted, "#projects")
    def _project_changed(self) -> None:
        self._show_jobs()

    @on(RowTable.Selected, "#projects")
    def _project_chosen(self) -> None:
        self.set_focus(self._jobs)

    @on(RowTable.HeadingPressed, "#jobs")
    def _heading_pressed(self, message: RowTable.HeadingPressed) -> None:
        self.sort = clicked_sort(self._columns, self.sort, message.column_id)

    @on(FilterField.Changed)
    def _filter_typed(self, event: FilterField.Changed) -> None:
        self.query_text = event.value

    @on(FilterField.Submitted)
    def _filter_submitted(self) -> None:
        if not self._filter.is_open:  # a second Enter, typed before the first had moved the focus to the list
            self.action_open_job()
            return
        self._filter.close()
        self.set_focus(self._jobs)

    def show_remote(self, remote_label: str) -> None:
        self._remote_label = remote_label
        self._show_header()

    def choose_project(self, project_id: str) -> None:
        self._projects.move_to(project_id)
        self._show_jobs()
        self.set_focus(self._jobs)

    # Actions on the marked jobs, or else the job under the cursor

    @on(RowTable.Selected, "#jobs")
    def action_open_job(self) -> None:
        if (job := self.require_job()) is not None:
            self.post_message(OpenPage(JobPage(job)))

    def action_snooze(self) -> None:
        row = self._jobs.cursor_row
        if self.require_job() is None or row is None:
            return
        if row.findings:
            self.post_message(messages.SnoozeRequested(row.job, row.findings))
        else:
            self.notify(f"No problems found with {row.name}.")

    def action_open_cache(self) -> None:
        from tui.screens.cache import CachePage

        project = self._projects.cursor_row
        if project is not None and project.id != ALL_PROJECTS:
            self.post_message(OpenPage(CachePage(project.id, project.name)))
        elif (job := self.chosen_job) is not None:
            self.post_message(OpenPage(CachePage(job.project_id, job.project_name)))
        else:
            self.notify(f"Choose a project first: {self.key_for('home.toggle_projects')} shows them.")

    def action_mark(self) -> None:
        if (job := self.require_job()) is None:
            return
        if job.id in self.marked_ids:
            self.marked_ids = tuple(job_id for job_id in self.marked_ids if job_id != job.id)
        else:
            self.marked_ids = (*self.marked_ids, job.id)
        self._jobs.action_cursor_by(1)

    def action_compare(self) -> None:
        from tui.analysis.comparison import MAX_COMPARED_RUNS

        jobs, job_under_cursor = self._marked_jobs(), self.chosen_job
        if len(jobs) == 1 and job_under_cursor is not None and job_under_cursor.id != jobs[0].id:
            jobs.append(job_under_cursor)
        mark_key, compare_key = self.key_for("home.mark"), self.key_for("home.compare")
        if len(jobs) < 2:
            self.notify(f"Mark two or more jobs with {mark_key}, then press {compare_key} to compare.")
        elif len(jobs) > MAX_COMPARED_RUNS:
            self.notify(f"Compare at most {MAX_COMPARED_RUNS} jobs; press {mark_key} to unmark one.")
        else:
            from tui.screens.compare import ComparePage

            self.post_message(OpenPage(ComparePage(tuple(jobs))))

    def action_export(self) -> None:
        table = jobs_table(self._columns, self._jobs.rows)
        noun = counted(len(table.rows), "job")
        self.post_message(
            messages.ExportRequested(noun, [table], (self._remote_label.partition(" · ")[0], "jobs"))
        )

    def action_deploy(self) -> None:
        from tui.screens.deploy.screen import DeployPage

        self.post_message(OpenPage(DeployPage(self.chosen_job)))

    def _marked_jobs(self) -> list[TrainingJob]:
        """Return the marked jobs that still exist, in the order in which they were marked."""
        rows = self.snapshot.jobs if self.marked_ids and self.snapshot is not None else ()
        jobs = {row.id: row.job for row in rows}
        return [jobs[job_id] for job_id in self.marked_ids if job_id in jobs]

    def unmark(self, job_ids: Iterable[str]) -> None:
        removed_ids = set(job_ids)
        self.marked_ids = tuple(job_id for job_id in self.marked_ids if job_id not in removed_ids)

    def action_delete_job(self) -> None:
        """Ask to delete the selected jobs, or the selected project if the list of projects has the focus."""
        project = self._projects.cursor_row
        if not self._projects.has_focus or project is None or self.snapshot is None:
            self.action_change_jobs(Verb.DELETE)
        elif project.id == ALL_PROJECTS:
            self.notify("Choose a project to delete.")
        else:
            jobs = tuple(row.job for row in self.snapshot.jobs if row.project_id == project.id)
            self.post_message(
                messages.DeleteProjectRequested(ProjectDeletion(project.id, project.name, jobs))
            )

    def _selected_jobs(self) -> list[TrainingJob]:
        """Return the marked jobs, or else the job under the cursor."""
        return self._marked_jobs() or ([self.chosen_job] if self.chosen_job is not None else [])

    def action_change_jobs(self, verb: str) -> None:
        jobs = self._selected_jobs()
        if jobs or self.require_job():
            run = self._run_from_row(jobs[0]) if len(jobs) == 1 else None
            self.post_message(messages.BatchRequested(Verb(verb), jobs, run))

    def _run_from_row(self, job: TrainingJob) -> RunSnapshot | None:
        """Return a snapshot with what the list shows of a job; None if the list does not have the job."""
        fleet = self.snapshot
        row = next((row for row in fleet.jobs if row.id == job.id), None) if fleet is not None else None
        if fleet is None or row is None:
            return None
        # imported here, because Home's first picture does not need metrics
        from tui.analysis.run.snapshot import RunSnapshot

        price = price_of(job, fleet.prices)
        return RunSnapshot(
            job=job, at=fleet.at, seen_at=fleet.at, findings=row.findings, price_per_minute=price
        )

    def action_copy_id(self) -> None:
        if (job := self.require_job()) is not None:
            self.post_message(messages.CopyRequested(job.id, "job id"))

    def action_copy_status(self) -> None:
        ids = [job.id for job in self._selected_jobs()]
        rows_by_id = {row.id: row for row in self.snapshot.jobs} if self.snapshot is not None else {}
        lines = [status_line(rows_by_id[job_id]) for job_id in ids if job_id in rows_by_id]
        if lines or self.require_job():
            self.post_message(messages.CopyRequested("\n".join(lines), "status", keeps_line_breaks=True))

    # View

    def action_next_alarmed(self) -> None:
        """Go to the worst job that needs attention; from such a job, to the next worst, wrapping around."""
        alarmed_ids, cursor_id = [row.id for row in worst_first(self._jobs.rows)], self._jobs.cursor_key
        if alarmed_ids in ([], [cursor_id]):
            self.notify(f"No {'other ' if alarmed_ids else ''}job needs attention.")
        if alarmed_ids:
            next_index = alarmed_ids.index(cursor_id) + 1 if cursor_id in alarmed_ids else 0
            self._jobs.move_to(alarmed_ids[next_index % len(alarmed_ids)])
            self.set_focus(self._jobs)

    @on(events.Click, "#header")
    def _header_clicked(self, event: events.Click) -> None:
        if event.style.meta.get(FACT_KEY) == self._attention_index:
            self.action_next_alarmed()

    def action_filter(self) -> None:
        self._filter.open()

    def action_sort(self) -> None:
        self.sort = next_sort(self._columns, self.sort, self._jobs.visible_column_widths)

    def action_reverse_sort(self) -> None:
        column, descending = self.sort
        self.sort = (column, not descending)

    def action_toggle_projects(self) -> None:
        self.toggle_class("-projects-flipped")
        if self._projects.has_focus:  # the list of projects may be hidden now, and must not receive keys
            self.set_focus(self._jobs)
        self._remember_layout()

    def action_back(self) -> None:
        if self._filter.clear_text():
            self.set_focus(self._jobs)
        elif self.marked_ids:
            self.marked_ids = ()
        elif self._projects.cursor_key != ALL_PROJECTS:
            self._projects.move_to(ALL_PROJECTS)
            self.set_focus(self._jobs)
        else:
            self.sort = DEFAULT_SORT


@dataclass(frozen=True, eq=False)
class HomePage(Page):
    def open(self, services: PageServices) -> HomeScreen:
        return HomeScreen(services.fleet_feed, services.label(), services.memory)
