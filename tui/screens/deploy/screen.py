"""The deploy form's screen: questions, review, then the deployment's progress and its URL.

The questions and rules are in ``tui.forms``, shared with the terminal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.text import Text
from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.reactive import var
from textual.widgets import Input, Static

from api_client.deployment import DeployAnswers, DeploymentUpdate, truss_config_yaml
from api_client.models import TrainingJob
from api_client.submission.findings import Finding
from tui.actions.table import Scope
from tui.analysis.deployments import VERBS, DeploymentVerb, startup_text, status_tone, status_word
from tui.analysis.run.snapshot import RunSnapshot
from tui.feeds.deployment import DeployFeed, DeploySnapshot
from tui.forms.deployment import (
    CHANGE,
    DEPLOY,
    DRY_RUN,
    LEAVE,
    REVIEW,
    SAVE,
    SHOW,
    DeployForm,
    Review,
    answer_text,
)
from tui.screens.base import AppScreen, FeedFactory, Page, PageServices, key_for_widget
from tui.screens.deploy.answers import QuestionPane
from tui.screens.dialogs import ConfirmScreen
from tui.screens.highlighting import text_lines
from tui.screens.messages import CopyRequested
from tui.text.sanitize import sanitize, sanitize_beginning, sanitize_multiline
from tui.widgets.background import run_in_background
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.view import LogView
from tui.widgets.text_panel import TextPanel, WrappedText
from tui.widgets.tones import Recolored, tone_styles

DEPLOYMENT_STAGES = ("BUILDING", "DEPLOYING", "LOADING_MODEL", "ACTIVE")


class DeploymentPane(Vertical):
    """The status of a deployment, how to call the model, and the deployment's log."""

    DEFAULT_CSS = """
    DeploymentPane {
        & > #follow-head { padding: 0 1; }
        & > #follow-text { height: auto; max-height: 60%; padding: 0 1; }
        & > LogView { height: 1fr; margin-left: 1; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.text_to_copy = ""
        """The command or config that the copy action copies."""
        self._shown_line_count = 0

    def compose(self) -> ComposeResult:
        yield WrappedText(id="follow-head")
        with VerticalScroll(id="follow-text"):
            yield WrappedText(scrolls=True, id="follow-words")
        yield LogView(options=LogOptions(wrap=True), id="deployment-log")

    def show(self, snapshot: DeploySnapshot) -> None:
        if snapshot.sent is None:
            return
        tones, result = tone_styles(self.app), snapshot.sent.result
        head_text, text, self.text_to_copy = Text(), Text(), ""
        is_dry_run = snapshot.stage == "tried"
        log = self.query_one(LogView)
        log.display = not is_dry_run
        if lines := snapshot.lines[self._shown_line_count :]:
            log.store.append(lines)
            self._shown_line_count = len(snapshot.lines)
        if is_dry_run:
            self.text_to_copy = truss_config_yaml(result.truss_config)
            head_text.append("✓ Dry run: nothing was created. ", tones["good"])
            head_text.append("Truss config that would be deployed:", tones["muted"])
            text.append(sanitize_multiline(self.text_to_copy))
        else:
            head_text.append(f"{sanitize(result.name or 'deployment')}  ", tones["strong"])
            self._append_status(head_text, snapshot.update)
            startup = startup_text(snapshot.startups)
            later_command = snapshot.show_command  # a command, because no page leads back here
            for line in (
                f"last start {startup}" if startup else "",
                result.link,
                later_command and f"to see this again: {later_command}",
            ):
                if line:
                    head_text.append(f"\n{sanitize(line)}", tones["muted"])
        if snapshot.pending:
            head_text.append(f"\n{snapshot.pending}", tones["key"])
        elif snapshot.note:
            head_text.append(f"\n✓ {sanitize(snapshot.note)}", tones["good"])
        if snapshot.error:
            head_text.append(f"\n✗ {sanitize(snapshot.error)}", tones["bad"])
        if snapshot.calls is not None:
            self.text_to_copy = snapshot.calls.curl
            heading = f"Call the model ({key_for_widget(self, 'deploy.copy')} copies the command):\n\n"
            text.append(
                "On Baseten, you would call:\n\n" if snapshot.serves_nothing else heading, tones["strong"]
            )
            text.append("\n\n".join(map(sanitize_multiline, (snapshot.calls.curl, snapshot.calls.python))))
        if snapshot.sent.written_to is not None:
            head_text.append(f"\nTruss config: {sanitize(str(snapshot.sent.written_to))}", tones["muted"])
        self.query_one("#follow-head", WrappedText).update(head_text)
        self.query_one("#follow-words", WrappedText).update(text)
        self.query_one("#follow-text").display = bool(text)

    def _append_status(self, head_text: Text, update: DeploymentUpdate | None) -> None:
        """Append all stages to ``head_text``, the current one marked; or a status that is not a stage."""
        tones = tone_styles(self.app)
        status = (update and update.status) or DEPLOYMENT_STAGES[0]
        if update is not None and update.deployment.is_production:
            head_text.append("production  ", tones["key"])
        if status in DEPLOYMENT_STAGES:
            current_index = DEPLOYMENT_STAGES.index(status)
            for index, stage in enumerate(DEPLOYMENT_STAGES):
                is_done = index < current_index or status == DEPLOYMENT_STAGES[-1]
                sign, tone = ("✓", "good") if is_done else ("·", "muted")
                if index == current_index and not is_done:
                    sign, tone = "●", "key"
                head_text.append(f"{sign} {status_word(stage)}  ", tones[tone])
        else:
            sign = {"good": "✓", "bad": "✗", "muted": "■"}.get(status_tone(status), "●")
            head_text.append(f"{sign} {sanitize(status)}", tones[status_tone(status)])


WAITING_TEXTS = {"loading": "Loading jobs, checkpoints and instance types…", "working": "Deploying…"}
"""Texts shown in place of the form, by stage."""
FILE_NAMES = {"python": "config.py", "json": "config.json", "command": "command.sh"}
"""File names by format of the config, which select the syntax highlighting."""
QUESTION_ID_KEY = "question"
"""Key of the style metadata that holds a question's id, for clicks in the list of questions."""
MIN_LINES_WITH_CONFIG = 32
"""Minimum height of a terminal on which the review shows the config without being asked."""


class DeployScreen(Recolored, AppScreen):
    """Asks the questions of a deploy form, then follows the deployment."""

    CSS_PATH = "deploy.tcss"
    SCOPES = (Scope.DEPLOY,)
    _feed: DeployFeed
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]

    snapshot: var[DeploySnapshot] = var(DeploySnapshot(), init=False)
    config_format: var[str] = var("", init=False)
    """The format of the config that the user chose, a key of ``Review.config_texts``; empty for none."""

    def __init__(self, make_feed: FeedFactory, remote_name: str) -> None:
        super().__init__(make_feed)
        self._remote_name = remote_name
        self._question_pane: QuestionPane | None = None
        self._refusal = ""
        """Why the last answer was refused; shown until the next answer."""

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
                yield TextPanel(id="made-pane")
                yield Static(id="rest")
        yield WrappedText(id="waiting")
        yield DeploymentPane(id="following")

    def on_mount(self) -> None:
        self.watch_snapshot(self.snapshot)
        run_in_background(self, self._feed.begin, "wizard")

    def recolor(self) -> None:
        self.watch_snapshot(self.snapshot)

    def watch_snapshot(self, snapshot: DeploySnapshot) -> None:
        stage, form = snapshot.stage, snapshot.form
        if stage == "following" and not self.has_class("-following"):
            self.call_after_refresh(self.query_one("#deployment-log").focus)
        is_shown_again = stage == "asking" and not self.has_class("-asking")
        stages = ("loading", "asking", "working", "tried", "following")
        self.update_classes({f"-{name}": name == stage for name in stages})
        waiting_text = WAITING_TEXTS.get(stage, "")
        if stage == "loading" and snapshot.error:
            retry_hint = f"Retrying automatically; press {self.key_for('screen.refresh')} to retry now."
            waiting_text += f"\n\n✗ {sanitize(snapshot.error)}\n{retry_hint}"
        self.query_one("#waiting", WrappedText).update(waiting_text)
        self.refresh_bindings()
        self._show_header(snapshot)
        if stage == "asking":
            self._show_question(form)
            self._show_problem(form)
        if is_shown_again and self._question_pane is not None:
            # Textual sends no ``Show`` if anything has scrolled meanwhile.
            self.call_after_refresh(self._question_pane.on_show)
        self.query_one(DeploymentPane).show(snapshot)

    def watch_config_format(self) -> None:
        self._show_review(self.snapshot.form)

    def on_resize(self) -> None:
        self._show_review(self.snapshot.form)

    def _show_header(self, snapshot: DeploySnapshot) -> None:
        form = snapshot.form
        subject, facts = sanitize(form.model_name), list[list[tuple[str, str]]]()
        if snapshot.stage == "asking":
            question_number, question_count = form.position
            subject = f"of {sanitize(form.job.name or form.job.id)}" if form.job is not None else ""
            facts = [
                [
                    (
                        "review"
                        if question_number == question_count
                        else f"step {question_number} of {question_count}",
                        "plain",
                    )
                ]
            ]
        self.set_header("Deploy checkpoints", subject, [*facts, [(f"on {self._remote_name}", "muted")]])

    def _show_question(self, form: DeployForm) -> None:
        question = form.question
        self.query_one("#steps", WrappedText).update(self._question_list(form))
        self.query_one("#question", WrappedText).update(question.text)
        remark = self.query_one("#remark", WrappedText)
        # for pairs, the hint below the field shows the remark
        remark.display = bool(question.remark) and question.kind != "pairs"
        remark.update(question.remark)
        self.set_class(question.id == REVIEW, "-review")
        self.hide_hints(
            next=question.kind != "pairs", previous=not form.can_go_back
        )  # elsewhere, enter continues
        self.temporary_labels = {"back": "review"} if self._was_reviewed else {}
        if self._question_pane is None or not self._question_pane.revise(question):
            # not awaited in a worker: canceling it would also cancel the tasks of the removed widgets,
            # and so the task of the app, which awaits them
            self._question_pane, self._refusal = QuestionPane(question), ""
            box = self.query_one("#answer", Vertical)
            box.remove_children()
            box.mount(self._question_pane)
        if question.id != REVIEW:
            self.config_format = ""
        self._show_review(form)

    def _question_list(self, form: DeployForm) -> Text:
        """List all questions, each with its answer below; signs, not only colors, show which is current."""
        tones = tone_styles(self.app)
        lines: list[Text] = []
        for question in form.questions:
            is_current = question.id == form.current
            is_done = not is_current and question.id != REVIEW and form.is_settled(question)
            sign, tone = ("▸", "key") if is_current else ("✓", "good") if is_done else ("·", "muted")
            title_tone = "strong" if is_current else "plain" if is_done else "muted"
            lines.append(Text.assemble((f"{sign} ", tones[tone]), (question.title, tones[title_tone])))
            if is_done:
                if form.is_changeable(question.id):
                    lines[-1].apply_meta({QUESTION_ID_KEY: question.id})
                lines.append(Text(f"  {sanitize_beginning(answer_text(form, question))}", tones["muted"]))
        return Text("\n").join(lines)

    @on(events.Click, "#steps")
    def _question_clicked(self, event: events.Click) -> None:
        if question_id := event.style.meta.get(QUESTION_ID_KEY):
            self._feed.show(replace(self._feed.form, selected_id=question_id))

    def _refuse(self, form: DeployForm, problem: str) -> None:
        self._refusal = problem
        self._show_problem(form)

    def _show_problem(self, form: DeployForm) -> None:
        note = self.snapshot.note
        problem = self.snapshot.error or form.question.objection or self._refusal
        line, tones = self.query_one("#problem", WrappedText), tone_styles(self.app)
        line.display = bool(problem or note)
        line.update(
            Text(f"✗ {sanitize(problem)}", tones["bad"])
            if problem
            else Text(f"✓ {sanitize(note)}", tones["good"])
        )
        self.query_one("#desk").anchor(line.display)  # keeps the problem visible on low terminals

    @property
    def _shown_format(self) -> str:
        """The format of the config below the answers; on a low terminal, only if the user chose a format."""
        return self.config_format or ("python" if self.size.height >= MIN_LINES_WITH_CONFIG else "")

    def _show_review(self, form: DeployForm) -> None:
        review = None if form.problems else form.review
        config_text = review.config_texts[self._shown_format] if review and self._shown_format else ""
        panel = self.query_one("#made-pane", TextPanel)
        panel.display = bool(config_text)
        self.set_class(bool(config_text), "-config")
        file_name = FILE_NAMES.get(self._shown_format, "config.yaml")
        panel.set_lines(text_lines(config_text, file_name, tone_styles(self.app)), keep_place=True)
        findings = self.query_one("#findings", WrappedText)
        shown_findings = review.findings if review and form.current == REVIEW else ()
        findings.display = bool(shown_findings)
        findings.update(Text("\n").join(map(self._finding_line, shown_findings)))

    def _finding_line(self, finding: Finding) -> Text:
        signs = {"error": ("✗", "bad"), "warning": ("▲", "warn")}
        sign, tone = signs.get(finding.severity, ("·", "muted"))
        remedy = f"; {sanitize(finding.remedy)}" if finding.remedy else ""
        return Text(f"{sign} {sanitize_beginning(finding.problem)}{remedy}", tone_styles(self.app)[tone])

    # Answers

    @on(QuestionPane.Answered)
    def _answered(self, message: QuestionPane.Answered) -> None:
        form = self.snapshot.form
        if self.snapshot.stage != "asking" or form.current != message.question_id:
            return  # a second Enter, typed before the first was processed
        if problem := form.question.problem(message.answer):
            self._refuse(form, problem)
        elif form.current == REVIEW:
            self._run_review_action(str(message.answer), form)
        else:
            run_in_background(self, partial(self._feed.answer, message.question_id, message.answer), "wizard")

    @on(Input.Changed, "#text")
    def _typed(self, event: Input.Changed) -> None:
        form = self.snapshot.form
        if self._refusal and form.question.problem(event.value) != self._refusal:
            self._refuse(form, "")

    def _run_review_action(self, action: str, form: DeployForm) -> None:
        review = form.review
        if action.startswith(CHANGE):
            self._feed.show(replace(self._feed.form, selected_id=action.removeprefix(CHANGE)))
        elif action == LEAVE:
            self._leave()
        elif action == SHOW:
            formats = list(review.config_texts)
            next_index = formats.index(self._shown_format) + 1 if self._shown_format else 0
            self.config_format = formats[next_index % len(formats)]
        elif action.startswith(SAVE):
            config_format = action.removeprefix(SAVE)
            name_suffix = f"{form.answers.job_id or 'checkpoints'}_{datetime.now(UTC):%Y%m%d_%H%M%S}"
            is_python = config_format == "python"
            self._feed.save(
                config_format,
                Path(
                    f"deploy_{name_suffix}.py" if is_python else f"{config_format}_{name_suffix}/config.yaml"
                ),
            )
        elif action == DRY_RUN:
            run_in_background(self, partial(self._feed.deploy, dry_run=True), "dry run", group="deploy")
        elif action == DEPLOY:
            self._confirm(review)

    def _confirm(self, review: Review) -> None:
        warnings = [f"▲ {finding.problem}" for finding in review.findings if finding.severity == "warning"]
        cost_text = (
            f"Builds and starts on {self._remote_name}. Billed while running: {review.answers['GPU']}."
        )
        consequence_lines = (review.answers.get("Checkpoints", ""), *warnings, cost_text)
        title = f"Deploy {sanitize(review.config.model_name or 'the model')}?"
        consequence = "\n".join(sanitize(line) for line in consequence_lines if line)
        self.confirm(ConfirmScreen(title, consequence, "Deploy"), self._deploy)

    @work(name="deployment", group="deploy", exit_on_error=False)
    async def _deploy(self) -> None:
        await self._feed.deploy(dry_run=False)

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in VERBS:
            return self._feed.change_of(VERBS[action]) is not None
        if action == "next":
            return self.snapshot.stage == "asking"
        if action == "previous":
            return self.snapshot.stage in ("tried", "asking")
        return True

    def action_change(self, verb_name: str) -> None:
        verb = VERBS[verb_name]
        change = self._feed.change_of(verb)
        if change is not None:
            dialog = ConfirmScreen(change.question, verb.consequence, verb_name.capitalize())
            self.confirm(dialog, lambda: self._change_deployment(verb))

    # exclusive: cancels the worker that follows the deployment; the feed follows it again after the change
    @work(name="deployment", group="deploy", exclusive=True, exit_on_error=False)
    async def _change_deployment(self, verb: DeploymentVerb) -> None:
        await self._feed.change_deployment(verb)

    def action_next(self) -> None:
        for pane in self.query(QuestionPane):
            pane.post_answer()

    def action_previous(self) -> None:
        form = self._feed.form
        if self.snapshot.stage == "asking" and not form.can_go_back:
            back_effect = "returns to the review" if self._was_reviewed else "leaves"
            self.notify(f"No earlier step can be changed; {self.key_for('screen.back')} {back_effect}.")
        elif self.snapshot.stage == "asking":
            self._feed.show(form.back())
        elif self.snapshot.stage == "tried":
            self._show_review_step()

    def _show_review_step(self) -> None:
        self._feed.show(replace(self._feed.form, selected_id=None))

    def action_copy(self) -> None:
        form = self.snapshot.form
        text, noun = self.query_one(DeploymentPane).text_to_copy, "call"
        if self.snapshot.stage == "asking" and form.current == REVIEW:
            noun = self._shown_format or "python"
            text = form.review.config_texts[noun]
        if text:
            self.post_message(CopyRequested(text, noun, keeps_line_breaks=True))

    def action_refresh(self) -> None:
        if self.snapshot.stage == "loading" and self.snapshot.error:
            run_in_background(self, self._feed.begin, "wizard", exclusive=True)

    def action_back(self) -> None:
        """Go back to the review from a dry run, or from a question opened there; otherwise leave."""
        if self.snapshot.stage == "tried":
            self._show_review_step()
        elif not self._was_reviewed:
            self._leave()
        elif any(pane.is_changed for pane in self.query(QuestionPane)):
            dialog = ConfirmScreen(
                "Discard the change?", "The answer stays as it was in the review.", "Discard", "Keep editing"
            )
            self.confirm(dialog, self._show_review_step)
        else:
            self._show_review_step()

    @property
    def _was_reviewed(self) -> bool:
        """True if the current question was opened from the review."""
        form = self.snapshot.form
        return self.snapshot.stage == "asking" and form.current != REVIEW and form.is_complete

    @property
    def unsaved(self) -> str:
        """Warning about lost answers; empty once a deployment has started, which continues on the server."""
        has_answers = self.snapshot.stage != "following" and self.snapshot.form.confirmed_ids
        return "Your answers will be lost." if has_answers else ""

    def _leave(self) -> None:
        if self.snapshot.pending:
            return  # leaving would cancel a running request
        if not self.unsaved:
            self.leave()
            return
        dialog = ConfirmScreen("Leave without deploying?", self.unsaved, "Leave", "Stay")
        self.confirm(dialog, self.leave)


@dataclass(frozen=True, eq=False)
class DeployPage(Page):
    """The page that deploys checkpoints of a job; without a job, its form first asks for the job."""

    changes_server = True

    job: TrainingJob | None
    checkpoints: tuple[str, ...] = ()
    """Names of the checkpoints; if empty, the form proposes the best checkpoint."""
    run: RunSnapshot | None = None
    """The newest snapshot of the job's run, if any."""

    def open(self, services: PageServices) -> DeployScreen:
        return DeployScreen(
            partial(
                DeployFeed,
                services.session,
                DeployAnswers(self.job.id if self.job is not None else None, self.checkpoints),
                known_run=self.run,
                settings=services.settings.configuration.runs,
            ),
            services.session.remote_name,
        )
