"""``bt-tui deploy_checkpoints``: Deploy checkpoints of a job as a model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from api_client.client import TrainingClient
from api_client.submission.config_file import load_deploy_checkpoints_config
from tui.commands.deploy.options import DeployOptions, deploy_options, given_options
from tui.commands.deploy.terminal import TerminalDeployer, with_health
from tui.commands.support.exit_codes import CommandFailed, ExitCode, not_in_job
from tui.commands.support.lookups import project_id_of
from tui.commands.support.options import CommandSettings, examples, remote_option, selected_project
from tui.commands.support.output import Output
from tui.commands.support.session import run_on_remote
from tui.commands.support.terminal import can_ask
from tui.readers.deployment import load
from tui.wizard.given import (
    MissingAnswer,
    conflict,
    initial_wizard_state,
    resolve_defaults,
    unanswered_questions,
)
from tui.wizard.progress import WizardProgress
from tui.wizard.state import CHECKPOINTS, JOB, Answers, WizardState


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
    settings: CommandSettings, config_path: Path | None, given: Answers, cli_options: DeployOptions
) -> ExitCode | None:
    """Deploy checkpoints of a training job with a wizard.

    The wizard asks for whatever the options and the config file do not set; options override the file. If
    job, checkpoint, model name and GPU are given, nothing more is asked: the base model and the LoRA rank are
    read from the checkpoint. Without a terminal these four are required, along with --yes or --dry-run.

    Nothing is deployed without a final confirmation. --dry-run never creates anything: it writes the
    truss config that the platform would deploy into truss_configs/.
    """
    config = None if config_path is None else load_deploy_checkpoints_config(config_path)
    problem = conflict(given, config)
    if problem:
        raise CommandFailed(problem, ExitCode.USAGE)
    state = initial_wizard_state(given, config, datetime.now(UTC))
    if not can_ask() and (JOB not in state.given or CHECKPOINTS in state.given):
        _require_answers(state, cli_options)  # otherwise later, since the job may have no checkpoints
    return run_on_remote(settings, lambda client, output: _deploy(client, output, state, given, cli_options))


def _require_answers(state: WizardState, cli_options: DeployOptions) -> None:
    """Raise CommandFailed naming all missing options if the session is not interactive."""
    missing_answers = unanswered_questions(state)
    if not (cli_options.assume_yes or cli_options.dry_run):
        missing_answers = (*missing_answers, MissingAnswer("--yes (or --dry-run)", "Confirmation"))
    if missing_answers:
        raise CommandFailed(_missing_answers_text(missing_answers), ExitCode.USAGE)


def _missing_answers_text(missing_answers: Sequence[MissingAnswer]) -> str:
    missing = [each.flag for each in missing_answers if not each.problem]
    lines = [f"{each.flag}: {each.problem}" for each in missing_answers if each.problem]
    if missing:
        lines.append(f"no terminal to ask on; give {', '.join(missing)}")
    return "\n".join(lines)


async def _deploy(
    client: TrainingClient, output: Output, state: WizardState, given: Answers, cli_options: DeployOptions
) -> ExitCode:
    if cli_options.assume_yes and not cli_options.dry_run:
        client.check_may_change("deploying checkpoints")
    wizard_io = TerminalDeployer(client, output, cli_options)
    project = selected_project(cli_options.project, cli_options.project_id)
    project_id = await project_id_of(client, project)
    state = await load(client, state, given, project_id)
    if not can_ask():
        _check_checkpoints(state, given)
        _require_answers(state, cli_options)
    if len(state.facts.jobs) == 1:
        state = await with_health(client, state)
    if not unanswered_questions(state):
        state, missing_answers, remarks = resolve_defaults(state)
        for text in remarks:
            output.remark(text)
        if missing_answers and not can_ask():
            raise CommandFailed(_missing_answers_text(missing_answers), ExitCode.USAGE)
        if not missing_answers and (cli_options.assume_yes or cli_options.dry_run):
            return await wizard_io.finish(state)
    return await wizard_io.ask(WizardProgress(state).started())


def _check_checkpoints(state: WizardState, given: Answers) -> None:
    """Raise CommandFailed for a checkpoint named by an option that the job does not have."""
    known = [each.checkpoint_id for each in state.facts.checkpoints]
    for name in given.checkpoint_names:
        if state.facts.checkpoints_of is not None and name not in known:
            raise not_in_job(state.facts.checkpoints_of, "checkpoint", name, known)
