"""``bt-tui deploy_checkpoints``: Deploy checkpoints of a job as a model."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from api_client import ApiClientError, LogLine, RequestError, TrainingClient
from api_client.deployment import DeployAnswers, DeploymentResult, Pairs, calls, follow, serves_nothing
from api_client.files import why_not_written, write_file
from api_client.submission.config_file import load_deploy_checkpoints_config
from tui.analysis.deployments import startup_text
from tui.commands.deploy.deployments import call_examples_text
from tui.commands.jobs.push import finding_text
from tui.commands.support.options import (
    CommandSettings,
    combined,
    examples,
    format_option,
    job_named,
    project_id_of,
    remote_option,
    selected_project,
    yes_option,
)
from tui.commands.support.output import (
    JSON,
    TABLE,
    CommandFailed,
    CommandOutput,
    ExitCode,
    cannot_write_error,
    explain,
    not_in_job_error,
)
from tui.commands.support.run_reading import read_evidence
from tui.commands.support.session import run_on_remote
from tui.commands.support.tables import Cell, render_facts
from tui.commands.support.terminal import can_ask, wrapped
from tui.forms.deployment import (
    ALL_QUESTION_IDS,
    CHANGE,
    DEPLOY,
    DRY_RUN,
    LEAVE,
    REVIEW,
    SAVE,
    DeployForm,
    Review,
    conflict,
    filled_form,
    with_defaults,
)
from tui.forms.question import parse_pair
from tui.readers.deployment import (
    SentDeployment,
    deploy_command,
    read_checkpoints,
    read_facts,
    read_startups,
    send,
)
from tui.system.saved_files import expanded_path
from tui.text.sanitize import sanitize, sanitize_multiline


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """Options that control the deployment; ``project`` is a name or an id, ``project_id`` an id."""

    assume_yes: bool
    dry_run: bool
    wait: bool
    output_dir: Path | None
    project_id: str | None = None
    project: str | None = None


def _parse_pairs(_context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> Pairs:
    """Split ``K=V`` texts into pairs. Raises CommandFailed, without the value, if there is no ``=``."""
    pairs = []
    for number, text in enumerate(texts, start=1):
        pair = parse_pair(text)
        if pair is None:
            raise CommandFailed(f"{parameter.opts[0]} number {number}: expected NAME=value", ExitCode.USAGE)
        pairs.append(pair)
    return tuple(pairs)


given_options = combined(
    "given_answers",
    DeployAnswers,
    click.option("--job-id", metavar="JOB_ID", help="Job that wrote the checkpoints."),
    click.option(
        "--checkpoint",
        "checkpoint_names",
        metavar="NAME",
        multiple=True,
        help="Checkpoint to deploy; repeat for several LoRAs.",
    ),
    click.option("--base-model", metavar="MODEL", help="Base model of the checkpoint."),
    click.option("--lora-rank", metavar="N", help="LoRA rank: 8, 16, 32, 64, 128, 256, 320 or 512."),
    click.option("--model-name", metavar="NAME", help="Name of the deployed model."),
    click.option("--gpu", metavar="TYPE[:N]", help="GPUs to serve on, e.g. H100:2."),
    click.option("--hf-secret", metavar="NAME", help="Secret with the Hugging Face token."),
    click.option(
        "--env",
        "environment",
        metavar="K=V",
        multiple=True,
        callback=_parse_pairs,
        help="Environment variable; repeatable.",
    ),
    click.option(
        "--secret",
        "secrets",
        metavar="K=NAME",
        multiple=True,
        callback=_parse_pairs,
        help="Environment variable from a secret; repeatable.",
    ),
)

deploy_options = combined(
    "cli_options",
    DeployOptions,
    click.option("--project-id", metavar="ID", help="Offer only jobs of this project."),
    click.option("--project", metavar="NAME", help="Same as --project-id, by name or id."),
    click.option("--dry-run", is_flag=True, help="Write the truss config without deploying."),
    click.option("--wait", is_flag=True, help="Follow the deployment until it is active or fails."),
    click.option(
        "--truss-config-output-dir",
        "--config-out-dir",
        "output_dir",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Directory for the truss config.",
    ),
    yes_option,
    format_option(TABLE, JSON),
)


@examples(
    "bt-tui deploy_checkpoints",
    "bt-tui deploy_checkpoints --job-id abc1234",
    "bt-tui deploy_checkpoints --config deploy.py --dry-run",
    "bt-tui deploy --job-id abc1234 --checkpoint checkpoint-400 --model-name x --gpu H100:1 --yes",
)
@click.command("deploy_checkpoints")
@click.option(
    "--config",
    "config_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Python file that defines a DeployCheckpointsConfig; it is executed.",
)
@given_options
@deploy_options
@remote_option
@click.pass_obj
def deploy_checkpoints(
    settings: CommandSettings,
    config_path: Path | None,
    given_answers: DeployAnswers,
    cli_options: DeployOptions,
) -> ExitCode | None:
    """Deploy checkpoints of a training job with a wizard.

    The wizard asks for whatever the options and the config file do not set; options override the file. If
    job, checkpoint, model name and GPU are given, nothing more is asked: the base model and the LoRA rank are
    read from the checkpoint. Without a terminal these four are required, along with --yes or --dry-run.

    Nothing is deployed without a final confirmation. --dry-run never creates anything: it writes the
    truss config that the platform would deploy into truss_configs/.
    """
    config = None if config_path is None else load_deploy_checkpoints_config(config_path)
    problem = conflict(given_answers, config)
    if problem:
        raise CommandFailed(problem, ExitCode.USAGE)
    form = replace(filled_form(given_answers, config, datetime.now(UTC)), always_asked=ALL_QUESTION_IDS)
    if config is not None and not can_ask():
        # a config that names no secret needs no secret
        form = replace(form, given_fields=form.given_fields | {"hf_secret"})
    if not can_ask() and ("job_id" not in form.given_fields or "checkpoint_names" in form.given_fields):
        _require_answers(form, cli_options)  # else later: the job may have no checkpoints
    return run_on_remote(settings, lambda client, output: _deploy(client, output, form, cli_options))


def _require_answers(form: DeployForm, cli_options: DeployOptions) -> None:
    """Raise CommandFailed naming all missing options, because there is no terminal to ask on."""
    has_read_checkpoints = form.facts.checkpoints_job_id is not None
    lines = [
        f"{question.flag}: {question.refusal}"
        for question in form.missing
        if has_read_checkpoints and question.refusal
    ]
    flags = [question.flag for question in form.missing if not (has_read_checkpoints and question.refusal)]
    if not (cli_options.assume_yes or cli_options.dry_run):
        flags.append("--yes (or --dry-run)")
    if flags:
        lines.append(f"no terminal to ask on; give {', '.join(flags)}")
    if lines:
        raise CommandFailed("\n".join(lines), ExitCode.USAGE)


async def _deploy(
    client: TrainingClient, output: CommandOutput, form: DeployForm, cli_options: DeployOptions
) -> ExitCode:
    if cli_options.assume_yes and not cli_options.dry_run:
        client.check_may_change("deploying checkpoints")
    deployer = Deployer(client, output, cli_options)
    project = selected_project(cli_options.project, cli_options.project_id)
    project_id = await project_id_of(client, project)
    if form.answers.job_id is not None:
        job = await job_named(client, form.answers.job_id)
        form = replace(form, answers=replace(form.answers, job_id=job.id))
    facts = await read_facts(client, form, project_id)
    form = replace(form, facts=facts)
    if not can_ask():
        _check_checkpoints(form)
        _require_answers(form, cli_options)
    form = await deployer.with_health(form)
    if can_ask() and form.missing:
        for question in form.questions_before_review:
            if question.id in form.given_fields and question.objection:
                output.print_message(f"{question.flag}: {question.objection}")
    if not form.missing:
        form, notes = with_defaults(form)
        for text in notes:
            output.print_message(text)
        if form.problems and not can_ask():
            problems = (f"{flag}: {problem}" for flag, problem in form.problems.items())
            raise CommandFailed("\n".join(problems), ExitCode.USAGE)
    return await deployer.run(form)


def _check_checkpoints(form: DeployForm) -> None:
    """Raise CommandFailed if an option names a checkpoint that the job does not have."""
    job_id, names = (
        form.facts.checkpoints_job_id,
        [checkpoint.checkpoint_id for checkpoint in form.checkpoints],
    )
    names_in_config = [checkpoint.checkpoint_name for checkpoint in form.config_checkpoints.checkpoints]
    missing = [name for name in form.answers.checkpoint_names if name not in (*names, *names_in_config)]
    if job_id and missing:
        raise not_in_job_error(job_id, "checkpoint", missing[0], names)


class Deployer:
    def __init__(self, client: TrainingClient, output: CommandOutput, cli_options: DeployOptions) -> None:
        self._client = client
        self._output = output
        self._cli_options = cli_options
        self._preset_action = DRY_RUN if cli_options.dry_run else DEPLOY if cli_options.assume_yes else ""
        """Action to run at the first review without asking the user; empty if the user is asked."""
        self._has_results = False
        self._print_note = _print_note if can_ask() else output.print_message

    async def run(self, form: DeployForm) -> ExitCode:
        """Ask the open questions, carry out the chosen actions, and return the exit code.

        Raises CommandFailed (also if the first question has no possible answer) and KeyboardInterrupt;
        without a terminal, also any error of the preset action.
        """
        if not self._preset_action:
            _print_note("enter: next · shift+tab: back · esc: leave; answers are kept")
        outcome: DeployForm | ExitCode = form
        while not isinstance(outcome, ExitCode):
            outcome = await (
                self._read_checkpoints(outcome) if outcome.needs_checkpoints else self._ask(outcome)
            )
        return outcome

    async def _ask(self, form: DeployForm) -> DeployForm | ExitCode:
        question = form.question
        if question.id == REVIEW:
            for finding in form.review.findings:
                self._output.print_message(finding_text(finding))
            action, self._preset_action = self._preset_action, ""
            if action and not question.problem(action):
                return await self.act(form, action)
            if not can_ask():
                raise CommandFailed("not deployed because of the errors above", ExitCode.USAGE)
            click.echo(render_facts(_answer_facts(form.review), paint=lambda text, _tone: text), err=True)
        if question.refusal:
            if not form.can_go_back:
                raise CommandFailed(question.refusal, ExitCode.USAGE)
            _print_note(question.refusal)
            return form.back()
        from tui.commands.support.questions import FormMove, ask  # slow to import; only questions need it

        answer = await ask(question, form.position[0], _print_note)
        if answer is FormMove.LEAVE:
            return self._leave() if await _is_confirmed("Leave without deploying?") else form
        if isinstance(answer, FormMove):
            return form.back()
        return await self.act(form, str(answer)) if question.id == REVIEW else form.answered(answer)

    def _leave(self) -> ExitCode:
        if self._has_results:
            return ExitCode.OK
        self._print_note("nothing was deployed")
        return ExitCode.INTERRUPTED

    async def _read_checkpoints(self, form: DeployForm) -> DeployForm:
        """Fetch the chosen job's checkpoints; go back to the job question if that fails."""
        try:
            jobs = [form.job] if form.job else []
            facts = await read_checkpoints(self._client, form.facts, jobs)
        except RequestError as error:
            if "job_id" in form.given_fields:
                raise
            _print_note(explain(error)[0])
            return replace(form, answers=replace(form.answers, job_id=None), selected_id="job_id")
        return await self.with_health(replace(form, facts=facts))

    async def with_health(self, form: DeployForm) -> DeployForm:
        """Return the form with the chosen job's checkpoints checked by the losses in its log."""
        if form.job is None:
            return form
        evidence = await read_evidence(self._client, form.job, form.checkpoints)
        return replace(form, facts=form.facts.with_evidence(evidence.run, evidence.problem))

    async def act(self, form: DeployForm, action: str) -> DeployForm | ExitCode:
        """Run the chosen action; return the form to continue with, or the exit code.

        On a terminal, errors are shown and the form is returned with all answers.
        """
        if action.startswith(CHANGE):
            return replace(form, selected_id=action.removeprefix(CHANGE))
        if action == LEAVE:
            return self._leave()
        review, options = form.review, self._cli_options
        try:
            if action == DRY_RUN or (options.dry_run and action == DEPLOY):
                code = await self._dry_run(review)
                self._has_results = True
                return code if options.dry_run else form
            if action == DEPLOY:
                if options.assume_yes or await _is_confirmed(_confirmation_question(review)):
                    return await self._deploy(form, review)
            elif action.startswith(SAVE):
                await self._save(review, action.removeprefix(SAVE))
            else:
                for text in review.config_texts.values():
                    click.echo(sanitize_multiline(text) + "\n", err=True)
        except (ApiClientError, CommandFailed, OSError) as error:
            if not can_ask():
                raise
            self._print_note(explain(error)[0] if not isinstance(error, OSError) else str(error))
        return form

    async def _dry_run(self, review: Review) -> ExitCode:
        sent_deployment = await self._send(review, dry_run=True)
        path = sent_deployment.written_to or "none was returned"
        if not self._cli_options.dry_run:
            self._print_note(f"truss config: {path}")  # only a dry run requested by option prints to stdout
        else:
            facts = [*_answer_facts(review), ("truss config", Cell(str(path)))]
            self._output.print_result(
                {"dry_run": True}
                | _deployment_document(review, sent_deployment)
                | {
                    "command": review.config_texts.get("command"),
                    "truss_config": _parsed_json(sent_deployment.result.truss_config),
                },
                render_facts(facts, paint=self._output.paint),
            )
        self._print_note("dry run: nothing was created")
        return ExitCode.OK

    async def _deploy(self, form: DeployForm, review: Review) -> ExitCode:
        self._print_note(f"deploying {review.config.model_name}")
        sent_deployment = await self._send(review, dry_run=False)
        result, remote = sent_deployment.result, self._client.remote
        self._print_note(f"deployment {result.version_id} of model {result.model_id}: {result.link}")
        status, code = await self._follow(result) if self._cli_options.wait else ("", ExitCode.OK)
        call_examples = calls(remote, result, form.chosen_checkpoints)
        document: dict[str, Any] = {
            "dry_run": False,
            "model_id": result.model_id,
            "deployment_id": result.version_id,
            "name": result.name,
            "model_name": review.config.model_name,
            "link": result.link,
            "status": status or None,
        } | _deployment_document(review, sent_deployment)
        if call_examples is not None:
            document |= asdict(call_examples) | {
                "models": [checkpoint.checkpoint_id for checkpoint in form.chosen_checkpoints]
            }
        names = ("model_name", "model_id", "deployment_id", "status", "link", "truss_config_path")
        facts = [(name.replace("_", " "), Cell(str(document[name]))) for name in names if document[name]]
        text = render_facts(facts, paint=self._output.paint) + call_examples_text(self._output, call_examples)
        self._output.print_result(document, text)
        if serves_nothing(remote):
            self._print_note("the emulator serves no models; on Baseten, call it as shown above")
        if result.version_id:
            show = remote.command_line("deployments", "show", result.version_id)
            self._print_note(f"phases, log and changes of the deployment: {show}")
        return code

    async def _follow(self, result: DeploymentResult) -> tuple[str, ExitCode]:
        """Print the status and log to stderr until the deployment serves or fails; return status and code."""
        status, is_serving = "", False
        model_and_version_ids = result.model_id or "", result.version_id or ""
        try:
            async for update in follow(self._client, *model_and_version_ids):
                if update.status != status:
                    status = update.status
                    self._print_note(f"status: {status}")
                for entry in update.lines:
                    for line in entry.message.splitlines() if isinstance(entry, LogLine) else ():
                        self._print_note(f"  {line}")
                is_serving = update.is_serving
            if text := startup_text(await read_startups(self._client, *model_and_version_ids)):
                self._print_note(f"last start: {text}")
        except asyncio.CancelledError:
            self._print_note(f"the deployment continues: {result.link}")
            raise
        return status, ExitCode.OK if is_serving else ExitCode.DEPLOY_FAILED

    async def _send(self, review: Review, *, dry_run: bool) -> SentDeployment:
        """Send the config to the server, which creates the deployment unless it is a dry run.

        If the truss config can't be written, a dry run raises CommandFailed, and a deployment prints the
        error.
        """
        sent_deployment = await send(
            self._client, review.config, dry_run=dry_run, directory=self._cli_options.output_dir
        )
        if sent_deployment.write_error is not None:
            failure = cannot_write_error("the truss config", sent_deployment.write_error)
            if dry_run:
                raise failure from sent_deployment.write_error
            self._print_note(str(failure))
        return sent_deployment

    async def _save(self, review: Review, format_name: str) -> None:
        from tui.commands.support.questions import ask_text

        is_python = format_name == "python"
        typed = await ask_text("Save as", "deploy.py" if is_python else f"{format_name}/config.yaml")
        path = expanded_path(typed)
        if not typed:
            return
        try:
            if path.exists() and not await _is_confirmed(f"{path} already exists. Overwrite it?"):
                return
            if not is_python:  # a Truss config needs its own folder
                path.parent.mkdir(exist_ok=True)
            write_file(path, review.config_texts[format_name].encode())
        except OSError as error:
            self._print_note(f"can't write {path}: {why_not_written(error)}")
            return
        self._has_results = True
        command = deploy_command(self._client.remote, format_name, path)
        self._print_note(f"saved {path}; deploy it with: {command}")


def _print_note(text: str) -> None:
    """Print a dimmed note to stderr, between questions."""
    click.secho(wrapped(text, indent="  "), err=True, dim=not os.environ.get("NO_COLOR"))


def _answer_facts(review: Review) -> list[tuple[str, Cell]]:
    return [(title.lower(), Cell(text)) for title, text in review.answers.items()]


async def _is_confirmed(question: str) -> bool:
    from tui.commands.support.questions import ask_yes_no

    return await ask_yes_no(question)


def _confirmation_question(review: Review) -> str:
    """Return the question to confirm before deploying; it names the model, its checkpoints and its GPUs."""
    checkpoints = review.answers.get("Checkpoints")
    checkpoints_text = f" ({checkpoints})" if checkpoints else ""
    warning_count = sum(finding.severity == "warning" for finding in review.findings)
    warning_text = (
        f" despite the {'warning' if warning_count == 1 else 'warnings'} above" if warning_count else ""
    )
    return sanitize(
        f"Deploy {review.config.model_name}{checkpoints_text} on {review.answers['GPU']}{warning_text}?"
    )


def _deployment_document(review: Review, sent_deployment: SentDeployment) -> dict[str, Any]:
    return {
        "config": review.config.model_dump(mode="json"),
        "findings": [asdict(finding) for finding in review.findings],
        "truss_config_path": str(sent_deployment.written_to) if sent_deployment.written_to else None,
    }


def _parsed_json(truss_config: str) -> Any:
    try:
        return json.loads(truss_config) if truss_config else None
    except ValueError:
        return truss_config
