"""The options of ``bt-tui deploy_checkpoints``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from api_client.deployment import DeployAnswers, Pairs
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.options import JSON, TABLE, format_option, options_as, yes_option
from tui.forms.question import read_pair


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """Options that control the deployment; ``project`` is a name or an id, ``project_id`` an id."""

    assume_yes: bool
    dry_run: bool
    wait: bool
    output_dir: Path | None
    output_format: str
    project_id: str | None = None
    project: str | None = None


def _pairs(_context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> Pairs:
    """Split ``K=V`` texts into pairs. Raises CommandFailed, without the value, if there is no ``=``."""
    pairs = []
    for number, text in enumerate(texts, start=1):
        pair = read_pair(text)
        if pair is None:
            raise CommandFailed(f"{parameter.opts[0]} number {number}: expected NAME=value", ExitCode.USAGE)
        pairs.append(pair)
    return tuple(pairs)


given_options = options_as(
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

deploy_options = options_as(
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
