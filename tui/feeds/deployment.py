"""The deploy form's feed: the server's data, the user's answers, and the deployment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from api_client.deployment import (
    Calls,
    DeployAnswers,
    DeploymentUpdate,
    calls,
    follow,
    serves_nothing,
)
from api_client.errors import ApiClientError, RequestError
from api_client.files import why_not_written, write_file
from api_client.http.retry import LASTING, retrying
from api_client.models import Startup
from api_client.models.logs import LogEntry, LogLine
from tui.analysis.deployments import PROMOTE, DeploymentChange, DeploymentVerb
from tui.analysis.run.snapshot import RunSnapshot
from tui.feeds.throttle import SnapshotFeed
from tui.forms.deployment import DeployForm, filled_form
from tui.forms.draft import Facts
from tui.forms.question import Answer
from tui.readers.deployment import (
    SentDeployment,
    change_deployment,
    deploy_command,
    read_checkpoints,
    read_facts,
    read_startups,
    send,
)
from tui.readers.session import Session
from tui.readers.watcher import read_checked_run
from tui.settings.runs import DEFAULT, RunSettings

READING_LOG = "the log is still being read"
"""The reason why checkpoints are unchecked while the job's log is read."""
EMPTY_FORM = DeployForm(Facts(datetime.min.replace(tzinfo=UTC)))
"""The form before the server's data has arrived."""
Stage = Literal["loading", "asking", "working", "tried", "following"]
"""The stage of the deploy form: ``tried`` after a dry run, ``following`` after a deployment."""


@dataclass(frozen=True, slots=True)
class DeploySnapshot:
    """The state of the form, and of the deployment once there is one."""

    stage: Stage = "loading"
    form: DeployForm = EMPTY_FORM
    error: str = ""
    """Why the last step failed; all answers are kept."""
    note: str = ""
    """The result of another action, such as where the config was saved."""
    sent: SentDeployment | None = None
    """The response to the last deployment or dry run."""
    update: DeploymentUpdate | None = None
    """The deployment as it is now; None for a dry run."""
    lines: tuple[LogEntry, ...] = ()
    """The deployment's log so far."""
    startups: tuple[Startup, ...] = ()
    """The starts of the deployment's replicas."""
    pending: str = ""
    """Text about the change that is being requested, such as "promoting…"."""
    show_command: str = ""
    """The command that shows the deployment later; empty if there is none."""
    calls: Calls | None = None
    """How to call the deployment; None until it serves."""
    serves_nothing: bool = False
    """True for a server on this machine: the emulator goes through the states, but serves nothing."""


class DeployFeed(SnapshotFeed[DeploySnapshot]):
    """Publishes a new snapshot after each step.

    Checkpoints are checked against the losses of ``known_run`` if this is the selected job's run and its
    log has been read completely; otherwise against the job's log, which is read while the user answers
    questions.
    """

    def __init__(
        self,
        session: Session,
        options: DeployAnswers,
        *,
        publish: Callable[[DeploySnapshot], object],
        known_run: RunSnapshot | None = None,
        settings: RunSettings = DEFAULT,
    ) -> None:
        super().__init__(session, DeploySnapshot(), publish)
        self._options = options
        self._known_run = known_run
        self._settings = settings
        self._checking_job_ids: set[str] = set()

    @property
    def form(self) -> DeployForm:
        return self.snapshot.form

    async def begin(self) -> None:
        """Request the server's data, retrying until it arrives, then show the first open question.

        Failures are shown as ``error``.
        """
        form = filled_form(self._options, None, self._session.clock.now())
        self._change(stage="loading", error="")
        facts = await retrying(
            lambda: read_facts(self._session.client, form),
            LASTING,
            sleep=self._session.clock.sleep,
            on_wait=lambda error, _delay_s: self._change(error=str(error)),
        )
        self.show(replace(form, facts=self._with_known_evidence(facts)))
        await self._check_checkpoints()

    def show(self, form: DeployForm) -> None:
        """Publish another state of the form, such as another question."""
        self._change(stage="asking", form=form, error="", note="")

    async def answer(self, question_id: str, answer: Answer) -> None:
        """Record the answer to the current question, and continue. Raises ValueError if it is invalid.

        First requests the checkpoints of a newly selected job.
        """
        previous_form = self.form
        if question_id != previous_form.current:
            return
        form = previous_form.answered(answer)
        if form.needs_checkpoints and form.job is not None:
            self._change(stage="loading", error="", note="")
            try:
                facts = await read_checkpoints(self._session.client, form.facts, [form.job])
            except RequestError as error:
                # Ask for the job again: the checkpoints of another job may be readable.
                self._change(stage="asking", form=previous_form, error=str(error))
                return
            form = replace(form, facts=self._with_known_evidence(facts))
        self.show(form)
        await self._check_checkpoints()

    def _with_known_evidence(self, facts: Facts) -> Facts:
        """Add the known run's losses to ``facts``, or else the reason why checkpoints are unchecked."""
        run = self._known_run
        if not facts.checkpoints:
            return facts
        if (
            run is not None
            and run.job.id == facts.checkpoints_job_id
            and run.faults is not None
            and run.log_read
        ):
            return facts.with_evidence(run)
        return replace(facts, unchecked_reason=READING_LOG)

    async def _check_checkpoints(self) -> None:
        job, facts = self.form.job, self.form.facts
        if job is None or facts.unchecked_reason != READING_LOG or job.id in self._checking_job_ids:
            return
        self._checking_job_ids.add(job.id)
        try:
            evidence = await read_checked_run(self._session.client, job, facts.checkpoints, self._settings)
        finally:
            self._checking_job_ids.discard(job.id)
        form = self.form
        if form.facts.checkpoints_job_id == job.id:
            facts = form.facts.with_evidence(evidence.run, evidence.problem)
            always_asked = form.always_asked | {form.current}  # keep asking what the user is answering now
            self._change(form=replace(form, facts=facts, always_asked=always_asked))

    def save(self, format_name: str, path: Path) -> None:
        """Write the config to ``path`` in a format of ``form.review.forms``; never overwrite a file."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, self.form.review.config_texts[format_name].encode(), replace=False)
        except FileExistsError:
            self._change(error=f"{path} already exists; not overwritten")
        except OSError as error:
            self._change(error=f"can't write {path}: {why_not_written(error)}")
        else:
            command = deploy_command(self._session.remote, format_name, path)
            self._change(error="", note=f"saved as {path}; deploy it with: {command}")

    async def deploy(self, *, dry_run: bool) -> None:
        """Deploy, and follow the deployment; with ``dry_run``, only render and write the truss config."""
        if self.snapshot.stage == "working":
            return
        self._change(stage="working", error="", note="")
        session = self._session
        try:
            sent = await send(session.client, self.form.review.config, dry_run=dry_run)
        except ApiClientError as error:
            self._change(stage="asking", error=str(error))
            return
        await self.follow(sent, dry_run=dry_run)

    async def follow(self, sent: SentDeployment, *, dry_run: bool = False) -> None:
        """Show the response to a deployment request; unless it was a dry run, follow the deployment."""
        write_error, remote = sent.write_error, self._session.remote
        is_local = serves_nothing(remote)
        show_command = remote.command_line("deployments", "show", sent.result.version_id or "")
        self._change(
            stage="tried" if dry_run else "following",
            sent=sent,
            error=f"can't write the truss config: {why_not_written(write_error)}" if write_error else "",
            show_command="" if is_local else show_command,
            serves_nothing=is_local,
        )
        if not dry_run:
            await self._follow(sent)

    async def _follow(self, sent: SentDeployment, changed_from: str = "") -> None:
        """Publish the deployment's state and log until it serves or has failed, then the replica starts.

        ``changed_from`` is the status before a change that the server has just accepted.
        """
        client, result = self._session.client, sent.result
        ids = result.model_id or "", result.version_id or ""
        try:
            shown_lines = [entry for entry in self.snapshot.lines if isinstance(entry, LogLine)]
            async for update in follow(client, *ids, changed_from=changed_from, known=shown_lines):
                how_to_call = (
                    calls(client.remote, result, self.form.chosen_checkpoints) if update.is_serving else None
                )
                self._change(update=update, calls=how_to_call, lines=self.snapshot.lines + update.lines)
            self._change(startups=await read_startups(client, *ids))
        except RequestError as error:
            self._change(error=f"Can't follow the deployment any longer: {error}")

    def change_of(self, verb: DeploymentVerb) -> DeploymentChange | None:
        """Return the change that ``verb`` means for the deployment; None while it is impossible."""
        if self.snapshot.update is None or self.snapshot.pending:
            return None
        change = DeploymentChange(verb, self.snapshot.update.deployment, self.form.model_name)
        return None if change.refusal else change

    async def change_deployment(self, verb: DeploymentVerb) -> None:
        """Request a change, without retries, and follow the deployment again, even if the request failed."""
        change, sent = self.change_of(verb), self.snapshot.sent
        if change is None or sent is None:
            return
        self._change(pending=f"{verb.doing}…", error="", note="")
        problem = note = changed_from = ""
        try:
            outcome = await change_deployment(self._session.client, change)
        except RequestError as error:
            negation = "may not have been" if error.may_have_happened else "not"
            problem = f"{negation} {verb.done}: {error}"
        else:
            problem = f"not {verb.done}: {outcome.reason}" if outcome.is_refused else ""
            note = "" if problem else outcome.reason or verb.done
            changed_from = "" if problem or verb is PROMOTE else change.deployment.status
        self._change(pending="", error=problem, note=note)
        await self._follow(sent, changed_from)
