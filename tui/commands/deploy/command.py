"""``bt-tui deploy_checkpoints``: deploy checkpoints with a wizard or from a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.commands.deploy.options import DeployWishes, deploy_options, pairs_of
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.options import (
    JSON,
    TABLE,
    Settings,
    examples,
    format_option,
    given_project,
    project_named,
    remote_option,
    yes_option,
)
from tui.commands.support.output import Output
from tui.commands.support.session import run_on_remote
from tui.commands.support.terminal import can_ask

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.definitions import DeployCheckpointsConfig
    from tui.wizard.given import Given, Lack
    from tui.wizard.state import WizardState


@click.command(
    "deploy_checkpoints",
    short_help="Deploy checkpoints of a job as a model.",
    epilog=examples(
        "bt-tui deploy_checkpoints",
        "bt-tui deploy_checkpoints --job-id abc1234",
        "bt-tui deploy_checkpoints --config deploy.py --dry-run",
        "bt-tui deploy --job-id abc1234 --checkpoint checkpoint-400 --model-name x --gpu H100:1 --yes",
    ),
)
@deploy_options
@yes_option
@format_option(TABLE, JSON)
@remote_option
@click.pass_obj
def deploy_checkpoints(
    settings: Settings,
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

    The wizard asks for everything that the options and the config file leave open; options override the
    file. If job, checkpoint, model name and GPU are given, nothing more is asked: the base model and the
    LoRA rank are read from the checkpoint. Without a terminal these four are required, along with --yes
    or --dry-run.

    Nothing is deployed without a final confirmation. --dry-run never creates anything: it writes the
    truss config that the platform would deploy into truss_configs/.
    """
    from tui.wizard.given import Given, beforehand, conflict

    given = Given(
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
    wishes = DeployWishes(assume_yes, dry_run, wait, output_dir, output_format, project_id, project)
    state = beforehand(given, config, datetime.now(UTC))
    if not can_ask():
        _need_enough(state, wishes)
    return run_on_remote(settings, lambda client, output: _deploy(client, output, state, given, wishes))


def _load(path: Path | None) -> DeployCheckpointsConfig | None:
    if path is None:
        return None
    from api_client.submission.config_file import load_deploy_checkpoints_config

    return load_deploy_checkpoints_config(path)


def _need_enough(state: WizardState, wishes: DeployWishes) -> None:
    """Raise CommandFailed naming all missing options if the session is not interactive."""
    from tui.wizard.given import Lack, lacks_beforehand

    lacks = lacks_beforehand(state)
    if not (wishes.assume_yes or wishes.dry_run):
        lacks = (*lacks, Lack("--yes (or --dry-run)", "Confirmation"))
    if lacks:
        raise CommandFailed(_lacks_text(lacks), ExitCode.USAGE)


def _lacks_text(lacks: Sequence[Lack]) -> str:
    missing = [lack.flag for lack in lacks if not lack.problem]
    lines = [f"{lack.flag}: {lack.problem}" for lack in lacks if lack.problem]
    if missing:
        lines.append(f"there is no terminal to ask at: give {', '.join(missing)}")
    return "\n".join(lines)


async def _deploy(
    client: TrainingClient, output: Output, state: WizardState, given: Given, wishes: DeployWishes
) -> ExitCode:
    from tui.commands.deploy.terminal import DeployDesk
    from tui.wizard.given import lacks_beforehand, settle
    from tui.wizard.progress import Walk

    if wishes.assume_yes and not wishes.dry_run:
        client.check_may_change("deploying checkpoints")
    desk = DeployDesk(client, output, wishes)
    state = await _with_facts(client, state, given, wishes)
    if not lacks_beforehand(state):
        state, lacks, remarks = settle(state)
        for text in remarks:
            output.remark(text)
        if lacks and not can_ask():
            raise CommandFailed(_lacks_text(lacks), ExitCode.USAGE)
        if not lacks and (wishes.assume_yes or wishes.dry_run):
            return await desk.finish(state)
    return await desk.ask(Walk(state).started())


async def _with_facts(
    client: TrainingClient, state: WizardState, given: Given, wishes: DeployWishes
) -> WizardState:
    from tui.commands.deploy.terminal import judged_facts
    from tui.readers.account import account_facts, checkpoint_facts
    from tui.wizard.given import config_jobs

    jobs: Sequence[str] = ()
    if state.answers.job_id is not None:
        is_config_s = not given.job_id and not given.checkpoint_names
        jobs = (is_config_s and config_jobs(state.config)) or (state.answers.job_id,)
    project_id = await _project_id(client, wishes)
    facts = await account_facts(client, state.facts.now, job_ids=jobs, project_id=project_id)
    if jobs or state.serves_loops:
        facts = await checkpoint_facts(client, facts, facts.jobs if jobs else ())
        if len(facts.jobs) == 1:
            facts = await judged_facts(client, facts, facts.jobs[0])
    return replace(state, facts=facts)


async def _project_id(client: TrainingClient, wishes: DeployWishes) -> str | None:
    """Return the id of the named project. Raises CommandFailed if none or several have that name."""
    name = given_project(wishes.project, wishes.project_id)
    return (await project_named(client, name)).id if name is not None else None
