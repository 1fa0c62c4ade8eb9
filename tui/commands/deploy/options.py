"""The options of ``bt-tui deploy_checkpoints``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from tui.commands.support.exit_codes import CommandFailed, ExitCode

Command = TypeVar("Command", bound=Callable[..., Any])


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


_OPTIONS = (
    click.option(
        "--config",
        "config_path",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="A Python file with a DeployCheckpointsConfig; it is run to load it.",
    ),
    click.option("--project-id", metavar="ID", help="Offer the jobs of this project only."),
    click.option("--project", metavar="NAME", help="The same by name or id."),
    click.option("--job-id", metavar="JOB_ID", help="The job that wrote the checkpoints."),
    click.option(
        "--checkpoint", "checkpoints", metavar="NAME", multiple=True, help="Repeat it for several LoRAs."
    ),
    click.option("--base-model", metavar="MODEL", help="What the checkpoint was trained from."),
    click.option("--lora-rank", metavar="N", help="8, 16, 32, 64, 128, 256, 320 or 512."),
    click.option("--model-name", metavar="NAME", help="Name of the model that is made."),
    click.option("--gpu", metavar="TYPE[:N]", help="GPUs to serve on, as H100:2."),
    click.option("--hf-secret", metavar="NAME", help="Secret that holds the Hugging Face token."),
    click.option(
        "--env", "environment", metavar="K=V", multiple=True, help="Environment variable; may be repeated."
    ),
    click.option(
        "--secret",
        "secrets",
        metavar="K=NAME",
        multiple=True,
        help="Variable out of a secret; likewise.",
    ),
    click.option("--dry-run", is_flag=True, help="Write the truss config; create nothing."),
    click.option("--wait", is_flag=True, help="Follow the deployment until it serves or fails."),
    click.option(
        "--truss-config-output-dir",
        "output_dir",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where to write the truss config.",
    ),
)


def deploy_options(command: Command) -> Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def pairs_of(texts: tuple[str, ...], flag: str) -> tuple[tuple[str, str], ...]:
    """Split ``K=V`` texts into pairs. Raises CommandFailed, without the value, if there is no ``=``."""
    from tui.wizard.environment_steps import read_pair

    pairs = []
    for place, text in enumerate(texts, start=1):
        pair = read_pair(text)
        if pair is None:
            raise CommandFailed(f"{flag} number {place} is not written as NAME=value", ExitCode.USAGE)
        pairs.append(pair)
    return tuple(pairs)
