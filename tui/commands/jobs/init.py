"""``bt-tui init``: Write a starter project: config.py, run.sh, train.py."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import click

from api_client import ConfigurationError, RemoteNotConfigured, resolve_remote
from api_client.words import command_line
from tui.commands.support.options import CommandSettings, examples, format_option, remote_option
from tui.commands.support.output import JSON, TABLE, CommandFailed, ExitCode, cannot_write_error, refuse_if
from tui.commands.support.remotes import LOCAL_REMOTE, remote_name
from tui.commands.support.tables import table_text
from tui.system.starters import STARTER_PROJECTS, FilesAlreadyExist, StarterProject, write_starters
from tui.tables.column import Column, text_column


def _starter_project(name: str) -> StarterProject:
    projects = {project.name: project for project in STARTER_PROJECTS}
    if name not in projects:
        raise CommandFailed(f"no example {name!r} (known: {', '.join(projects)})", ExitCode.USAGE)
    return projects[name]


def _write_projects(projects_by_folder: Mapping[Path, StarterProject], *, force: bool) -> list[Path]:
    try:
        return write_starters(projects_by_folder, force=force)
    except FilesAlreadyExist as problem:
        raise CommandFailed(f"{problem} (use --force, or another folder)", ExitCode.USAGE) from problem
    except OSError as error:
        raise cannot_write_error(error.filename, error) from error


DEFAULT_TEMPLATE = STARTER_PROJECTS[0].name


@examples(
    "bt-tui init                                  writes ./cpu-quickstart, which runs anywhere",
    "bt-tui init my-run --template lora-finetune",
    "bt-tui init --examples cpu-quickstart,multinode-torchrun",
    "bt-tui init --list-examples",
)
@click.command()
@click.argument(
    "directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path)
)
@click.option(
    "--target-directory",
    "--dir",
    "directory_option",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Same as DIR.",
)
@click.option(
    "--template", metavar="NAME", help=f"Write this template into DIR (default: {DEFAULT_TEMPLATE})."
)
@click.option(
    "--examples",
    "--example",
    "names",
    metavar="NAME,…",
    multiple=True,
    help="Write several templates, each into the folder DIR/NAME; repeatable.",
)
@click.option("--list-examples", is_flag=True, help="List the templates.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@format_option(TABLE, JSON)
@remote_option
@click.pass_obj
def init(
    settings: CommandSettings,
    directory: Path | None,
    directory_option: Path | None,
    template: str | None,
    names: tuple[str, ...],
    list_examples: bool,
    force: bool,
) -> None:
    """Write a starter project.

    A starter project has a config.py that Baseten accepts unchanged, a run.sh that the job runs, and a
    train.py. Without DIR, the project is written to a folder named after the template. The file names are
    printed.
    """
    output = settings.output
    refuse_if(
        directory is not None and directory_option not in (None, directory),
        "DIR and --target-directory name different folders; give one",
    )
    directory = directory or directory_option
    if list_examples:
        document = list(map(asdict, STARTER_PROJECTS))
        output.print_result(document, table_text(COLUMNS, STARTER_PROJECTS, output))
        return
    refuse_if(template is not None and names, "give either --template or --examples")
    if names:
        projects = [_starter_project(name.strip()) for name in ",".join(names).split(",") if name.strip()]
        refuse_if(not projects, "--examples names no template; see --list-examples")
        projects_by_folder = {(directory or Path()) / project.name: project for project in projects}
    else:
        project = _starter_project(template or DEFAULT_TEMPLATE)
        projects_by_folder = {directory if directory is not None else Path(project.name): project}
    paths = [str(path) for path in _write_projects(projects_by_folder, force=force)]
    output.print_result(paths, "".join(f"{path}\n" for path in paths))
    needs_emulator = settings.remote_name is None and not _may_have_account()
    remote = LOCAL_REMOTE if needs_emulator else settings.remote_name
    options = replace(settings, remote_name=remote, readonly=False).options
    for folder in projects_by_folder:
        push = command_line(*options, "push", str(folder / "config.py"), "--tail")
        output.print_message(f"next: {push}")
    if needs_emulator:
        login = command_line("login")
        output.print_message(
            f"--remote local runs the job on an emulator on this machine; {login} connects an account"
        )


def _may_have_account() -> bool:
    """Return False if no remote is configured, else True: also for invalid settings, which push reports."""
    try:
        resolve_remote(remote_name(None), environ=os.environ)
    except RemoteNotConfigured:
        return False
    except ConfigurationError:
        pass
    return True


COLUMNS: tuple[Column[StarterProject], ...] = (
    text_column("NAME", lambda project: project.name, "strong"),
    text_column("MACHINE", lambda project: project.machine),
    text_column("WHAT", lambda project: project.summary, shrinks=True),
)
