"""``bt-tui init``."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.options import JSON, TABLE, Settings, examples, format_option
from tui.commands.output import Output
from tui.commands.starter_projects import STARTER_PROJECTS, starter_project, write_starter_projects

DEFAULT_TEMPLATE = STARTER_PROJECTS[0].name
CONFIG_NAME = "config.py"


@click.command(
    short_help="Write a starter project: config.py, run.sh, train.py.",
    epilog=examples(
        "bt-tui init                                  ./cpu-quickstart, which runs anywhere",
        "bt-tui init my-run --template lora-finetune",
        "bt-tui init --examples cpu-quickstart,multinode-torchrun",
        "bt-tui init --list-examples",
    ),
)
@click.argument(
    "directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path)
)
@click.option(
    "--target-directory",
    "named_directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="DIR, as an option.",
)
@click.option("--template", metavar="NAME", help=f"Which one (default: {DEFAULT_TEMPLATE}), right into DIR.")
@click.option("--examples", "names", metavar="NAME,…", help="Several, each into a folder of its name in DIR.")
@click.option("--list-examples", is_flag=True, help="Show what there is.")
@click.option("--force", is_flag=True, help="Overwrite files that are in the way.")
@format_option(TABLE, JSON)
@click.pass_obj
def init(
    settings: Settings | None,
    directory: Path | None,
    named_directory: Path | None,
    template: str | None,
    names: str | None,
    list_examples: bool,
    force: bool,
    output_format: str,
) -> ExitCode:
    """Write a starter project to begin from.

    Each has a config.py that is valid for Baseten as it is, a run.sh that the job runs, and a train.py.
    Without DIR it goes into a folder of the template's name. The files' names are printed.
    """
    output = (settings or Settings()).output
    if directory is not None and named_directory not in (None, directory):
        raise click.UsageError("DIR and --target-directory name two folders: give one")
    directory = directory or named_directory
    if list_examples:
        _list(output, output_format)
        return ExitCode.OK
    if template is not None and names is not None:
        raise CommandFailed("--template writes one, --examples several: give one of them", ExitCode.USAGE)
    if names is not None:
        chosen = [starter_project(name.strip()) for name in names.split(",") if name.strip()]
        if not chosen:
            raise CommandFailed("--examples names none; --list-examples shows them", ExitCode.USAGE)
        wanted = {(directory or Path()) / project.name: project for project in chosen}
    else:
        project = starter_project(template or DEFAULT_TEMPLATE)
        wanted = {directory if directory is not None else Path(project.name): project}
    written = write_starter_projects(wanted, force=force)
    if output_format == JSON:
        output.json([str(path) for path in written])
    else:
        output.data("".join(f"{path}\n" for path in written))
    remote = "" if _has_account() else " --remote local"
    for folder in wanted:
        output.remark(f"next: bt-tui push {shlex.quote(str(folder / CONFIG_NAME))} --tail{remote}")
    if remote:
        output.remark(
            "--remote local runs it on an emulator on this machine; bt-tui login connects an account"
        )
    return ExitCode.OK


def _has_account() -> bool:
    """False only where nothing is set up; settings that are broken are for push to explain."""
    from api_client.errors import ConfigurationError
    from api_client.remotes import RemoteNotConfigured, resolve_remote
    from tui.commands.configured import remote_name

    try:
        resolve_remote(remote_name(None, os.environ), environ=os.environ)
    except RemoteNotConfigured:
        return False
    except (ConfigurationError, CommandFailed):
        return True
    return True


def _list(output: Output, output_format: str) -> None:
    from tui.commands.tables import Cell, Column, render_table

    if output_format == JSON:
        output.json(
            [
                {"name": each.name, "machine": each.machine, "summary": each.summary}
                for each in STARTER_PROJECTS
            ]
        )
        return
    columns = (Column("NAME"), Column("MACHINE"), Column("WHAT", shrinks=True))
    rows = [[Cell(each.name, "strong"), Cell(each.machine), Cell(each.summary)] for each in STARTER_PROJECTS]
    output.data(render_table(columns, rows, width_cells=output.width_cells, paint=output.paint))
