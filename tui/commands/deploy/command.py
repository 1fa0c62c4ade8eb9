"""``bt-tui deploy_checkpoints``: Deploy checkpoints of a job as a model."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from api_client.client import TrainingClient
from api_client.deployment import DeployAnswers, Pairs
from api_client.submission.config_file import load_deploy_checkpoints_config
from tui.commands.deploy.deployer import Deployer, DeployOptions
from tui.commands.support.exit_codes import CommandFailed, ExitCode, not_in_job
from tui.commands.support.lookups import project_id_of
from tui.commands.support.options import (
    JSON,
    TABLE,
    CommandSettings,
    combined,
    examples,
    format_option,
    remote_option,
    selected_project,
    yes_option,
)
from tui.commands.support.output import Output
from tui.commands.support.session import run_on_remote
from tui.commands.support.terminal import can_ask
from tui.forms.deployment import ALL_QUESTIONS, DeployForm, conflict, filled_form, with_defaults
from tui.forms.question import read_pair
from tui.readers.deployment import read_facts


def _pairs(_context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> Pairs:
    """Split ``K=V`` texts into pairs. Raises CommandFailed, without the value, if there is no ``=``."""
    pairs = []
    for number, text in enumerate(texts, start=1):
        pair = read_pair(text)
        if pair is None:
            raise CommandFailed(f"{parameter.opts[0]} number {number}: expected NAME=value", ExitCode.USAGE)
        pairs.append(pair)
    return tuple(pairs)


given_options = combined(
    "given",
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
        callback=_pairs,
        help="Environment variable; repeatable.",
    ),
    click.option(
        "--secret",
        "secrets",
        metavar="K=NAME",
        multiple=True,
        callback=_pairs,
        help="Environment variable from a secret; repeatable.",
    ),
)

deploy_options = combined(
    "cli_options",
    DeployOptions,
    click.option("--project-id", metavar="ID", help="Offer only jobs of this project."),
    click.option("--project", metavar="NAME", help="Same, by name or id."),
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
    settings: CommandSettings, config_path: Path | None, given: DeployAnswers, cli_options: DeployOptions
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
    form = replace(filled_form(given, config, datetime.now(UTC)), asks=ALL_QUESTIONS)
    if not can_ask() and ("job_id" not in form.given or "checkpoint_names" in form.given):
        _require_answers(form, cli_options)  # otherwise later, since the job may have no checkpoints
    return run_on_remote(settings, lambda client, output: _deploy(client, output, form, cli_options))


def _require_answers(form: DeployForm, cli_options: DeployOptions) -> None:
    """Raise CommandFailed naming all missing options, as there is nobody to ask."""
    is_read = form.facts.checkpoints_of is not None
    lines = [
        f"{question.flag}: {question.refusal}" for question in form.missing if is_read and question.refusal
    ]
    flags = [question.flag for question in form.missing if not (is_read and question.refusal)]
    if not (cli_options.assume_yes or cli_options.dry_run):
        flags.append("--yes (or --dry-run)")
    if flags:
        lines.append(f"no terminal to ask on; give {', '.join(flags)}")
    if lines:
        raise CommandFailed("\n".join(lines), ExitCode.USAGE)


async def _deploy(
    client: TrainingClient, output: Output, form: DeployForm, cli_options: DeployOptions
) -> ExitCode:
    if cli_options.assume_yes and not cli_options.dry_run:
        client.check_may_change("deploying checkpoints")
    deployer = Deployer(client, output, cli_options)
    project = selected_project(cli_options.project, cli_options.project_id)
    facts = await read_facts(client, form, await project_id_of(client, project))
    form = replace(form, facts=facts)
    if not can_ask():
        _check_checkpoints(form)
        _require_answers(form, cli_options)
    form = await deployer.with_health(form)
    if not form.missing:
        form, remarks = with_defaults(form)
        for text in remarks:
            output.remark(text)
        if form.problems and not can_ask():
            problems = (f"{flag}: {problem}" for flag, problem in form.problems.items())
            raise CommandFailed("\n".join(problems), ExitCode.USAGE)
    return await deployer.run(form)


def _check_checkpoints(form: DeployForm) -> None:
    """Raise CommandFailed for a checkpoint named by an option that the job does not have."""
    job_id, names = form.facts.checkpoints_of, [checkpoint.checkpoint_id for checkpoint in form.checkpoints]
    in_file = [checkpoint.checkpoint_name for checkpoint in form.details.checkpoints]
    missing = [name for name in form.answers.checkpoint_names if name not in (*names, *in_file)]
    if job_id and missing:
        raise not_in_job(job_id, "checkpoint", missing[0], names)
