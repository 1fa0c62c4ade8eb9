"""The deploy wizard's feed: the server's data, the user's progress, and the deployment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from api_client.deployment import Calls, DeploymentResult, calls, follow, serves_nothing, truss_config_yaml
from api_client.errors import ApiClientError, RequestError
from api_client.files import why_not_written, write_file
from api_client.http.retry import LASTING, retrying
from api_client.models import Deployment, Startup
from api_client.models.logs import LogEntry, LogLine
from tui.analysis.deployments import DeploymentChange, DeploymentVerb
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.run.snapshot import RunSnapshot
from tui.feeds.checkpoint_evidence import evidence_of
from tui.readers.deployment import load, load_checkpoints, send
from tui.readers.deployments import change_deployment, read_startups
from tui.readers.session import Session
from tui.wizard.given import initial_wizard_state
from tui.wizard.progress import WizardProgress
from tui.wizard.review import Review, deploy_config
from tui.wizard.state import REVIEW, Answers, WizardState
from tui.wizard.step import Answer

READING = "the log is still being read"
Stage = Literal["loading", "asking", "working", "tried", "following"]


@dataclass(frozen=True, slots=True)
class DeploySnapshot:
    """The state of the wizard.

    ``error`` is why the last step failed; all answers are kept. ``note`` reports other actions, such as a
    saved file. ``status`` is the deployment's, in the server's spelling; ``changing`` names the change of it
    that is being requested.
    """

    stage: Stage = "loading"
    wizard: WizardProgress | None = None
    error: str = ""
    note: str = ""
    result: DeploymentResult | None = None
    written_to: Path | None = None
    status: str = ""
    is_serving: bool = False
    is_over: bool = False
    deployment: Deployment | None = None
    startups: tuple[Startup, ...] = ()
    changing: str = ""


class DeployFeed:
    """Publishes a new snapshot after each step; ``on_log`` receives the deployment's log lines.

    Checkpoints are checked using the losses of ``known`` if that is their run and its log has been read
    completely, otherwise using the job's log, which is read while the user answers questions.
    """

    def __init__(
        self,
        session: Session,
        given: Answers,
        *,
        publish: Callable[[DeploySnapshot], object],
        on_log: Callable[[tuple[LogEntry, ...]], object],
        known: RunSnapshot | None = None,
        rules: HealthRules = DEFAULT_RULES,
        patterns: Sequence[ProgressPattern] = (),
    ) -> None:
        self._session = session
        self._given = given
        self._publish = publish
        self._on_log = on_log
        self._known = known
        self._rules = rules
        self._patterns = tuple(patterns)
        self._judging: set[str] = set()
        self._model_name = ""
        self._lines: list[LogLine] = []
        self.snapshot = DeploySnapshot()

    def _change(self, **changes: Any) -> None:
        self.snapshot = replace(self.snapshot, **changes)
        self._publish(self.snapshot)

    @property
    def truss_config(self) -> str:
        result = self.snapshot.result
        return truss_config_yaml(result.truss_config) if result is not None else ""

    @property
    def serves_nothing(self) -> bool:
        """True for a server on this machine: the emulator goes through the states, but serves nothing."""
        return serves_nothing(self._session.remote)

    @property
    def show_again(self) -> str:
        """The command that shows the deployment later; empty if there is none."""
        result = self.snapshot.result
        if result is None or not result.version_id or self.serves_nothing:
            return ""
        return self._session.remote.command_line("deployments", "show", result.version_id)

    def how_to_call(self) -> Calls | None:
        """Return how to call the deployment; None until it serves."""
        result, wizard = self.snapshot.result, self.snapshot.wizard
        if not self.snapshot.is_serving or result is None or wizard is None:
            return None
        return calls(self._session.remote, result, wizard.state.chosen)

    @property
    def _wizard(self) -> WizardProgress:
        if self.snapshot.wizard is None:
            raise RuntimeError("the wizard has not begun")
        return self.snapshot.wizard

    async def begin(self) -> None:
        """Request the server's data, retrying until it arrives, then show the first open question.

        ``error`` is the last failure. Calling it again in the meantime restarts it at once.
        """
        self._change(stage="loading", error="")
        await retrying(
            self._read_facts,
            LASTING,
            sleep=self._session.clock.sleep,
            on_wait=lambda error, _delay_s: self._change(error=str(error)),
        )
        await self._judge()

    async def _read_facts(self) -> None:
        state = initial_wizard_state(self._given, None, self._session.clock.now())
        state = self._with_known(await load(self._session.client, state, self._given))
        self._change(stage="asking", wizard=WizardProgress(state).prefilled(), error="")

    async def answer(self, step_id: str, answer: Answer) -> None:
        """Record the answer to the current step, and continue. Raises ValueError if it is invalid."""
        if step_id == self._wizard.current:
            await self._go(self._wizard.answered(answer).prefilled())

    def back(self) -> bool:
        """Go back to the previous question, preselected ones included; return False if there is none."""
        before = self._wizard.back_to_prefilled()
        if before is self._wizard:
            return False
        self._change(stage="asking", wizard=before, error="", note="")
        return True

    def change(self, step_id: str) -> None:
        """Go back from the review to one question."""
        self._change(stage="asking", wizard=self._wizard.at(step_id), error="", note="")

    def to_review(self) -> None:
        """Go back to the review: from a question opened there, or from the result of a dry run."""
        self._change(stage="asking", wizard=self._wizard.at(REVIEW), error="", note="")

    async def _go(self, wizard: WizardProgress) -> None:
        """Show the current question; first request the checkpoints of a newly selected job."""
        if wizard.state.needs_checkpoints and wizard.state.job is not None:
            before = self._wizard
            self._change(stage="loading", error="", note="")
            try:
                state = self._with_known(await load_checkpoints(self._session.client, wizard.state))
            except RequestError as error:
                # Ask for the job again: the checkpoints of another one may be readable.
                self._change(stage="asking", wizard=before, error=str(error))
                return
            wizard = replace(wizard, state=state).prefilled()
        self._change(stage="asking", wizard=wizard, error="", note="")
        await self._judge()

    def _with_known(self, state: WizardState) -> WizardState:
        facts, run = state.facts, self._known
        if not facts.checkpoints:
            return state
        if run is not None and run.job.id == facts.checkpoints_of and run.faults is not None and run.log_read:
            return replace(state, facts=facts.with_evidence(run))
        return replace(state, facts=replace(facts, unchecked_reason=READING))

    async def _judge(self) -> None:
        state = self._wizard.state
        job = state.job
        if job is None or state.facts.unchecked_reason != READING or job.id in self._judging:
            return
        self._judging.add(job.id)
        try:
            evidence = await evidence_of(
                self._session.client,
                job,
                state.facts.checkpoints,
                rules=self._rules,
                patterns=self._patterns,
            )
        finally:
            self._judging.discard(job.id)
        wizard = self._wizard
        if wizard.state.facts.checkpoints_of == job.id:
            facts = wizard.state.facts.with_evidence(evidence.run, evidence.problem)
            self._change(wizard=replace(wizard, state=replace(wizard.state, facts=facts)))

    def save(self, review: Review, path: Path) -> None:
        """Write the config to a Python file, never overwriting an existing one."""
        try:
            write_file(path, review.forms["python"].encode(), replace=False)
        except FileExistsError:
            self._change(error=f"{path} already exists; not overwritten")
        except OSError as error:
            self._change(error=f"can't write {path}: {why_not_written(error)}")
        else:
            self._change(error="", note=f"saved as {path}")

    async def dry_run(self) -> None:
        """Render the truss config and write it to a file; nothing is created on the server."""
        await self._deploy(dry_run=True)

    async def deploy(self) -> None:
        await self._deploy(dry_run=False)
        result = self.snapshot.result
        if self.snapshot.stage == "following" and result is not None:
            await self._follow(result)

    async def _deploy(self, *, dry_run: bool) -> None:
        if self.snapshot.stage == "working":
            return
        self._change(stage="working", error="", note="")
        session = self._session
        try:
            config = deploy_config(self._wizard.state)
            self._model_name = config.model_name or ""
            sent = await send(session.client, config, dry_run=dry_run, clock=session.clock)
        except (ApiClientError, ValueError) as error:
            self._change(stage="asking", error=str(error))
            return
        failure = sent.not_written
        self._change(
            stage="tried" if dry_run else "following",
            result=sent.result,
            written_to=sent.written_to,
            error=f"can't write the truss config: {why_not_written(failure)}" if failure else "",
        )

    async def _follow(self, result: DeploymentResult, changed_from: str = "") -> None:
        if result.model_id is None or result.version_id is None:
            return
        session = self._session
        ids = result.model_id, result.version_id
        try:
            updates = follow(
                session.client, *ids, clock=session.clock, changed_from=changed_from, known=self._lines
            )
            async for update in updates:
                self._lines += [entry for entry in update.lines if isinstance(entry, LogLine)]
                self._on_log(update.lines)
                self._change(
                    status=update.status,
                    is_serving=update.is_serving,
                    is_over=update.is_finished,
                    deployment=update.deployment.model_copy(update={"model_id": result.model_id}),
                )
            self._change(startups=await read_startups(session.client, *ids))
        except RequestError as error:
            self._change(error=f"Can't follow the deployment any longer: {error}")

    def change_of(self, verb: DeploymentVerb) -> DeploymentChange | None:
        """Return this change of the deployment; None while it makes no sense."""
        deployment = self.snapshot.deployment
        if deployment is None or self.snapshot.changing or self.snapshot.stage != "following":
            return None
        change = DeploymentChange(verb, deployment, self._model_name)
        return None if change.refusal else change

    async def change_deployment(self, verb: DeploymentVerb) -> None:
        """Request a change once, and follow the deployment again, whatever became of it."""
        change, result = self.change_of(verb), self.snapshot.result
        if change is None or result is None:
            return
        self._change(changing=f"{change.doing}…", error="", note="")
        problem = note = changed_from = ""
        try:
            outcome = await change_deployment(self._session.client, change)
        except RequestError as error:
            doubt = "may not have been" if error.may_have_happened else "not"
            problem = f"{doubt} {change.done}: {error}"
        else:
            problem = f"not {change.done}: {outcome.reason}" if outcome.is_refused else ""
            note = "" if problem else outcome.reason or change.done
            changed_from = "" if problem or verb is DeploymentVerb.PROMOTE else change.deployment.status
        self._change(changing="", error=problem, note=note)
        await self._follow(result, changed_from)
