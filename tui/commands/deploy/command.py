"""``bt-tui deploy_checkpoints``: deploy checkpoints with a wizard or from a script."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from api_client.client import TrainingClient
from api_client.definitions import DeployCheckpointsConfig
from api_client.submission.config_file import load_deploy_checkpoints_config
from tui.commands.deploy.options import DeployOptions, deploy_options, pairs_of
from tui.commands.deploy.terminal import TerminalDeployer, with_health
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.options import (
    JSON,
    TABLE,
    CommandSettings,
    examples,
    format_option,
    project_named,
    remote_option,
    selected_project,
    yes_option,
)
from tui.commands.support.output import Output
from tui.commands.support.session import run_on_remote
from tui.commands.support.terminal import can_ask
from tui.readers.deployment import load
from tui.wizard.given import (
    MissingAnswer,
    Prefilled,
    conflict,
    initial_wizard_state,
    resolve_defaults,
    unanswered_questions,
)
from tui.wizard.progress import WizardProgress
from tui.wizard.state import WizardState


@examples(
    "bt-tui deploy_checkpoints",
    "bt-tui deploy_checkpoints --job-id abc1234",
    "bt-tui deploy_checkpoints --config deploy.py --dry-run",
    "bt-tui deploy --job-id abc1234 --checkpoint checkpoint-400 --model-name x --gpu H100:1 --yes",
)
@click.command("deploy_checkpoints")
@deploy_options
@yes_option
@format_option(TABLE, JSON)
@remote_option
@click.pass_obj
def deploy_checkpoints(
    settings: CommandSettings,
    config_path: Path | None,
    project_id: str | None,
    project: str | None,
    job_id: str | None,
    checkpoints: tuple[str, ...],
    base_model: str | None,
    lora_rank: str | None,
    model_name: str | None,
    gpu: str | None,
    hf_secret: str | None,
    environment: tuple[str, ...],
    secrets: tuple[str, ...],
    dry_run: bool,
    wait: bool,
    output_dir: Path | None,
    assume_yes: bool,
    output_format: str,
) -> ExitCode:
    """Deploy checkpoints of a training job with a wizard.

    The wizard asks for whatever the options and the config file do not set; options override the file. If
    job, checkpoint, model name and GPU are given, nothing more is asked: the base model and the LoRA rank are
    read from the checkpoint. Without a terminal these four are required, along with --yes or --dry-run.

    Nothing is deployed without a final confirmation. --dry-run never creates anything: it writes the
    truss config that the platform would deploy into truss_configs/.
    """
    given = Prefilled(
        job_id=job_id,
        checkpoint_names=checkpoints,
        base_model=base_model,
        lora_rank=lora_rank,
        model_name=model_name,
        gpu=gpu,
        hf_secret=hf_secret,
        environment=pairs_of(environment, "--env"),
        secrets=pairs_of(secrets, "--secret"),
    )
    config = _load(config_path)
    problem = conflict(given, config)
    if problem:
        raise CommandFailed(problem, ExitCode.USAGE)
    cli_options = DeployOptions(assume_yes, dry_run, wait, output_dir, output_format, project_id, project)
    state = initial_wizard_state(given, config, datetime.now(UTC))
    if not can_ask():
        _require_answers(state, cli_options)
    return run_on_remote(settings, lambda client, output: _deploy(client, output, state, given, cli_options))


def _load(path: Path | None) -> DeployCheckpointsConfig | None:
    if path is None:
        return None

    return load_deploy_checkpoints_config(path)


def _require_answers(state: WizardState, cli_options: DeployOptions) -> None:
    """Raise CommandFailed naming all missing options if the session is not interactive."""
    missing_answers = unanswered_questions(state)
    if not (cli_options.assume_yes or cli_options.dry_run):
        missing_answers = (*missing_answers, MissingAnswer("--yes (or --dry-run)", "Confirmation"))
    if missing_answers:
        raise CommandFailed(_missing_answers_text(missing_answers), ExitCode.USAGE)


def _missing_answers_text(missing_answers: Sequence[MissingAnswer]) -> str:
    missing = [missing_answer.flag for missing_answer in missing_answers if not missing_answer.problem]
    lines = [
        f"{missing_answer.flag}: {missing_answer.problem}"
        for missing_answer in missing_answers
        if missing_answer.problem
    ]
    if missing:
        lines.append(f"no terminal to ask on; give {', '.join(missing)}")
    return "\n".join(lines)


async def _deploy(
    client: TrainingClient, output: Output, state: WizardState, given: Prefilled, cli_options: DeployOptions
) -> ExitCode:
    if cli_options.assume_yes and not cli_options.dry_run:
        client.check_may_change("deploying checkpoints")
    wizard_io = TerminalDeployer(client, output, cli_options)
    state = await load(client, state, given, await _project_id(client, cli_options))
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


async def _project_id(client: TrainingClient, cli_options: DeployOptions) -> str | None:
    """Return the id of the named project. Raises CommandFailed if none or several have that name."""
    name = selected_project(cli_options.project, cli_options.project_id)
    return (await project_named(client, name)).id if name is not None else None
