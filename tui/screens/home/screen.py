"""Home: projects beside jobs, running first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import var
from textual.widgets import Input, Static

from api_client.models import TrainingJob
from tui.actions import Scope
from tui.configuration.memory import Memory
from tui.feeds.fleet import FleetFeed
from tui.insight.batches import Verb
from tui.insight.comparison import MOST_COMPARED
from tui.insight.connection import Connection, Link
from tui.insight.fleet import FleetSnapshot, JobRow, ProjectRow, arrange, jobs_table, silenced
from tui.insight.fleet_cost import charges_cost
from tui.insight.query import Query, parse
from tui.insight.units import count, money
from tui.keymap import bindings_of
from tui.messages import (
    BatchRequested,
    BookmarkRequested,
    BrowserRequested,
    CapacityRequested,
    CompareJobsRequested,
    CopyRequested,
    DeployRequested,
    ExportRequested,
    FleetJudged,
    NewJobRequested,
    OpenCacheRequested,
    OpenJobRequested,
    RecreateJobRequested,
    SnoozeRequested,
    StopJobRequested,
)
from tui.screens.base import AppScreen
from tui.screens.home.columns import ALL_PROJECTS, JOB_COLUMNS, PROJECT_COLUMNS, SORT_ORDERS
from tui.widgets.line import FactLine
from tui.widgets.notice import ConnectionNotice
from tui.widgets.row_table import RowTable
from tui.widgets.status_footer import StatusFooter
from tui.widgets.tones import Span

NO_JOBS = "No training jobs here yet.\n\n{key} submits one; bt-tui init writes a config to begin with."
NO_MATCH = "No job matches.\n\nesc clears the filter; the first line of the projects shows all.\n"
FILTER_HINT = "words and status:running gpu:h100 project:x user:ada age<2d"

MEMORY_NAME = "home"
BOOKMARKS_MEMORY = "bookmarks"
MOST_BOOKMARKS = 200
LONGEST_FILTER = 200
LEAST_GPU_HOURS = 1.0

MakeFeed = Callable[[Callable[[FleetSnapshot], object]], FleetFeed]


class HomeScreen(AppScreen):
    """All jobs of the remote; ``feed_with`` makes the feed that keeps them fresh."""

    CSS_PATH = "home.tcss"
    SCOPES = (Scope.HOME,)
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(*SCOPES, Scope.SCREEN)
    HORIZONTAL_BREAKPOINTS = [
        (0, "-narrow"),
        (72, "-normal"),
        (120, "-wide"),
    ]

    snapshot: var[FleetSnapshot | None] = var(None)
    query_text: var[str] = var("", init=False)
    sort: var[tuple[str, bool]] = var(SORT_ORDERS[0], init=False)
    marked: var[tuple[str, ...]] = var((), init=False)
    """Ids of the marked jobs, in the order in which they were."""
    bookmarks: var[tuple[str, ...]] = var((), init=False)
    """Ids of the jobs that are bookmarked, the newest last; remembered."""

    class FleetChanged(Message):
        """The feed has a newer snapshot."""

        def __init__(self, snapshot: FleetSnapshot) -> None:
            super().__init__()
            self.snapshot = snapshot

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, HomeScreen.FleetChanged)

    def __init__(self, feed_with: MakeFeed, place: str, memory: Memory | None = None) -> None:
        super().__init__()
        self._memory = memory if memory is not None else Memory()
        self._place = place
        self._query = Query()
        self._feed = feed_with(lambda snapshot: self.post_message(self.FleetChanged(snapshot)))

    def compose(self) -> ComposeResult:
        """Header, the two tables, and what to say when they are empty."""
        yield FactLine(id="header")
        yield ConnectionNotice().data_bind(HomeScreen.connection)
        with Horizontal(id="body"):
            yield RowTable(PROJECT_COLUMNS, lambda row: row.id, id="projects")
            with Vertical(id="jobs-pane"):
                yield Input(placeholder=FILTER_HINT, id="filter", compact=True)
                yield Static(id="problem")
                yield RowTable(JOB_COLUMNS, lambda row: row.id, id="jobs")
                yield Static(id="empty")
                yield Static("Asking for projects and jobs…", id="loading")
        yield StatusFooter().data_bind(HomeScreen.connection)

    def on_mount(self) -> None:
        """Start the feed; it ends with the screen."""
        self._jobs.focus()
        self._recall()
        self._show_header()
        self.run_worker(self._feed.run(), name="fleet feed", group="feed", exit_on_error=False)

    def _recall(self) -> None:
        """Begin as it was left the last time."""
        found = self._memory.table(MEMORY_NAME)
        column, text = found.get("sort"), found.get("filter")
        if column in {order for order, _ in SORT_ORDERS}:
            self.sort = (column, found.get("descending") is True)
        if isinstance(text, str) and text and len(text) <= LONGEST_FILTER:
            self.query_one("#filter", Input).value = text
        self.set_class(found.get("projects_flipped") is True, "-projects-flipped")
        kept = self._memory.table(BOOKMARKS_MEMORY).get("jobs")
        if isinstance(kept, list):
            self.bookmarks = tuple(one for one in kept if isinstance(one, str))[-MOST_BOOKMARKS:]

    def _remember(self) -> None:
        column, descending = self.sort
        layout = {
            "sort": column,
            "descending": descending,
            "filter": self.query_text,
            "projects_flipped": self.has_class("-projects-flipped"),
        }
        self._memory.put(MEMORY_NAME, layout)

    @property
    def _jobs(self) -> RowTable[JobRow]:
        return self.query_one("#jobs", RowTable)

    @property
    def _projects(self) -> RowTable[ProjectRow]:
        return self.query_one("#projects", RowTable)

    def on_screen_suspend(self) -> None:
        """Behind another screen nobody needs the newest."""
        self._feed.watched = False

    def on_screen_resume(self) -> None:
        """Seen again: ask at once."""
        self._feed.watched = True

    # What came

    @on(FleetChanged)
    def _take(self, message: FleetChanged) -> None:
        self.snapshot = message.snapshot

    def watch_snapshot(self, snapshot: FleetSnapshot | None) -> None:
        """Show the new lists where the old ones were."""
        if snapshot is None:
            return
        everything = ProjectRow(ALL_PROJECTS, "all", "", len(snapshot.jobs), snapshot.running)
        self._projects.set_rows((everything, *snapshot.projects))
        self._show_jobs()
        self.post_message(FleetJudged(snapshot))

    def watch_snoozed(self) -> None:
        """Some rows fall silent, others wake."""
        if self.is_mounted:
            self._show_jobs()

    def watch_connection(self, before: Connection, connection: Connection) -> None:
        """While there is nothing to show, the connection says why."""
        if self.is_mounted and before.link is not connection.link:
            self._show_emptiness()

    def watch_query_text(self, text: str) -> None:
        """Another filter."""
        self._query = parse(text)
        problem = self.query_one("#problem", Static)
        problem.display = bool(self._query.problems)
        problem.update(Text("; ".join(self._query.problems)))
        self._remember()
        self._show_jobs()

    def watch_sort(self) -> None:
        """Another order."""
        self._remember()
        self._show_jobs()

    def watch_bookmarks(self) -> None:
        """Other bookmarks."""
        self._memory.put(BOOKMARKS_MEMORY, {"jobs": list(self.bookmarks)})
        self._show_jobs()

    def toggle_bookmark(self, job_id: str) -> bool:
        """Set a bookmark on that job, or take it away; whether it has one now."""
        others = tuple(one for one in self.bookmarks if one != job_id)
        had_one = len(others) < len(self.bookmarks)
        self.bookmarks = others if had_one else (*others, job_id)[-MOST_BOOKMARKS:]
        return not had_one

    def watch_marked(self) -> None:
        """Other marks."""
        self._show_jobs()

    def _show_jobs(self) -> None:
        snapshot = self.snapshot
        if snapshot is not None:
            column, descending = self.sort
            project_id = self._projects.cursor_key or ALL_PROJECTS
            self._jobs.sort_mark = self.sort
            jobs = [silenced(row, self.snoozed) for row in snapshot.jobs] if self.snoozed else snapshot.jobs
            if self.bookmarks:
                starred = frozenset(self.bookmarks)
                jobs = [replace(row, bookmarked=True) if row.id in starred else row for row in jobs]
            rows = arrange(
                jobs,
                project_id=project_id,
                query=self._query,
                sort_by=column,
                descending=descending,
            )
            marked = frozenset(self.marked)
            self._jobs.set_rows(
                tuple(replace(row, marked=True) if row.id in marked else row for row in rows)
                if marked
                else rows
            )
        self._show_header()
        self._show_emptiness()

    def _show_header(self) -> None:
        facts: list[list[Span]] = [[("bt-tui", "key"), (f"  {self._place}", "plain")]]
        snapshot = self.snapshot
        if snapshot is not None:
            rows = self._jobs.rows
            running = [row for row in rows if row.running]
            alarmed = sum(row.alarmed for row in rows)
            if alarmed:
                facts.append([(f"▲ {alarmed} need{'' if alarmed > 1 else 's'} a look", "warn")])
            total = len(snapshot.jobs)
            facts.append(
                [(f"{len(rows)} of {total} jobs" if len(rows) != total else f"{total} jobs", "muted")]
            )
            facts.append([(f"{len(running)} running", "running" if running else "muted")])
            busy = sum(row.gpu_count for row in running)
            if busy:
                facts.append([(f"{busy} GPUs busy", "muted")])
        if snapshot is not None and (spent := _total(self._jobs.rows, snapshot)):
            facts.append(spent)
        if self.marked:
            key = self.key_for("home.compare")
            facts.insert(
                1,
                [
                    (f"◆ {len(self.marked)} marked", "key"),
                    (f" {key} compares", "muted"),
                ],
            )
        if self.query_text:
            facts.append([("/", "key"), (self.query_text, "accent")])
        self.query_one("#header", FactLine).set_facts(facts)

    def _show_emptiness(self) -> None:
        """Loading, unreachable, empty and filtered away are four different sights."""
        snapshot, shown = self.snapshot, bool(self._jobs.rows)
        trouble = self.connection.link in (Link.LOST, Link.UNAUTHORISED)
        self.query_one("#loading").display = snapshot is None and not trouble
        self._jobs.set_class(not shown, "-empty")  # hidden, it would lose the focus
        empty = self.query_one("#empty", Static)
        empty.display = not shown and (snapshot is not None or trouble)
        if snapshot is None:
            key = self.key_for("screen.refresh")
            empty.update(f"Nothing to show yet. It goes on asking by itself; {key} asks now.")
        elif not snapshot.jobs:
            empty.update(NO_JOBS.format(key=self.key_for("home.new_job")))
        else:
            problems = "".join(f"\n{problem}" for problem in self._query.problems)
            empty.update(Text(f"{NO_MATCH}{problems}"))

    # Moving about

    @on(RowTable.Highlighted, "#projects")
    def _project_changed(self) -> None:
        self._show_jobs()

    @on(RowTable.Selected, "#projects")
    def _project_chosen(self) -> None:
        self._jobs.focus()

    @on(RowTable.Selected, "#jobs")
    def _job_chosen(self) -> None:
        self.action_open_job()

    @on(RowTable.HeadingPressed, "#jobs")
    def _heading_pressed(self, message: RowTable.HeadingPressed) -> None:
        column, descending = self.sort
        self.sort = (message.column_id, not descending if message.column_id == column else False)

    @on(Input.Changed, "#filter")
    def _filter_typed(self, event: Input.Changed) -> None:
        self.query_text = event.value

    @on(Input.Submitted, "#filter")
    def _filter_kept(self) -> None:
        self.query_one("#filter").remove_class("-open")
        self._jobs.focus()

    @property
    def _chosen(self) -> TrainingJob | None:
        row = self._jobs.cursor_row
        return row.job if row is not None else None

    def show_place(self, place: str) -> None:
        """Call the place differently from now on."""
        self._place = place
        self._show_header()

    def choose_project(self, project_id: str) -> None:
        """Show the jobs of that project alone."""
        self._projects.move_to(project_id)
        self._show_jobs()
        self._jobs.focus()

    # Actions

    def action_open_job(self) -> None:
        """Open the job under the cursor."""
        if (job := self._chosen) is not None:
            self.post_message(OpenJobRequested(job))

    def action_new_job(self) -> None:
        """Submit a new job."""
        self.post_message(NewJobRequested())

    def action_filter(self) -> None:
        """Type a filter."""
        field = self.query_one("#filter", Input)
        field.add_class("-open")
        self.type_into(field)

    def action_sort(self) -> None:
        """The next order."""
        shown = self._jobs.columns_shown | {"status"}  # told by sign and note where it has no column
        orders = [order for order in SORT_ORDERS if order[0] in shown]
        known = [column for column, _ in orders]
        position = known.index(self.sort[0]) if self.sort[0] in known else -1
        self.sort = orders[(position + 1) % len(orders)]

    def action_reverse_sort(self) -> None:
        """The same order the other way round."""
        column, descending = self.sort
        self.sort = (column, not descending)

    def action_toggle_projects(self) -> None:
        """Show or hide the projects."""
        self.toggle_class("-projects-flipped")
        self._remember()

    def action_snooze(self) -> None:
        """Be silent about the job under the cursor, or no longer."""
        row = self._jobs.cursor_row
        if row is not None and row.findings:
            self.post_message(SnoozeRequested(row.job, row.findings))
        elif row is not None:
            self.notify(f"Nothing is found wrong with {row.name}.")

    def action_open_cache(self) -> None:
        """The cache of the chosen project, or of the job's."""
        project = self._projects.cursor_row
        if project is not None and project.id != ALL_PROJECTS:
            self.post_message(OpenCacheRequested(project.id, project.name))
        elif (job := self._chosen) is not None:
            name = job.training_project.name if job.training_project else job.project_id
            self.post_message(OpenCacheRequested(job.project_id, name))
        else:
            self.notify(f"Choose a project first: {self.key_for('home.toggle_projects')} shows them.")

    def action_mark(self) -> None:
        """Mark the job under the cursor, or take the mark away."""
        row = self._jobs.cursor_row
        if row is None:
            return
        if row.id in self.marked:
            self.marked = tuple(one for one in self.marked if one != row.id)
        else:
            self.marked = (*self.marked, row.id)

    def action_bookmark(self) -> None:
        """Set a bookmark on the job under the cursor, or take it away."""
        if (job := self._chosen) is not None:
            self.post_message(BookmarkRequested(job))

    def action_compare(self) -> None:
        """Compare the marked jobs; one alone with the one under the cursor."""
        jobs, chosen = self._marked_jobs(), self._chosen
        if len(jobs) == 1 and chosen is not None and chosen.id != jobs[0].id:
            jobs.append(chosen)
        if len(jobs) < 2:
            mark, compare = self.key_for("home.mark"), self.key_for("home.compare")
            self.notify(f"Mark two jobs or more with {mark}, then {compare} compares them.")
        elif len(jobs) > MOST_COMPARED:
            mark = self.key_for("home.mark")
            self.notify(f"{MOST_COMPARED} jobs can be compared at once; {mark} takes a mark away.")
        else:
            self.post_message(CompareJobsRequested(jobs))

    def action_open_capacity(self) -> None:
        """How many GPUs there are."""
        self.post_message(CapacityRequested())

    def action_export(self) -> None:
        """Save the jobs that are shown."""
        table = jobs_table(self._jobs.rows)
        self.post_message(ExportRequested(f"{len(table.rows)} jobs", [table], (self._place, "jobs")))

    def action_deploy(self) -> None:
        """Deploy checkpoints of the job under the cursor."""
        self.post_message(DeployRequested(self._chosen))

    def _marked_jobs(self) -> list[TrainingJob]:
        """The marked jobs that are still there, in the order in which they were marked."""
        known = {row.id: row.job for row in self.snapshot.jobs} if self.snapshot is not None else {}
        return [known[job_id] for job_id in self.marked if job_id in known]

    def unmark(self, job_ids: Iterable[str]) -> None:
        """Take the marks of these jobs away."""
        gone = set(job_ids)
        self.marked = tuple(one for one in self.marked if one not in gone)

    def action_delete_job(self) -> None:
        """Ask to delete the marked jobs, or the one under the cursor."""
        jobs = self._marked_jobs() or ([self._chosen] if self._chosen is not None else [])
        if jobs:
            self.post_message(BatchRequested(Verb.DELETE, jobs))

    def action_stop_job(self) -> None:
        """Ask to stop the marked jobs, or the one under the cursor."""
        if marked := self._marked_jobs():
            self.post_message(BatchRequested(Verb.STOP, marked))
        elif (job := self._chosen) is not None:
            self.post_message(StopJobRequested(job))

    def action_recreate_job(self) -> None:
        """Ask for new jobs like the marked ones, or like the one under the cursor."""
        if marked := self._marked_jobs():
            self.post_message(BatchRequested(Verb.RECREATE, marked))
        elif (job := self._chosen) is not None:
            self.post_message(RecreateJobRequested(job))

    def action_copy_id(self) -> None:
        """Copy the id of the job under the cursor."""
        if (job := self._chosen) is not None:
            self.post_message(CopyRequested(job.id, "job id"))

    def action_open_browser(self) -> None:
        """Open the job under the cursor in the browser."""
        if (job := self._chosen) is not None:
            self.post_message(BrowserRequested(job))

    def action_refresh(self) -> None:
        """Ask the server now."""
        self._feed.refresh()

    def action_back(self) -> None:
        """Leave the filter; then clear it; then take the marks away; then show all projects."""
        field = self.query_one("#filter", Input)
        if field.has_class("-open") or self.query_text:
            field.remove_class("-open")
            field.value = ""
            self._jobs.focus()
        elif self.marked:
            self.marked = ()
        elif self._projects.cursor_key != ALL_PROJECTS:
            self._projects.move_to(ALL_PROJECTS)
            self._jobs.focus()


def _total(rows: Sequence[JobRow], snapshot: FleetSnapshot) -> list[Span]:
    """At most so many GPU-hours, and the money where prices are known; of the jobs that are listed."""
    cost = charges_cost((row.charge for row in rows), snapshot.prices)
    if cost.gpu_hours < LEAST_GPU_HOURS:
        return []
    said: list[Span] = [(f"≤ {count(cost.gpu_hours)} GPU·h", "muted")]
    if cost.usd:
        more = f" + {cost.unpriced} unpriced" if cost.unpriced else ""
        said.append((f" ≈ {money(cost.usd)}{more}", "muted"))
    return said
