"""The submit screen: choose a config, override values, see the checks, then submit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
from rich.text import Text
from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.reactive import var
from textual.suggester import Suggester, SuggestFromList
from textual.widgets import Button, Input, Label, ProgressBar, Static

from api_client.definitions import TrainingProject
from api_client.submission.payload import Overrides
from tui.actions.table import Scope
from tui.feeds.submission import ConfigChoice, SubmissionFeed, SubmissionSnapshot
from tui.forms.submission import FIELDS, overrides_of, summary
from tui.screens.base import AppScreen, FeedFactory, OpenPage, Page, PageServices
from tui.screens.dialogs import ConfirmScreen, PathDialog
from tui.screens.highlighting import text_lines
from tui.screens.job.page import JobPage
from tui.system.saved_files import expanded_path, is_existing_file
from tui.system.starters import FilesAlreadyExist, StarterProject, write_starters
from tui.tables.column import Column, Heading, Span
from tui.text.sanitize import clip, sanitize, sanitize_beginning
from tui.text.units import bytes_iec
from tui.widgets.background import run_in_background
from tui.widgets.row_table import RowTable
from tui.widgets.text_panel import Line, TextPanel, WrappedText
from tui.widgets.tones import Recolored, tone_styles


class OverrideInputs(Vertical):
    """Inputs for overrides; an empty input keeps the value of the config, which is its placeholder."""

    def compose(self) -> ComposeResult:
        for field in FIELDS:
            with Horizontal(classes="field"):
                yield Label(field.label)
                yield Input(
                    id=field.name,
                    compact=True,
                    type="integer" if field.is_number else "text",
                    suggester=SuggestFromList(field.suggestions) if field.suggestions else None,
                )

    def show(self, project: TrainingProject) -> None:
        for field in FIELDS:
            config_value = clip(sanitize_beginning(field.config_value(project.job)), 200)
            self.query_one(f"#{field.name}", Input).placeholder = config_value or "from the config"

    def clear(self) -> None:
        for field in self.query(Input):
            field.value = ""

    @property
    def overrides(self) -> Overrides:
        return overrides_of({field.name: self.query_one(f"#{field.name}", Input).value for field in FIELDS})


def _choice_cell(row: ConfigChoice) -> list[Span]:
    return [(f"{sanitize(row.name):<19} ", "plain"), (row.note, "muted")]


CHOICE_COLUMNS: tuple[Column[ConfigChoice], ...] = (Column("name", "", _choice_cell, width=24, flex=1),)


def _choice_headings(rows: Sequence[ConfigChoice]) -> list[Heading]:
    config_count = sum(row.starter is None for row in rows)
    titles = (
        (0, "config files", config_count),
        (config_count, "new project from a starter", len(rows) - config_count),
    )
    return [(first_row, [(title, "heading")]) for first_row, title, row_count in titles if row_count]


LIST_KEYS = {
    "down": "cursor_by(1)",
    "up": "cursor_by(-1)",
    "pagedown": "cursor_by_page(1)",
    "pageup": "cursor_by_page(-1)",
}
"""Keys in the path field that move the cursor of the list below it, and their actions."""
STAGES = ("choosing", "reviewing", "submitting")
"""The stages of the screen. Each has a CSS class, which selects the visible widgets."""
FINDING_SIGNS = {"error": ("✗", "bad"), "warning": ("▲", "warn"), "info": ("·", "muted")}
SUBMIT_WORKER = "submission"
"""Name of the worker that submits."""
SUBMITTING_TEXT = "Submitting; the job opens when it is created."
PHASE_TEXTS = {"archiving": "Packing files", "uploading": "Uploading", "creating": "Creating the job"}


class StarterScreen(PathDialog[Path]):
    """Asks for a folder and writes a starter project to it; the result is the path of its config, or None."""

    def __init__(self, starter: StarterProject) -> None:
        details = (
            f"{starter.summary}.\nFor {starter.machine}. Its config opens for review; nothing is submitted."
        )
        field = Input(starter.name, id="folder", compact=True)
        super().__init__(f"New project from {starter.name}: in which folder?", details, field, "Create")
        self._starter = starter

    async def answer(self, typed: str) -> Path:
        folder = expanded_path(typed.strip() or ".")
        try:
            write_starters({folder: self._starter})
        except FilesAlreadyExist as problem:
            raise ValueError(str(problem)) from problem
        return folder / "config.py"


class PathSuggester(Suggester):
    """Completes a typed path to the first folder or Python file that starts with it."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        return await asyncio.to_thread(completed_path, value)


def completed_path(typed: str) -> str | None:
    """Return the completed path, with a slash after a folder; None if no path starts with ``typed``.

    A path that ends with a slash is completed by the folder's ``config.py`` only.
    """
    folder, name_start = os.path.split(typed)
    with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: ~user of an unknown user
        names = [
            f"{path.name}/" if path.is_dir() else path.name
            for path in Path(folder).expanduser().iterdir()
            if path.name.startswith(name_start) and (path.is_dir() or path.suffix == ".py")
        ]
        candidates = [
            name for name in names if sanitize(name) == name and (name_start or name == "config.py")
        ]
        if folder + name_start and candidates:
            return typed + min(candidates)[len(name_start) :]
    return None


class SubmitScreen(Recolored, AppScreen):
    """Shows a ``SubmissionSnapshot``; the stylesheet selects widgets by its stage, a class of the screen."""

    CSS_PATH = "submit.tcss"
    AUTO_FOCUS = "#path"
    SCOPES = (Scope.SUBMIT,)
    _feed: SubmissionFeed
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-normal")]

    snapshot: var[SubmissionSnapshot] = var(SubmissionSnapshot(), init=False)

    def __init__(self, make_feed: FeedFactory, remote_name: str) -> None:
        super().__init__(make_feed)
        self._remote_name = remote_name
        self._choice_table = RowTable(CHOICE_COLUMNS, lambda row: row.name, id="choices")
        self._choice_table.headings_of = _choice_headings
        self._choice_table.can_focus = False  # the path field keeps the focus: its text filters the list

    def compose_body(self) -> ComposeResult:
        """Yield the widgets of all stages; the stylesheet hides the widgets of other stages."""
        yield WrappedText(id="error")
        with Vertical(id="choosing"):
            yield Input(
                placeholder="path to a config.py; → completes, enter runs its code",
                id="path",
                compact=True,
                suggester=PathSuggester(),
            )
            yield self._choice_table
            yield WrappedText("No listed file matches. Enter runs the file at this path.", id="no-match")
        with Horizontal(id="reviewing"):
            yield TextPanel(id="job")
            with Vertical(id="change"):
                yield Static(Text("Overrides"), id="change-title")
                yield OverrideInputs(id="fields")
                yield Button("Submit", variant="primary", id="submit", compact=True)
        with Vertical(id="submitting"):
            yield WrappedText(id="phase")
            yield ProgressBar(id="bar", show_eta=False)

    def on_mount(self) -> None:
        self.watch_snapshot(self.snapshot)
        run_in_background(self, self._feed.find_configs_nearby, "search for configs")

    def recolor(self) -> None:
        self.watch_snapshot(self.snapshot)

    def watch_snapshot(self, snapshot: SubmissionSnapshot) -> None:
        previous_stage = next((name for name in STAGES if self.has_class(f"-{name}")), "")
        stage = {"loading": "choosing", "submitted": "submitting"}.get(snapshot.stage, snapshot.stage)
        self.update_classes({f"-{name}": name == stage for name in STAGES})
        self._show_header(snapshot)
        self.show_text("#error", f"✗ {sanitize(snapshot.error)}" if snapshot.error else "")
        self._filter_choices()
        if snapshot.project is not None and stage == "reviewing":
            self._show_review(snapshot)
            if previous_stage != stage:
                self.set_focus(self.query_one("#submit", Button))
        if stage == "submitting":
            self._show_progress(snapshot)
        if snapshot.job is not None:
            self.post_message(OpenPage(JobPage(snapshot.job), replaces=self))

    @on(RowTable.Highlighted, "#choices")
    @work(group="preview", exclusive=True, exit_on_error=False)
    async def _show_preview(self) -> None:
        """Show the source of the config that enter would load, or would write for a starter."""
        choice = self._choice_table.cursor_row
        source = "" if choice is None else await asyncio.to_thread(choice.read)
        if self.has_class("-choosing"):
            self.query_one("#job", TextPanel).set_lines(self._source_lines(source))

    def _source_lines(self, source: str) -> list[Line]:
        heading: Line = [("config", "heading"), (" (values of environment variables are hidden)", "muted")]
        return [heading, *text_lines(source, "config.py", tone_styles(self.app))] if source else []

    @on(Input.Changed, "#path")
    def _filter_choices(self) -> None:
        choices = self.snapshot.choices
        typed = self.query_one("#path", Input).value.strip().lower()
        matching = [choice for choice in choices or () if typed in choice.name.lower()]
        self._choice_table.set_rows(matching)
        self.query_one("#no-match").display = choices is not None and not matching
        self._show_preview()

    def _show_header(self, snapshot: SubmissionSnapshot) -> None:
        spans = [[(f"on {self._remote_name}", "muted")]]
        if snapshot.config is not None and snapshot.stage != "choosing":
            spans.append([(sanitize(ConfigChoice(snapshot.config).name), "plain")])
        if snapshot.stage == "loading":
            spans.append([("loading…", "muted")])
        self.set_header("New job", "", spans)

    def _show_review(self, snapshot: SubmissionSnapshot) -> None:
        assert snapshot.project is not None
        facts, source = summary(snapshot.project, snapshot.plan), self._source_lines(snapshot.source)
        lines: list[Line] = [*_fact_lines(facts), "", *_finding_lines(snapshot), "", *source]
        self.query_one("#job", TextPanel).set_lines(lines, keep_place=True)
        self.query_one(OverrideInputs).show(snapshot.project)

    def _show_progress(self, snapshot: SubmissionSnapshot) -> None:
        progress = snapshot.progress
        if progress is None:
            return
        text = PHASE_TEXTS.get(progress.phase, progress.phase)
        if progress.total_bytes:
            text += f"  {bytes_iec(progress.done_bytes)} of {bytes_iec(progress.total_bytes)}"
        if progress.note:
            text += f"\n{sanitize(progress.note)}"
        self.query_one("#phase", WrappedText).update(text)
        bar = self.query_one("#bar", ProgressBar)
        bar.update(total=progress.total_bytes or None, progress=progress.done_bytes)

    # User actions

    @on(RowTable.Selected, "#choices")
    def _open_selected(self) -> None:
        choice = self._choice_table.cursor_row
        if choice is not None and choice.starter is not None:
            self.app.push_screen(StarterScreen(choice.starter), self._starter_written)
        elif choice is not None:
            self._load(choice.path)

    def _starter_written(self, config: Path | None) -> None:
        if config is not None:
            self._load(config)

    @on(Input.Submitted, "#path")
    def _path_submitted(self, event: Input.Submitted) -> None:
        """Load the file at the typed path; if there is no such file, choose the selected row of the list."""
        typed = event.value.strip()
        if typed and (is_existing_file(typed) or self._choice_table.cursor_row is None):
            self._load(Path(typed))
        else:
            self._open_selected()

    async def on_key(self, event: events.Key) -> None:
        if event.key in LIST_KEYS and self.focused is self.query_one("#path"):
            event.stop()
            await self._choice_table.run_action(LIST_KEYS[event.key])

    @work(name="config", group="review", exclusive=True, exit_on_error=False)
    async def _load(self, config: Path) -> None:
        self.query_one(OverrideInputs).clear()
        await self._feed.load(config)

    @on(Input.Submitted, "#fields Input")
    @on(Input.Blurred, "#fields Input")
    def _refresh_review(self) -> None:
        # submitting starts with a review, so none is needed then
        if self._feed.snapshot.stage == "reviewing" and not self._is_submitting:
            self._review()

    @work(name="review", group="review", exclusive=True, exit_on_error=False)
    async def _review(self) -> None:
        await self._feed.review(self.query_one(OverrideInputs).overrides)

    @property
    def _is_submitting(self) -> bool:
        return any(worker.name == SUBMIT_WORKER and not worker.is_finished for worker in self.workers)

    @on(Button.Pressed, "#submit")
    def action_submit(self) -> None:
        stage = self._feed.snapshot.stage
        if stage in ("choosing", "loading"):
            reason = "The config is still loading." if stage == "loading" else "Choose a config first."
            self.notify(reason, title="Not submitted", severity="warning")
        elif stage == "reviewing" and not self._is_submitting:
            self._submit()
        else:
            self.notify(SUBMITTING_TEXT)

    @work(name=SUBMIT_WORKER, group="review", exclusive=True, exit_on_error=False)
    async def _submit(self) -> None:
        """Review the current overrides, then submit them if there are no errors."""
        await self._feed.review(self.query_one(OverrideInputs).overrides)
        snapshot = self._feed.snapshot
        if not snapshot.can_submit or snapshot.project is None:
            errors = [finding.problem for finding in snapshot.findings if finding.severity == "error"]
            reason = sanitize(snapshot.error or errors[0])
            self.notify(reason, title="Not submitted", severity="warning", markup=False)
            return
        warnings = [finding for finding in snapshot.findings if finding.severity == "warning"]
        if warnings:
            name = sanitize(snapshot.project.job.name or snapshot.project.name)
            warnings_text = "\n".join(f"▲ {sanitize(finding.problem)}" for finding in warnings)
            if not await self.app.push_screen_wait(
                ConfirmScreen(f"Submit {name} anyway?", warnings_text, "Submit")
            ):
                return
        await self._feed.submit()

    def action_refresh(self) -> None:
        self._refresh_review()
        if self.snapshot.stage == "choosing":
            run_in_background(self, self._feed.find_configs_nearby, "search for configs")

    def action_back(self) -> None:
        """Go back from the review to the list of configs, else close; an upload cannot be interrupted."""
        if self._feed.snapshot.stage == "reviewing":
            self.workers.cancel_group(self, "review")
            self._feed.back_to_choices()
            self.set_focus(self.query_one("#path"))
        elif self.snapshot.stage in ("choosing", "loading"):
            self.leave()
        else:
            self.notify(SUBMITTING_TEXT)


def _fact_lines(facts: list[tuple[str, str]]) -> list[Line]:
    name_cells = max((cell_len(name) for name, _ in facts), default=0)
    return [[(f"{name:<{name_cells}} ", "muted"), (value, "plain")] for name, value in facts]


def _finding_lines(snapshot: SubmissionSnapshot) -> list[Line]:
    lines: list[Line] = []
    for finding in snapshot.findings:
        sign, tone = FINDING_SIGNS[finding.severity]
        lines.append([(f"{sign} ", tone), (sanitize_beginning(finding.problem), "plain")])
        if finding.remedy:
            lines.append([(f"  {sanitize_beginning(finding.remedy)}", "muted")])
    lines += [[("· ", "muted"), (sanitize_beginning(warning), "plain")] for warning in snapshot.warnings]
    if not snapshot.findings:
        lines.append([("✓ no problems found", "good")])
    return lines


@dataclass(frozen=True, eq=False)
class SubmitPage(Page):
    changes_server = True

    def open(self, services: PageServices) -> SubmitScreen:
        return SubmitScreen(
            lambda publish: SubmissionFeed(services.session, publish, team=services.team()),
            services.session.remote_name,
        )
