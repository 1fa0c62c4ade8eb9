"""The deploy wizard at a terminal: asks, and does what was chosen in the review."""

from __future__ import annotations

import asyncio
import os
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from api_client.files import why_not_written, write_file
from tui.commands.deploy_options import DeployWishes
from tui.commands.deploy_report import (
    deployed_document,
    dry_run_document,
    print_deployed,
    print_dry_run,
    remark_findings,
)
from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed, explain
from tui.commands.options import JSON
from tui.commands.output import Output, cannot_write
from tui.commands.tables import Cell, render_facts
from tui.insight.text import inert

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.deployment import DeploymentResult
    from api_client.models import TrainingJob
    from tui.wizard.review import Review
    from tui.wizard.state import Facts, WizardState
    from tui.wizard.walk import Walk

DEFAULT_FILE = "deploy.py"


class DeployDesk:
    """Carries out a deployment, for somebody at a terminal or for a script."""

    def __init__(self, client: TrainingClient, output: Output, wishes: DeployWishes) -> None:
        self._client = client
        self._output = output
        self._wishes = wishes
        self._done_something = False
        self._code = ExitCode.OK
        self._is_asking = False

    async def ask(self, walk: Walk) -> ExitCode:
        """Walk through the steps that are open; the code to exit with. Raises CommandFailed."""
        from tui.wizard.review import DEPLOY, DRY_RUN
        from tui.wizard.terminal import NoAnswerPossible, walk_at_terminal

        self._is_asking = True
        decided = DRY_RUN if self._wishes.dry_run else DEPLOY if self._wishes.assume_yes else None
        try:
            if await walk_at_terminal(walk, self, decided=decided):
                return self._code
        except NoAnswerPossible as error:
            raise CommandFailed(str(error), ExitCode.USAGE) from error
        return self._left()

    async def finish(self, state: WizardState) -> ExitCode:
        """Deploy, or rehearse it, without asking anything. Raises CommandFailed for a config with errors."""
        review = _review(state)
        remark_findings(self._output, review.findings)
        if review.errors:
            raise CommandFailed("nothing was deployed, for what is wrong with it", ExitCode.USAGE)
        if self._wishes.dry_run:
            return await self._rehearse(review)
        return await self._deploy(state, review)

    def say(self, text: str) -> None:
        """A line on stderr: quiet between questions, a remark like any other without them."""
        if self._is_asking:
            click.secho(f"  {inert(text)}", err=True, dim=not os.environ.get("NO_COLOR"))
        else:
            self._output.remark(text)

    def present(self, walk: Walk) -> None:
        """The answers and what is to be said of them, on stderr."""
        review = _review(walk.state)
        facts = [(title.lower(), Cell(text)) for _step, title, text in review.lines]
        click.echo(render_facts(facts, paint=lambda text, _tone: text), err=True)
        remark_findings(self._output, review.findings)

    def _left(self) -> ExitCode:
        if self._done_something:
            return ExitCode.OK
        self.say("nothing was deployed")
        return ExitCode.INTERRUPTED

    async def load(self, walk: Walk) -> Walk:
        """The chosen job's checkpoints; back to the choice of the job where they cannot be had."""
        from api_client.errors import RequestError
        from tui.feeds.deploy_facts import checkpoint_facts
        from tui.wizard.state import JOB

        state = walk.state
        try:
            facts = await checkpoint_facts(self._client, state.facts, [state.job] if state.job else [])
            if state.job is not None:
                facts = await judged_facts(self._client, facts, state.job)
        except RequestError as error:
            if JOB in state.given:
                raise
            self.say(explain(error)[0])
            answers = replace(state.answers, job_id=None)
            return replace(walk, state=replace(state, answers=answers)).at(JOB)
        return replace(walk, state=replace(state, facts=facts)).started()

    async def act(self, walk: Walk, action: str) -> Walk | None:
        """Do what was chosen; where to go on, None for the end. What fails is told, and nothing is lost."""
        from api_client.errors import ApiClientError
        from tui.wizard.review import CHANGE, DEPLOY, DRY_RUN, LEAVE, SAVE
        from tui.wizard.terminal import confirmed

        if action.startswith(CHANGE):
            return walk.at(action.removeprefix(CHANGE))
        if action == LEAVE:
            self._code = self._left()
            return None
        review = _review(walk.state)
        try:
            if action == DRY_RUN or (self._wishes.dry_run and action == DEPLOY):
                await self._rehearse(review)
                self._done_something = True
                return None if self._wishes.dry_run else walk
            if action == DEPLOY:
                if self._wishes.assume_yes or await confirmed(_last_question(review)):
                    self._code = await self._deploy(walk.state, review)
                    return None
            elif action == SAVE:
                await self._save(review)
            else:
                self._show(review)
        except (ApiClientError, CommandFailed, OSError) as error:
            self.say(explain(error)[0] if not isinstance(error, OSError) else str(error))
        return walk

    async def _rehearse(self, review: Review) -> ExitCode:
        from api_client.deployment import deploy

        result = await deploy(self._client, review.config, dry_run=True)
        path = self._write_truss_config(result)
        if not self._wishes.dry_run:
            self.say(f"the truss config: {path or 'none was returned'}")  # stdout is for what was asked for
        elif self._wishes.output_format == JSON:
            self._output.json(dry_run_document(review, result, path))
        else:
            print_dry_run(self._output, review, path)
        self.say("a dry run: nothing was created")
        return ExitCode.OK

    async def _deploy(self, state: WizardState, review: Review) -> ExitCode:
        from api_client.deployment import deploy, serves_nothing

        self.say(f"deploying {review.config.model_name}")
        result = await deploy(self._client, review.config)
        path = self._write_truss_config(result)
        self.say(f"deployment {result.version_id} of model {result.model_id}: {result.link}")
        status = ""
        code = ExitCode.OK
        if self._wishes.wait:
            status, code = await self._follow(result)
        document = deployed_document(self._client.remote, state, review, result, path, status)
        if self._wishes.output_format == JSON:
            self._output.json(document)
        else:
            print_deployed(self._output, document)
        if serves_nothing(self._client.remote):
            self.say("this emulator serves no model: on Baseten, the call would be like this")
        return code

    async def _follow(self, result: DeploymentResult) -> tuple[str, ExitCode]:
        """Its statuses and its log on stderr until it serves or has failed; the last status."""
        from api_client.deployment import follow
        from api_client.streams.records import LogLine

        status, code = "", ExitCode.DEPLOY_FAILED
        try:
            async for update in follow(self._client, result.model_id or "", result.version_id or ""):
                if update.status != status:
                    status = update.status
                    self.say(f"status: {status}")
                for entry in update.lines:
                    if isinstance(entry, LogLine):
                        for line in entry.message.splitlines():
                            self.say(f"  {line}")
                if update.is_finished and update.is_serving:
                    code = ExitCode.OK
        except asyncio.CancelledError:
            self.say(f"the deployment goes on: {result.link}")
            raise
        return status, code

    def _write_truss_config(self, result: DeploymentResult) -> Path | None:
        """Write it where the official CLI does; that it cannot be written does not undo a deployment."""
        from api_client.deployment import write_truss_config

        local_now = datetime.now(UTC).astimezone()
        try:
            return write_truss_config(result, self._wishes.output_dir, local_now)
        except OSError as error:
            if result.version_id is None:
                raise cannot_write("the truss config", error) from error
            self.say(str(cannot_write("the truss config", error)))
            return None

    async def _save(self, review: Review) -> None:
        from tui.wizard.terminal import asked_text, confirmed

        typed = await asked_text("Save as", DEFAULT_FILE)
        if not typed:
            return
        path = _path_of(typed)
        if _is_there(path) and not await confirmed(f"{path} is there already. Overwrite it?"):
            return
        try:
            write_file(path, review.python.encode())
        except OSError as error:
            self.say(f"can't write {path}: {why_not_written(error)}")
            return
        self._done_something = True
        self.say(f"saved {path}; bt-tui deploy_checkpoints --config {shlex.quote(str(path))} deploys it")

    def _show(self, review: Review) -> None:
        """All three forms, on stderr: stdout is for what was done."""
        for text in (review.python, review.json_text, review.command):
            click.echo("".join(f"{inert(line)}\n" for line in text.splitlines()), err=True)


def _review(state: WizardState) -> Review:
    from tui.wizard.review import review
    from tui.wizard.steps import questions

    return review(state, questions(state))


def _path_of(typed: str) -> Path:
    return Path(os.path.expanduser(typed))  # noqa: PTH111 - the other raises for ~nobody, this leaves it


def _is_there(path: Path) -> bool:
    return path.exists()


def _last_question(review: Review) -> str:
    """Names what is about to cost money."""
    from tui.wizard.state import CHECKPOINTS, GPU

    words = {step: text for step, _title, text in review.lines}
    what = f" ({words[CHECKPOINTS]})" if CHECKPOINTS in words else ""
    warned = sum(found.severity == "warning" for found in review.findings)
    despite = f" despite the {'warning' if warned == 1 else 'warnings'} above" if warned else ""
    return inert(f"Deploy {review.config.model_name}{what} on {words[GPU]}{despite}?")


async def judged_facts(client: TrainingClient, facts: Facts, job: TrainingJob) -> Facts:
    """The facts with the job's checkpoints judged by its log, which is read for that."""
    from tui.commands.run_options import read_evidence

    evidence = await read_evidence(client, job, facts.checkpoints)
    return facts.with_evidence(evidence.run, evidence.problem)
