"""The wizard of ``bt-tui deploy_checkpoints`` at a terminal, and the command's output."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from api_client.client import TrainingClient
from api_client.deployment import DeploymentResult, calls, follow, serves_nothing
from api_client.errors import ApiClientError, RequestError
from api_client.files import why_not_written, write_file
from api_client.models.logs import LogLine
from api_client.remotes import Remote
from api_client.submission.findings import Finding
from tui.analysis.deployments import startup_text
from tui.commands.deploy.options import DeployOptions
from tui.commands.jobs.push import finding_text
from tui.commands.support.exit_codes import CommandFailed, ExitCode, explain
from tui.commands.support.options import JSON
from tui.commands.support.output import Output, cannot_write
from tui.commands.support.questions import WizardMove, ask, ask_text, ask_yes_no
from tui.commands.support.run_options import read_evidence
from tui.commands.support.tables import Cell, render_facts
from tui.readers.deployment import SentDeployment, load_checkpoints, send
from tui.readers.deployments import read_startups
from tui.system.saved_files import own_path
from tui.text.sanitize import sanitize
from tui.wizard.progress import WizardProgress, questions
from tui.wizard.review import CHANGE, DEPLOY, DRY_RUN, LEAVE, SAVE, Review, review
from tui.wizard.state import CHECKPOINTS, GPU, JOB, WizardState
from tui.wizard.step import Answer


def print_findings(output: Output, findings: Sequence[Finding]) -> None:
    for finding in findings:
        output.remark(finding_text(finding))


def dry_run_document(review: Review, sent: SentDeployment) -> dict[str, Any]:
    return {
        "dry_run": True,
        "config": review.config.model_dump(mode="json"),
        "findings": [asdict(finding) for finding in review.findings],
        "command": review.forms["command"],
        "truss_config": _parsed(sent.result.truss_config),
        "truss_config_path": str(sent.written_to) if sent.written_to else None,
    }


def print_dry_run(output: Output, review: Review, path: Path | None) -> None:
    facts = [(title.lower(), Cell(text)) for _step, title, text in review.lines]
    facts.append(("truss config", Cell(str(path) if path else "none was returned")))
    output.data(render_facts(facts, paint=output.paint))


def deployed_document(
    remote: Remote,
    state: WizardState,
    review: Review,
    sent: SentDeployment,
    status: str,
) -> dict[str, Any]:
    """Return the deployment and how to call it as data; ``status`` is empty if it was not followed."""
    result = sent.result
    document: dict[str, Any] = {
        "dry_run": False,
        "model_id": result.model_id,
        "deployment_id": result.version_id,
        "name": result.name,
        "model_name": review.config.model_name,
        "link": result.link,
        "status": status or None,
        "config": review.config.model_dump(mode="json"),
        "findings": [asdict(finding) for finding in review.findings],
        "truss_config_path": str(sent.written_to) if sent.written_to else None,
    }
    return document | _calls(remote, state, result)


def print_deployed(output: Output, document: Mapping[str, Any]) -> None:
    names = ("model_name", "model_id", "deployment_id", "status", "link", "truss_config_path")
    facts = [(name.replace("_", " "), Cell(str(document[name]))) for name in names if document[name]]
    output.data(render_facts(facts, paint=output.paint))
    for name in ("curl", "python"):
        if name in document:
            lines = "".join(f"{sanitize(line)}\n" for line in document[name].splitlines())
            output.data(f"\n{output.paint(f'how to call it: {name}', 'muted')}\n{lines}")


def _calls(remote: Remote, state: WizardState, result: DeploymentResult) -> dict[str, Any]:
    found = calls(remote, result, state.chosen)
    if found is None:
        return {}
    models = [each.checkpoint_id for each in state.chosen]
    return {"url": found.url, "models": models, "curl": found.curl, "python": found.python}


def _parsed(truss_config: str) -> Any:
    try:
        return json.loads(truss_config) if truss_config else None
    except ValueError:
        return truss_config


KEYS_HELP = "enter: next · shift+tab: back · esc: leave; answers are kept"
DEFAULT_FILE = "deploy.py"


class TerminalDeployer:
    def __init__(self, client: TrainingClient, output: Output, cli_options: DeployOptions) -> None:
        self._client = client
        self._output = output
        self._cli_options = cli_options
        self._done_something = False
        self._code = ExitCode.OK
        self._is_asking = False

    async def ask(self, wizard: WizardProgress) -> ExitCode:
        """Ask the open questions and return the exit code. Raises CommandFailed, and KeyboardInterrupt."""
        self._is_asking = True
        # At the review, the action that the options decide is run without asking, if it is possible.
        decided = DRY_RUN if self._cli_options.dry_run else DEPLOY if self._cli_options.assume_yes else None
        if decided is None:
            self.remark(KEYS_HELP)
        while True:
            if wizard.state.needs_checkpoints:
                wizard = await self._load(wizard)
                continue
            step = wizard.step
            if step.refusal:
                wizard = self._refused(wizard)
                continue
            if step.kind == "review":
                self._present(wizard)
            answer: Answer | WizardMove
            if step.kind == "review" and decided is not None and not step.problem(decided):
                answer, decided = decided, None
            else:
                answer = await ask(step, wizard.place, self.remark)
            if answer is WizardMove.LEAVE:
                if await ask_yes_no("Leave without deploying?"):
                    return self._left()
            elif answer is WizardMove.BACK:
                wizard = wizard.back()
            elif step.kind == "review":
                continued = await self.act(wizard, str(answer))
                if continued is None:
                    return self._code
                wizard = continued
            elif not isinstance(answer, WizardMove):
                wizard = wizard.answered(answer)

    def _refused(self, wizard: WizardProgress) -> WizardProgress:
        """Go back from a question that has no answer. Raises CommandFailed if it is the first."""
        if not wizard.can_go_back:
            raise CommandFailed(wizard.step.refusal, ExitCode.USAGE)
        self.remark(wizard.step.refusal)
        return wizard.back()

    async def finish(self, state: WizardState) -> ExitCode:
        """Deploy, or do a dry run, without asking. Raises CommandFailed for a config with errors."""
        review = _review(state)
        print_findings(self._output, review.findings)
        if review.errors:
            raise CommandFailed("not deployed because of the errors above", ExitCode.USAGE)
        if self._cli_options.dry_run:
            await self._run_dry_run(review)
            return ExitCode.OK
        return await self._deploy(state, review)

    def remark(self, text: str) -> None:
        """Print a line to stderr: dimmed between questions, as a plain remark otherwise."""
        if self._is_asking:
            click.secho(f"  {sanitize(text)}", err=True, dim=not os.environ.get("NO_COLOR"))
        else:
            self._output.remark(text)

    def _present(self, wizard: WizardProgress) -> None:
        review = _review(wizard.state)
        facts = [(title.lower(), Cell(text)) for _step, title, text in review.lines]
        click.echo(render_facts(facts, paint=lambda text, _tone: text), err=True)
        print_findings(self._output, review.findings)

    def _left(self) -> ExitCode:
        if self._done_something:
            return ExitCode.OK
        self.remark("nothing was deployed")
        return ExitCode.INTERRUPTED

    async def _load(self, wizard: WizardProgress) -> WizardProgress:
        """Fetch the chosen job's checkpoints; go back to the job question if that fails."""
        try:
            state = await with_health(self._client, await load_checkpoints(self._client, wizard.state))
        except RequestError as error:
            if JOB in wizard.state.given:
                raise
            self.remark(explain(error)[0])
            answers = replace(wizard.state.answers, job_id=None)
            return replace(wizard, state=replace(wizard.state, answers=answers)).at(JOB)
        return replace(wizard, state=state).started()

    async def act(self, wizard: WizardProgress, action: str) -> WizardProgress | None:
        """Run the chosen action; return where to continue, or None to end.

        Errors are shown and no answer is lost.
        """
        if action.startswith(CHANGE):
            return wizard.at(action.removeprefix(CHANGE))
        if action == LEAVE:
            self._code = self._left()
            return None
        review = _review(wizard.state)
        try:
            if action == DRY_RUN or (self._cli_options.dry_run and action == DEPLOY):
                await self._run_dry_run(review)
                self._done_something = True
                return None if self._cli_options.dry_run else wizard
            if action == DEPLOY:
                if self._cli_options.assume_yes or await ask_yes_no(_last_question(review)):
                    self._code = await self._deploy(wizard.state, review)
                    return None
            elif action == SAVE:
                await self._save(review)
            else:
                self._show(review)
        except (ApiClientError, CommandFailed, OSError) as error:
            self.remark(explain(error)[0] if not isinstance(error, OSError) else str(error))
        return wizard

    async def _run_dry_run(self, review: Review) -> None:
        sent = await self._send(review, dry_run=True)
        path = sent.written_to
        if not self._cli_options.dry_run:
            self.remark(f"truss config: {path or 'none was returned'}")  # stdout is for the requested output
        elif self._cli_options.output_format == JSON:
            self._output.json(dry_run_document(review, sent))
        else:
            print_dry_run(self._output, review, path)
        self.remark("dry run: nothing was created")

    async def _deploy(self, state: WizardState, review: Review) -> ExitCode:
        self.remark(f"deploying {review.config.model_name}")
        sent = await self._send(review, dry_run=False)
        result = sent.result
        self.remark(f"deployment {result.version_id} of model {result.model_id}: {result.link}")
        status = ""
        code = ExitCode.OK
        if self._cli_options.wait:
            status, code = await self._follow(result)
        document = deployed_document(self._client.remote, state, review, sent, status)
        if self._cli_options.output_format == JSON:
            self._output.json(document)
        else:
            print_deployed(self._output, document)
        if serves_nothing(self._client.remote):
            self.remark("on Baseten you would call it like this")
        if result.version_id:
            show = self._client.remote.command_line("deployments", "show", result.version_id)
            self.remark(f"its phases, log and changes: {show}")
        return code

    async def _follow(self, result: DeploymentResult) -> tuple[str, ExitCode]:
        """Print status and log to stderr until it serves or fails; return the last status and code."""
        status, code = "", ExitCode.DEPLOY_FAILED
        try:
            async for update in follow(self._client, result.model_id or "", result.version_id or ""):
                if update.status != status:
                    status = update.status
                    self.remark(f"status: {status}")
                for entry in update.lines:
                    if isinstance(entry, LogLine):
                        for line in entry.message.splitlines():
                            self.remark(f"  {line}")
                if update.is_finished and update.is_serving:
                    code = ExitCode.OK
            startups = await read_startups(self._client, result.model_id or "", result.version_id or "")
            if text := startup_text(startups):
                self.remark(f"last start: {text}")
        except asyncio.CancelledError:
            self.remark(f"the deployment continues: {result.link}")
            raise
        return status, code

    async def _send(self, review: Review, *, dry_run: bool) -> SentDeployment:
        """Send the config; after a deployment an error of writing the truss config is only reported."""
        sent = await send(
            self._client, review.config, dry_run=dry_run, directory=self._cli_options.output_dir
        )
        if sent.not_written is not None:
            failure = cannot_write("the truss config", sent.not_written)
            if dry_run:
                raise failure from sent.not_written
            self.remark(str(failure))
        return sent

    async def _save(self, review: Review) -> None:
        typed = await ask_text("Save as", DEFAULT_FILE)
        if not typed:
            return
        path = own_path(typed)
        if path.exists() and not await ask_yes_no(f"{path} already exists. Overwrite it?"):
            return
        try:
            write_file(path, review.forms["python"].encode())
        except OSError as error:
            self.remark(f"can't write {path}: {why_not_written(error)}")
            return
        self._done_something = True
        deploy = ("deploy_checkpoints", "--config", str(path))
        self.remark(
            f"saved {path}; deploy it with: {self._client.remote.command_line(*deploy, changes=True)}"
        )

    def _show(self, review: Review) -> None:
        for text in review.forms.values():
            click.echo("".join(f"{sanitize(line)}\n" for line in text.splitlines()), err=True)


def _review(state: WizardState) -> Review:
    return review(state, questions(state))


def _last_question(review: Review) -> str:
    """Return the final question, which names the model and GPUs that will cost money."""
    words = {step: text for step, _title, text in review.lines}
    what = f" ({words[CHECKPOINTS]})" if CHECKPOINTS in words else ""
    warned = sum(found.severity == "warning" for found in review.findings)
    despite = f" despite the {'warning' if warned == 1 else 'warnings'} above" if warned else ""
    return sanitize(f"Deploy {review.config.model_name}{what} on {words[GPU]}{despite}?")


async def with_health(client: TrainingClient, state: WizardState) -> WizardState:
    """Check the checkpoints of the only or the chosen job by the losses in its log."""
    facts = state.facts
    if facts.checkpoints_of is None or state.job is None:
        return state
    evidence = await read_evidence(client, state.job, facts.checkpoints)
    return replace(state, facts=facts.with_evidence(evidence.run, evidence.problem))
