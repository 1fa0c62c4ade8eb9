"""The deploy wizard's screen: questions, review, then the deployment's progress and its URL.

The questions and rules are in ``tui.wizard``, shared with the terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial, partialmethod
from pathlib import Path

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.reactive import var
from textual.widgets import Input, Static

from api_client.models import TrainingJob
from api_client.models.logs import LogEntry
from tui.actions import Scope
from tui.analysis.deployments import VERBS, DeploymentVerb
from tui.analysis.run.snapshot import RunSnapshot
from tui.feeds.deployment import DeployFeed, DeploySnapshot
from tui.screens.base import AppScreen, Page, PageServices
from tui.screens.deploy.answers import QuestionPane
from tui.screens.deploy.deployment_pane import DeploymentPane
from tui.screens.dialogs import ConfirmScreen
from tui.screens.messages import CopyRequested
from tui.text.sanitize import sanitize, sanitize_multiline
from tui.widgets.background import run_in_background
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import WrappedText
from tui.widgets.tones import tone_styles
from tui.wizard.progress import WizardProgress, questions
from tui.wizard.review import CHANGE, DEPLOY, DRY_RUN, LEAVE, SAVE, SHOW, Review, answer_text, review
from tui.wizard.state import REVIEW, Answers
from tui.wizard.step import Step

FILE_NAME = "deploy_{job_id}_{time}.py"
WAITING = {"loading": "Loading jobs, checkpoints and instance types…", "working": "Deploying…"}
AGAIN = "Retrying automatically; press {key} to retry now."
TALL = 32
"""Rows from which the review shows the config below the answers without being asked."""


class DeployScreen(AppScreen):
    """Deploy wizard; its steps and rules are shared with the terminal wizard."""

    CSS_PATH = "deploy.tcss"
    SCOPES = (Scope.DEPLOY,)
    _feed: DeployFeed
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-normal"), (110, "-wide")]

    snapshot: var[DeploySnapshot] = var(DeploySnapshot(), init=False)
    form: var[str] = var("", init=False)

    @dataclass
    class LogArrived(Message):
        """New lines of the deployment's log."""

        lines: tuple[LogEntry, ...]

    def __init__(self, feed_with: Callable[..., DeployFeed], place: str) -> None:
        super().__init__()
        self._place = place
        self._shown: tuple[object, ...] = ()
        self._refusal = ("", "")
        """A step and why its answer was refused, shown until the next answer however often facts arrive."""
        self._feed = feed_with(
            publish=self.publish, on_log=lambda lines: self.post_message(self.LogArrived(lines))
        )

    def compose_body(self) -> ComposeResult:
        with Horizontal(id="asking"):
            with VerticalScroll(id="way", can_focus=False):
                yield WrappedText(id="steps", scrolls=True)
            with VerticalScroll(id="desk", can_focus=False):
                yield WrappedText(id="question")
                yield WrappedText(id="remark")
                yield WrappedText(id="findings")
                yield Vertical(id="answer")
                yield WrappedText(id="problem")
                yield VerticalScroll(Static(id="made"), id="made-pane")
                yield Static(id="rest")
        yield WrappedText(id="waiting")
        yield DeploymentPane(id="following")

    def on_mount(self) -> None:
        self.watch_snapshot(self.snapshot)
        run_in_background(self, self._feed.begin, "wizard")

    @on(LogArrived)
    def _take_lines(self, message: LogArrived) -> None:
        self.query_one(DeploymentPane).take(message.lines)

    def watch_snapshot(self, snapshot: DeploySnapshot) -> None:
        stage = snapshot.stage
        if stage == "following" and not self.has_class("-following"):
            self.call_after_refresh(self.query_one("#deployment-log").focus)
        stages = ("loading", "asking", "working", "tried", "following")
        self.update_classes({f"-{name}": name == stage for name in stages})
        waiting = WAITING.get(stage, "")
        if stage == "loading" and snapshot.error:
            waiting += f"\n\n✗ {sanitize(snapshot.error)}\n{AGAIN.format(key=self.key_for('screen.refresh'))}"
        self.query_one("#waiting", WrappedText).update(waiting)
        self.refresh_bindings()
        self._show_header(snapshot)
        if snapshot.wizard is not None and stage == "asking":
            for pane in self.query(QuestionPane):
                pane.take_focus()  # it lost the focus while hidden behind a result
            self._show_question(snapshot.wizard)
            self._show_problem(self._problem_of(snapshot.wizard.step), snapshot.note)
        if stage in ("tried", "following"):
            self.query_one(DeploymentPane).show(
                snapshot,
                truss_config=self._feed.truss_config,
                call=self._feed.how_to_call(),
                show_again=self._feed.show_again,
                serves_nothing=self._feed.serves_nothing,
            )

    def watch_form(self, _form: str) -> None:
        if self.snapshot.wizard is not None:
            self._show_made(self.snapshot.wizard)

    def _show_header(self, snapshot: DeploySnapshot) -> None:
        spans = [[("‹ ", "muted"), ("Deploy checkpoints", "key")], [(f"on {self._place}", "muted")]]
        if snapshot.wizard is not None and snapshot.stage == "asking":
            number, total = snapshot.wizard.place
            place = "review" if number == total else f"step {number} of {total}"
            spans.append([(place, "plain")])
            job = snapshot.wizard.state.job
            if job is not None:
                spans.append([(f"of {sanitize(job.name or job.id)}", "plain")])
        elif snapshot.wizard is not None and snapshot.wizard.state.answers.model_name:
            spans.append([(sanitize(snapshot.wizard.state.answers.model_name), "plain")])
        self.query_one("#header", StatusLine).set_facts(spans)

    def _show_question(self, wizard: WizardProgress) -> None:
        step = wizard.step
        self.query_one("#steps", WrappedText).update(self._step_list(wizard))
        self.query_one("#question", WrappedText).update(sanitize(step.question))
        remark = self.query_one("#remark", WrappedText)
        remark.display = bool(step.remark)
        remark.update(sanitize_multiline(step.remark))
        self.set_class(step.id == REVIEW, "-review")
        self.unhinted = frozenset({"next"} if step.kind != "pairs" else ())  # enter does it
        self.labels = {"back": "review"} if self._was_reviewed else {}
        # Keep typed text if the same question is asked again.
        shown = (step.id, step.default, step.choices)
        if shown != self._shown:
            self._shown = shown
            if not any(pane.revise(step) for pane in self.query(QuestionPane)):
                self._ask(QuestionPane(step))
        # On a low terminal the page of answers needs the room; the config is an action away.
        is_tall = self.size.height >= TALL
        if step.id != REVIEW:
            self.form = ""
        elif is_tall and not self.form:
            self.form = "python"
        self._show_made(wizard)

    def _ask(self, pane: QuestionPane) -> None:
        # No worker waits for this: canceling it would cancel the tasks of the removed widgets, and with them
        # the app's, which waits for them, too.
        box = self.query_one("#answer", Vertical)
        box.remove_children()
        box.mount(pane)

    def _step_list(self, wizard: WizardProgress) -> Text:
        """List every step with its answer below; mark the current step by a sign, not only by color."""
        tones = tone_styles(self.app)
        lines: list[Text] = []
        for step in wizard.steps:
            here = step.id == wizard.current
            settled = step.is_answered and (step.id in wizard.visited or step.is_given)
            done = settled and not here and step.id != REVIEW
            sign, tone = ("▸", "key") if here else ("✓", "good") if done else ("·", "muted")
            title_tone = "strong" if here else "plain" if done else "muted"
            lines.append(Text.assemble((f"{sign} ", tones[tone]), (sanitize(step.title), tones[title_tone])))
            if done:
                lines.append(Text(f"  {sanitize(answer_text(wizard.state, step))}", tones["muted"]))
        return Text("\n").join(lines)

    def _problem_of(self, step: Step) -> str:
        step_id, refusal = self._refusal
        return self.snapshot.error or step.objection or (refusal if step_id == step.id else "")

    def _refuse(self, step: Step, problem: str) -> None:
        self._refusal = (step.id, problem)
        self._show_problem(problem)

    def _show_problem(self, problem: str, note: str = "") -> None:
        line = self.query_one("#problem", WrappedText)
        line.display = bool(problem or note)
        tones = tone_styles(self.app)
        line.update(
            Text(f"✗ {sanitize(problem)}", tones["bad"])
            if problem
            else Text(f"✓ {sanitize(note)}", tones["good"])
        )
        self.query_one("#desk").anchor(line.display)  # in sight on a low terminal, too, however it is resized

    def _show_made(self, wizard: WizardProgress) -> None:
        made = self._review(wizard) if wizard.step.id == REVIEW else None
        is_shown = made is not None and bool(self.form)
        self.query_one("#made-pane").display = is_shown
        self.set_class(is_shown, "-config")
        lines = self.query_one("#findings", WrappedText)
        lines.display = made is not None and bool(made.findings)
        if made is None:
            return
        lines.update(self._finding_lines(made))
        if self.form:
            text = "\n".join(sanitize(line) for line in made.forms[self.form].splitlines())
            self.query_one("#made", Static).update(Text(text))

    def _finding_lines(self, made: Review) -> Text:
        tones = tone_styles(self.app)
        signs = {"error": ("✗", "bad"), "warning": ("▲", "warn")}
        lines = []
        for found in made.findings:
            sign, tone = signs.get(found.severity, ("·", "muted"))
            remedy = f"; {sanitize(found.remedy)}" if found.remedy else ""
            lines.append(Text(f"{sign} {sanitize(found.problem)}{remedy}", tones[tone]))
        return Text("\n").join(lines)

    @staticmethod
    def _review(wizard: WizardProgress) -> Review | None:
        try:
            return review(wizard.state, questions(wizard.state))
        except ValueError:
            return None

    # Answers

    @on(QuestionPane.Answered)
    def _answered(self, message: QuestionPane.Answered) -> None:
        wizard = self.snapshot.wizard
        if wizard is None or self.snapshot.stage != "asking" or wizard.current != message.step_id:
            return  # a second enter, typed before the first one was taken
        self._refusal = ("", "")
        if wizard.step.kind == "review":
            self._act(str(message.answer), wizard)
            return
        problem = message.unreadable or wizard.step.problem(message.answer)
        if problem:
            self._refuse(wizard.step, problem)
        else:
            run_in_background(self, partial(self._feed.answer, message.step_id, message.answer), "wizard")

    @on(Input.Changed, "#text")
    def _typed(self, event: Input.Changed) -> None:
        wizard = self.snapshot.wizard
        if wizard is not None and self._refusal[1] and wizard.step.problem(event.value) != self._refusal[1]:
            self._refuse(wizard.step, "")

    def _act(self, action: str, wizard: WizardProgress) -> None:
        made = self._review(wizard)
        if action.startswith(CHANGE):
            self._feed.change(action.removeprefix(CHANGE))
        elif action == LEAVE:
            self._leave()
        elif made is None:
            self._refuse(wizard.step, "Answer all steps first.")
        elif action == SHOW:
            forms = list(made.forms)
            self.form = forms[(forms.index(self.form) + 1) % len(forms)] if self.form in forms else forms[0]
        elif action == SAVE:
            stamp = datetime.now(UTC).strftime("%Y%m%d_%H%M%S")
            name = FILE_NAME.format(job_id=wizard.state.answers.job_id or "checkpoints", time=stamp)
            self._feed.save(made, Path(name))
        elif made.errors:
            self._refuse(wizard.step, made.errors[0].problem)
        elif action == DRY_RUN:
            run_in_background(self, self._feed.dry_run, "dry run", group="deploy")
        elif action == DEPLOY:
            self._confirm(made, wizard)

    def _confirm(self, made: Review, wizard: WizardProgress) -> None:
        gpu = next((text for _, title, text in made.lines if "GPU" in title), "")
        warnings = [f"▲ {sanitize(found.problem)}" for found in made.findings if found.severity == "warning"]
        place = sanitize(self._place)
        cost = f"Builds and starts on {place}. Billed while running: {sanitize(gpu)}."
        checkpoints = ", ".join(wizard.state.answers.checkpoint_names)
        what = "\n".join((*filter(None, (sanitize(checkpoints),)), *warnings, cost))
        question = f"Deploy {sanitize(made.config.model_name or 'the model')}?"
        self.confirm(ConfirmScreen(question, what, "Deploy"), self._deploy)

    @work(name="deployment", group="deploy", exit_on_error=False)
    async def _deploy(self) -> None:
        await self._feed.deploy()

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in VERBS:
            return self._feed.change_of(DeploymentVerb(action)) is not None
        if action == "next":
            return self.snapshot.stage == "asking"
        if action == "previous":
            wizard = self.snapshot.wizard
            asked_before = wizard is not None and wizard.back_to_prefilled() is not wizard
            return self.snapshot.stage == "tried" or (self.snapshot.stage == "asking" and asked_before)
        return True

    def _confirm_change(self, verb: DeploymentVerb) -> None:
        change = self._feed.change_of(verb)
        if change is not None:
            question = ConfirmScreen(change.question, change.consequence, verb.capitalize())
            self.confirm(question, lambda: self._change_deployment(verb))

    action_promote = partialmethod(_confirm_change, DeploymentVerb.PROMOTE)
    action_deactivate = partialmethod(_confirm_change, DeploymentVerb.DEACTIVATE)
    action_activate = partialmethod(_confirm_change, DeploymentVerb.ACTIVATE)
    action_retry = partialmethod(_confirm_change, DeploymentVerb.RETRY)

    # It ends the worker that follows the deployment: the feed follows it again after the change.
    @work(name="deployment", group="deploy", exclusive=True, exit_on_error=False)
    async def _change_deployment(self, verb: DeploymentVerb) -> None:
        await self._feed.change_deployment(verb)

    def action_next(self) -> None:
        for pane in self.query(QuestionPane):
            pane.give()

    def action_previous(self) -> None:
        if self.snapshot.stage == "asking":
            self._feed.back()
        elif self.snapshot.stage == "tried":
            self._feed.to_review()

    def action_copy(self) -> None:
        if self.snapshot.stage in ("tried", "following"):
            text = self.query_one(DeploymentPane).to_copy
            if text:
                self.post_message(CopyRequested(text, "call", lines=True))
            return
        wizard = self.snapshot.wizard
        made = self._review(wizard) if wizard is not None else None
        if made is not None and wizard is not None and wizard.step.id == REVIEW:
            form = self.form or "python"
            self.post_message(CopyRequested(made.forms[form], form, lines=True))

    def action_refresh(self) -> None:
        if self.snapshot.wizard is None:
            run_in_background(self, self._feed.begin, "wizard", exclusive=True)

    def action_back(self) -> None:
        """Go back to the review from a dry run, or from a question opened there; otherwise leave."""
        if self.snapshot.stage == "tried":
            self._feed.to_review()
        elif not self._was_reviewed:
            self._leave()
        elif any(pane.is_changed for pane in self.query(QuestionPane)):
            question = ConfirmScreen(
                "Discard the change?", "The answer stays as it was in the review.", "Discard", "Keep editing"
            )
            self.confirm(question, self._feed.to_review)
        else:
            self._feed.to_review()

    @property
    def _was_reviewed(self) -> bool:
        """True at a question that was opened from the review."""
        snapshot = self.snapshot
        wizard = snapshot.wizard if snapshot.stage == "asking" else None
        return wizard is not None and wizard.current != REVIEW and wizard.is_complete

    def _leave(self) -> None:
        """Leave the wizard. Answers are lost; a deployment that has started continues on the server."""
        wizard = self.snapshot.wizard
        if self.snapshot.changing:
            return  # leaving would cut off the request
        if self.snapshot.stage == "following" or wizard is None or not wizard.visited - wizard.accepted:
            self.leave()
            return
        question = ConfirmScreen("Leave without deploying?", "Your answers will be lost.", "Leave", "Stay")
        self.confirm(question, self.leave)


@dataclass(frozen=True, eq=False)
class DeployPage(Page):
    """The deploy wizard, for checkpoints of a job, or of any job if none is given."""

    changes_server = True

    job: TrainingJob | None
    checkpoints: tuple[str, ...] = ()
    """Names of the checkpoints; if empty, the best one is proposed."""
    run: RunSnapshot | None = None
    """What is known of the job's run."""

    def open(self, services: PageServices) -> DeployScreen:
        wanted = services.settings.configuration
        return DeployScreen(
            partial(
                DeployFeed,
                services.session,
                Answers(self.job.id if self.job is not None else None, self.checkpoints),
                known=self.run,
                rules=wanted.health,
                patterns=wanted.progress_patterns,
            ),
            services.session.place,
        )
