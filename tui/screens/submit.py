"""The submit screen: choose a config, override values, see the checks, then submit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.reactive import var
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, Label, ProgressBar, Static

from api_client.definitions import AvailabilityModel, SecretReference, TrainingJob, TrainingProject
from api_client.submission.archive import ArchivePlan
from api_client.submission.payload import Overrides
from api_client.words import command_line
from tui.actions import Scope
from tui.feeds.submission import ConfigChoice, SubmissionFeed, SubmissionSnapshot
from tui.screens.base import AppScreen, MakeFeed, Page, PageServices
from tui.screens.dialogs import ConfirmScreen
from tui.screens.job.page import JobPage
from tui.screens.messages import OpenPage
from tui.system.saved_files import own_path
from tui.tables.column import Column
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, count, counted, of_nodes
from tui.widgets.background import run_in_background
from tui.widgets.row_table import RowTable
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import WrappedText
from tui.widgets.tones import tone_styles

FIELDS = (
    ("job_name", "name"),
    ("accelerator", "accelerator"),
    ("node_count", "nodes"),
    ("entrypoint", "command"),
    ("priority", "priority"),
    ("availability", "availability"),
)
NUMBERS = frozenset({"node_count", "priority"})


class OverrideFields(Vertical):
    """Fields for the overrides; an empty field keeps the config's value, which is its placeholder."""

    def compose(self) -> ComposeResult:
        for name, label in FIELDS:
            with Horizontal(classes="field"):
                yield Label(label)
                yield Input(
                    id=name,
                    compact=True,
                    type="integer" if name in NUMBERS else "text",
                    suggester=SuggestFromList([model.value for model in AvailabilityModel])
                    if name == "availability"
                    else None,
                )

    def show(self, project: TrainingProject) -> None:
        job = project.job
        spec = job.compute.accelerator
        gpu = spec.accelerator if spec is not None else None
        own = {
            "job_name": job.name or "",
            "accelerator": f"{gpu.value}:{spec.count}" if spec is not None and gpu is not None else "",
            "node_count": str(job.compute.node_count),
            "entrypoint": " && ".join(job.runtime.start_commands),
            "availability": job.compute.availability_model.value,
            "priority": "" if job.priority is None else str(job.priority),
        }
        for name, value in own.items():
            self.query_one(f"#{name}", Input).placeholder = sanitize(value) or "from the config"

    def clear(self) -> None:
        for name, _label in FIELDS:
            self.query_one(f"#{name}", Input).value = ""

    @property
    def overrides(self) -> Overrides:
        typed = {name: self.query_one(f"#{name}", Input).value.strip() for name, _ in FIELDS}
        return Overrides(
            job_name=typed["job_name"] or None,
            accelerator=typed["accelerator"] or None,
            node_count=_number(typed["node_count"]),
            entrypoint=typed["entrypoint"] or None,
            priority=_number(typed["priority"]),
            availability=typed["availability"] or None,
        )


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


SHOWN_NAMES = 4


def facts(project: TrainingProject, plan: ArchivePlan | None) -> list[tuple[str, str]]:
    """Return name and value of everything to check before spending money."""
    return [(name, sanitize(value)) for name, value in _facts(project, plan) if value]


def _facts(project: TrainingProject, plan: ArchivePlan | None) -> Iterator[tuple[str, str]]:
    job = project.job
    yield "project", project.name + (f"  (team {project.team_name})" if project.team_name else "")
    yield "job", job.name or "(unnamed)"
    yield "hardware", hardware(job)
    yield "image", job.image.base_image
    for number, command in enumerate(job.runtime.start_commands):
        yield ("command" if number == 0 else ""), command
    yield "environment", _environment(job)
    yield "checkpoints", _checkpoints(job)
    cache = job.runtime.cache_config
    yield "cache", f"on, at {cache.mount_base_path}" if cache is not None and cache.enabled else "off"
    loading = job.runtime.load_checkpoint_config
    if loading is not None and loading.enabled:
        yield "resume from", counted(len(loading.checkpoints), "checkpoint")
    yield "weights", ", ".join(weights.source for weights in job.weights)
    if plan is not None:
        files = len(plan.files)
        unit = "file" if files == 1 else "files"
        yield "archive", f"{count(files)} {unit}, {bytes_iec(plan.size_bytes)}"
        yield "excluded", _dropped(plan)


def hardware(job: TrainingJob) -> str:
    """Return the hardware, like ``2×8 H100, spot``, or cores and memory of a CPU job."""
    compute = job.compute
    spec = compute.accelerator
    if spec is not None and spec.accelerator is not None:
        machine = f"{spec.count} {spec.accelerator.value}"
    else:
        machine = f"{compute.cpu_count} CPU, {compute.memory}"
    spot = ", spot" if compute.availability_model.value == "spot" else ""
    return of_nodes(compute.node_count, machine) + spot


def _environment(job: TrainingJob) -> str:
    variables = job.runtime.environment_variables
    parts = [
        f"{name} (secret {value.name})" if isinstance(value, SecretReference) else name
        for name, value in variables.items()
    ]
    return ", ".join(parts)


def _checkpoints(job: TrainingJob) -> str:
    config = job.runtime.checkpointing_config
    if not config.enabled:
        return "off"
    return "on" + (f", at {config.checkpoint_path}" if config.checkpoint_path else "")


def _dropped(plan: ArchivePlan) -> str:
    names = [entry.name for entry in plan.dropped]
    more = f" and {count(len(names) - SHOWN_NAMES)} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


CHOICE_COLUMNS: tuple[Column[ConfigChoice], ...] = (
    Column("path", "config files", lambda row: [(sanitize(_short(row.path)), "plain")], width=20, flex=1),
    Column("recent", "", lambda row: [("recent", "muted")] if row.recent else [], width=6, keep=1),
)
NO_CONFIGS = f"No config.py here. Type a path, or run {command_line('init')} to create one."
NO_MATCH = "No file of the list matches. Enter runs the file of this path."
PATH_HINT = "path to a config.py; choosing it runs it"
STAGES = ("choosing", "reviewing", "submitting")
SIGNS = {"error": ("✗", "bad"), "warning": ("▲", "warn"), "info": ("·", "muted")}
SUBMISSION = "submission"
SUBMITTING = "Submitting; the job opens when it is created."
PHASES = {"archiving": "Packing files", "uploading": "Uploading", "creating": "Creating the job"}


class SubmitScreen(AppScreen):
    """Shows a ``SubmissionSnapshot``; the current stage is a CSS class of the screen."""

    CSS_PATH = "submit.tcss"
    AUTO_FOCUS = "#path"
    SCOPES = (Scope.SUBMIT,)
    _feed: SubmissionFeed
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-normal")]

    snapshot: var[SubmissionSnapshot] = var(SubmissionSnapshot(), init=False)

    def __init__(self, feed_with: MakeFeed, place: str) -> None:
        super().__init__(feed_with)
        self._place = place

    def compose_body(self) -> ComposeResult:
        """Yield the widgets of all stages; CSS shows those of the current stage."""
        yield WrappedText(id="error")
        with Vertical(id="choosing"):
            yield Input(placeholder=PATH_HINT, id="path", compact=True)
            yield RowTable(CHOICE_COLUMNS, lambda row: str(row.path), id="configs")
            yield WrappedText(id="no-configs")
        with Horizontal(id="reviewing"):
            with VerticalScroll(id="job", can_focus=True):
                yield Static(id="facts")
                yield Static(id="findings")
            with Vertical(id="change"):
                yield Static(Text("Overrides"), id="change-title")
                yield OverrideFields(id="fields")
                yield Button("Submit", variant="primary", id="submit", compact=True)
        with Vertical(id="submitting"):
            yield WrappedText(id="phase")
            yield ProgressBar(id="bar", show_eta=False)

    def on_mount(self) -> None:
        self.watch_snapshot(self.snapshot)
        run_in_background(self, self._feed.find_configs_nearby, "search for configs")

    def watch_snapshot(self, snapshot: SubmissionSnapshot) -> None:
        before = next((name for name in STAGES if self.has_class(f"-{name}")), "")
        stage = {"loading": "choosing", "submitted": "submitting"}.get(snapshot.stage, snapshot.stage)
        self.update_classes({f"-{name}": name == stage for name in STAGES})
        self._show_header(snapshot)
        error = self.query_one("#error", WrappedText)
        error.display = bool(snapshot.error)
        error.update(f"✗ {sanitize(snapshot.error)}")
        if snapshot.choices is not None:
            self._narrow_choices()
        if snapshot.project is not None and stage == "reviewing":
            self._show_review(snapshot)
            if before != stage:
                self.set_focus(self.query_one("#submit", Button))
        if stage == "submitting":
            self._show_progress(snapshot)
        if snapshot.job is not None:
            self.post_message(OpenPage(JobPage(snapshot.job), replaces=self))

    @on(Input.Changed, "#path")
    def _narrow_choices(self) -> None:
        choices = self.snapshot.choices
        if choices is None:
            return
        typed = self.query_one("#path", Input).value.strip().lower()
        shown = [one for one in choices if typed in _short(one.path).lower()]
        self.query_one("#configs", RowTable).set_rows(shown)
        none = self.query_one("#no-configs", WrappedText)
        none.display = not shown
        none.update(NO_MATCH if choices else NO_CONFIGS)

    def _show_header(self, snapshot: SubmissionSnapshot) -> None:
        spans = [[("‹ ", "muted"), ("New job", "key")], [(f"on {self._place}", "muted")]]
        if snapshot.config is not None and snapshot.stage != "choosing":
            spans.append([(sanitize(_short(snapshot.config)), "plain")])
        if snapshot.stage == "loading":
            spans.append([("loading…", "muted")])
        self.query_one("#header", StatusLine).set_facts(spans)

    def _show_review(self, snapshot: SubmissionSnapshot) -> None:
        assert snapshot.project is not None
        self.query_one("#facts", Static).update(self._facts(facts(snapshot.project, snapshot.plan)))
        self.query_one("#findings", Static).update(self._findings(snapshot))
        self.query_one(OverrideFields).show(snapshot.project)

    def _facts(self, rows: list[tuple[str, str]]) -> RenderableType:
        tones = tone_styles(self.app)
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True, style=tones["muted"])
        table.add_column(ratio=1, overflow="fold")
        for name, value in rows:
            table.add_row(Text(name), Text(value))
        return table

    def _findings(self, snapshot: SubmissionSnapshot) -> RenderableType:
        tones = tone_styles(self.app)
        text = Text()
        for found in snapshot.findings:
            sign, tone = SIGNS[found.severity]
            text.append(f"\n{sign} ", tones[tone])
            text.append(sanitize(found.problem))
            if found.remedy:
                text.append(f"\n  {sanitize(found.remedy)}", tones["muted"])
        for warning in snapshot.warnings:
            text.append("\n· ", tones["muted"])
            text.append(sanitize(warning))
        if not snapshot.findings:
            text.append("\n✓ no problems found", tones["good"])
        return text

    def _show_progress(self, snapshot: SubmissionSnapshot) -> None:
        progress = snapshot.progress
        if progress is None:
            return
        words = PHASES.get(progress.phase, progress.phase)
        if progress.total_bytes:
            words += f"  {bytes_iec(progress.done_bytes)} of {bytes_iec(progress.total_bytes)}"
        if progress.note:
            words += f"\n{sanitize(progress.note)}"
        self.query_one("#phase", WrappedText).update(words)
        bar = self.query_one("#bar", ProgressBar)
        bar.update(total=progress.total_bytes or None, progress=progress.done_bytes)

    # User actions

    @on(RowTable.Selected, "#configs")
    def _config_chosen(self, message: RowTable.Selected) -> None:
        self._load(Path(message.key))

    @on(Input.Submitted, "#path")
    def _path_typed(self, event: Input.Submitted) -> None:
        """Load the file of this name, else the chosen one of those whose path contains the text."""
        chosen, typed = self.query_one("#configs", RowTable).cursor_key, event.value.strip()
        if chosen is not None and not (typed and own_path(typed).is_file()):
            self._load(Path(chosen))
        elif typed:
            self._load(Path(typed))

    def on_key(self, event: events.Key) -> None:
        if event.key in ("down", "up") and self.focused is self.query_one("#path"):
            event.stop()
            self.set_focus(self.query_one("#configs", RowTable))

    @work(name="config", group="review", exclusive=True, exit_on_error=False)
    async def _load(self, config: Path) -> None:
        self.query_one(OverrideFields).clear()
        await self._feed.load(config)

    @on(Input.Submitted, "#fields Input")
    @on(Input.Blurred, "#fields Input")
    def _field_left(self) -> None:
        self._review_again()

    def _review_again(self) -> None:
        if self._feed.snapshot.stage == "reviewing" and not self._is_submitting:  # a submission reviews first
            self._review()

    @work(name="review", group="review", exclusive=True, exit_on_error=False)
    async def _review(self) -> None:
        await self._feed.review(self.query_one(OverrideFields).overrides)

    @property
    def _is_submitting(self) -> bool:
        return any(worker.name == SUBMISSION and not worker.is_finished for worker in self.workers)

    @on(Button.Pressed, "#submit")
    def action_submit(self) -> None:
        stage = self._feed.snapshot.stage
        if stage in ("choosing", "loading"):
            self.notify("Choose a config first.", title="Not submitted", severity="warning")
        elif stage == "reviewing" and not self._is_submitting:
            self._submit()
        else:
            self.notify(SUBMITTING)

    @work(name=SUBMISSION, group="review", exclusive=True, exit_on_error=False)
    async def _submit(self) -> None:
        """Review what the fields contain now, then submit that."""
        await self._feed.review(self.query_one(OverrideFields).overrides)
        snapshot = self._feed.snapshot
        if not snapshot.can_submit or snapshot.project is None:
            errors = [found.problem for found in snapshot.findings if found.severity == "error"]
            why = sanitize(snapshot.error or errors[0])
            self.notify(why, title="Not submitted", severity="warning", markup=False)
            return
        serious = [found for found in snapshot.findings if found.severity == "warning"]
        if serious:
            name = sanitize(snapshot.project.job.name or snapshot.project.name)
            words = "\n".join(f"▲ {sanitize(found.problem)}" for found in serious)
            if not await self.app.push_screen_wait(ConfirmScreen(f"Submit {name} anyway?", words, "Submit")):
                return
        await self._feed.submit()

    def action_refresh(self) -> None:
        self._review_again()
        if self.snapshot.stage == "choosing":
            run_in_background(self, self._feed.find_configs_nearby, "search for configs")

    def action_back(self) -> None:
        """Go back from the review to the choice, else close; an upload cannot be left."""
        if self._feed.snapshot.stage == "reviewing":
            self.workers.cancel_group(self, "review")
            self._feed.back_to_choices()
            self.set_focus(self.query_one("#path"))
        elif self.snapshot.stage in ("choosing", "loading"):
            self.leave()
        else:
            self.notify(SUBMITTING)


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


@dataclass(frozen=True, eq=False)
class SubmitPage(Page):
    changes_server = True

    def open(self, services: PageServices) -> SubmitScreen:
        return SubmitScreen(
            lambda publish: SubmissionFeed(services.session, publish, team=services.team()),
            services.session.place,
        )
