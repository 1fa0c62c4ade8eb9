"""Submit a job: choose a config, review what it would do, change a value, submit, and go on to the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.reactive import var
from textual.widgets import Button, Input, ProgressBar, Static

from tui.actions import Scope
from tui.feeds.recent_configs import ConfigChoice
from tui.feeds.submission import SubmissionFeed, SubmissionSnapshot
from tui.insight.text import inert
from tui.insight.units import bytes_iec
from tui.keymap import bindings_of
from tui.messages import JobSubmitted
from tui.screens.base import AppScreen
from tui.screens.confirm.screen import ConfirmScreen
from tui.screens.submit.fields import OverrideFields
from tui.screens.submit.summary import facts
from tui.widgets.line import FactLine
from tui.widgets.notice import ConnectionNotice
from tui.widgets.row_table import Column, RowTable
from tui.widgets.status_footer import StatusFooter
from tui.widgets.tones import tone_styles
from tui.widgets.wrapped_text import WrappedText

MakeFeed = Callable[[Callable[[SubmissionSnapshot], object]], SubmissionFeed]

CHOICE_COLUMNS: tuple[Column[ConfigChoice], ...] = (
    Column("path", "config files", lambda row: [(inert(_short(row.path)), "plain")], width=20, flex=1),
    Column("recent", "", lambda row: [("recent", "muted")] if row.recent else [], width=6, keep=1),
)
PATH_HINT = "path of a config.py; it is run when you choose it"
STAGES = ("choosing", "reviewing", "submitting")
SIGNS = {"error": ("✗", "bad"), "warning": ("▲", "warn"), "info": ("·", "muted")}
PHASES = {"archiving": "Packing the files", "uploading": "Uploading", "creating": "Creating the job"}


class SubmitScreen(AppScreen):
    """Shows a ``SubmissionSnapshot``; its stages are the screen's classes."""

    CSS_PATH = "submit.tcss"
    SCOPES = (Scope.SUBMIT,)
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(*SCOPES, Scope.SCREEN)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-normal")]

    snapshot: var[SubmissionSnapshot] = var(SubmissionSnapshot(), init=False)

    class SubmissionChanged(Message):
        """The feed has a newer snapshot."""

        def __init__(self, snapshot: SubmissionSnapshot) -> None:
            super().__init__()
            self.snapshot = snapshot

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, SubmitScreen.SubmissionChanged)

    def __init__(self, feed_with: MakeFeed, place: str) -> None:
        super().__init__()
        self._place = place
        self._feed = feed_with(lambda snapshot: self.post_message(self.SubmissionChanged(snapshot)))

    def compose(self) -> ComposeResult:
        """All stages; the snapshot's decides which are seen."""
        yield FactLine(id="header")
        yield ConnectionNotice().data_bind(SubmitScreen.connection)
        yield WrappedText(id="error")
        with Vertical(id="choosing"):
            yield Input(placeholder=PATH_HINT, id="path", compact=True)
            yield RowTable(CHOICE_COLUMNS, lambda row: str(row.path), id="configs")
            yield WrappedText(
                "No config.py here. Type a path, or make one with: bt-tui init", id="no-configs"
            )
        with Horizontal(id="reviewing"):
            with VerticalScroll(id="job", can_focus=True):
                yield Static(id="facts")
                yield Static(id="findings")
            with Vertical(id="change"):
                yield Static(Text("Change for this run"), id="change-title")
                yield OverrideFields(id="fields")
                yield Button("Submit", variant="primary", id="submit", compact=True)
        with Vertical(id="submitting"):
            yield WrappedText(id="phase")
            yield ProgressBar(id="bar", show_eta=False)
        yield StatusFooter().data_bind(SubmitScreen.connection)

    def on_mount(self) -> None:
        """Look for configs."""
        self.watch_snapshot(self.snapshot)
        self.query_one("#path").focus()
        self.run_worker(self._feed.look_around(), name="search for configs", exit_on_error=False)

    @on(SubmissionChanged)
    def _take(self, message: SubmissionChanged) -> None:
        self.snapshot = message.snapshot

    def watch_snapshot(self, snapshot: SubmissionSnapshot) -> None:
        """Show the stage and what it knows."""
        before = next((name for name in STAGES if self.has_class(f"-{name}")), "")
        stage = {"loading": "choosing", "submitted": "submitting"}.get(snapshot.stage, snapshot.stage)
        for name in STAGES:
            self.set_class(name == stage, f"-{name}")
        self._show_header(snapshot)
        error = self.query_one("#error", WrappedText)
        error.display = bool(snapshot.error)
        error.update(f"✗ {inert(snapshot.error)}")
        if snapshot.choices is not None:
            self.query_one("#configs", RowTable).set_rows(snapshot.choices)
            self.query_one("#no-configs").display = not snapshot.choices
        if snapshot.project is not None and stage == "reviewing":
            self._show_review(snapshot)
            if before != stage:
                self.query_one("#submit", Button).focus()
        if stage == "submitting":
            self._show_progress(snapshot)
        if snapshot.job is not None:
            self.post_message(JobSubmitted(snapshot.job))

    def _show_header(self, snapshot: SubmissionSnapshot) -> None:
        spans = [[("New job", "key")], [(f"on {self._place}", "muted")]]
        if snapshot.config is not None and snapshot.stage != "choosing":
            spans.append([(inert(_short(snapshot.config)), "plain")])
        if snapshot.stage == "loading":
            spans.append([("loading…", "muted")])
        self.query_one("#header", FactLine).set_facts(spans)

    def _show_review(self, snapshot: SubmissionSnapshot) -> None:
        assert snapshot.project is not None
        self.query_one("#facts", Static).update(self._facts(facts(snapshot.project, snapshot.plan)))
        self.query_one("#findings", Static).update(self._findings(snapshot))
        self.query_one(OverrideFields).show(snapshot.project)
        self.query_one("#submit", Button).disabled = not snapshot.can_submit

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
            text.append(inert(found.problem))
            if found.remedy:
                text.append(f"\n  {inert(found.remedy)}", tones["muted"])
        for warning in snapshot.warnings:
            text.append("\n· ", tones["muted"])
            text.append(inert(warning))
        if not snapshot.findings:
            text.append("\n✓ nothing to worry about", tones["good"])
        return text

    def _show_progress(self, snapshot: SubmissionSnapshot) -> None:
        progress = snapshot.progress
        if progress is None:
            return
        words = PHASES.get(progress.phase, progress.phase)
        if progress.total_bytes:
            words += f"  {bytes_iec(progress.done_bytes)} of {bytes_iec(progress.total_bytes)}"
        if progress.note:
            words += f"\n{inert(progress.note)}"
        self.query_one("#phase", WrappedText).update(words)
        bar = self.query_one("#bar", ProgressBar)
        bar.update(total=progress.total_bytes or None, progress=progress.done_bytes)

    # What people do

    @on(RowTable.Selected, "#configs")
    def _config_chosen(self, message: RowTable.Selected) -> None:
        self._load(Path(message.key))

    @on(Input.Submitted, "#path")
    def _path_typed(self, event: Input.Submitted) -> None:
        """Enter takes what was typed; with nothing typed, the config under the list's cursor."""
        chosen = self.query_one("#configs", RowTable).cursor_key
        if event.value.strip():
            self._load(Path(event.value.strip()))
        elif chosen is not None:
            self._load(Path(chosen))

    def on_key(self, event: events.Key) -> None:
        """From the path the arrow keys lead into the list."""
        if event.key in ("down", "up") and self.focused is self.query_one("#path"):
            event.stop()
            table = self.query_one("#configs", RowTable)
            table.focus()
            table.action_cursor_by(1 if event.key == "down" else -1)

    @work(name="config", group="review", exclusive=True, exit_on_error=False)
    async def _load(self, config: Path) -> None:
        self.query_one(OverrideFields).clear()
        await self._feed.load(config)

    @on(Input.Submitted, "#fields Input")
    @on(Input.Blurred, "#fields Input")
    def _field_left(self) -> None:
        if self.snapshot.stage == "reviewing":  # fields also lose the focus when their stage is over
            self._review()

    @work(name="review", group="review", exclusive=True, exit_on_error=False)
    async def _review(self) -> None:
        await self._feed.review(self.query_one(OverrideFields).overrides)

    @on(Button.Pressed, "#submit")
    def _submit_pressed(self) -> None:
        self.action_submit()

    def action_submit(self) -> None:
        """Submit the job; warnings are asked about first."""
        snapshot = self.snapshot
        if not snapshot.can_submit or snapshot.project is None:
            errors = [found for found in snapshot.findings if found.severity == "error"]
            why = inert(errors[0].problem) if errors else "Choose a config first."
            self.notify(why, title="Nothing was sent", severity="warning", markup=False)
            return
        serious = [found for found in snapshot.findings if found.severity == "warning"]
        if not serious:
            self._submit()
            return

        def answered(confirmed: bool | None) -> None:
            if confirmed:
                self._submit()

        name = inert(snapshot.project.job.name or snapshot.project.name)
        words = "\n".join(f"▲ {inert(found.problem)}" for found in serious)
        self.app.push_screen(ConfirmScreen(f"Submit {name} all the same?", words, "Submit"), answered)

    @work(name="submission", group="submission", exit_on_error=False)
    async def _submit(self) -> None:
        await self._feed.submit()

    def action_refresh(self) -> None:
        """Look for configs again, or review again."""
        if self.snapshot.stage == "reviewing":
            self._review()
        elif self.snapshot.stage == "choosing":
            self.run_worker(self._feed.look_around(), name="search for configs", exit_on_error=False)

    def action_back(self) -> None:
        """From the review to the choice, from the choice out; an upload is not left behind by accident."""
        if self.snapshot.stage == "reviewing":
            self._feed.choose_again()
            self.query_one("#path").focus()
        elif self.snapshot.stage in ("choosing", "loading"):
            self.app.pop_screen()
        else:
            self.notify("The submission is under way; it goes on to the job by itself.")


def _short(path: Path) -> str:
    """Relative to the working directory where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
