"""``bt-tui config``: Show, edit and check the settings."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from api_client.files import PRIVATE_FILE_MODE, PRIVATE_FOLDER_MODE, write_private
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.options import JSON, TABLE, CommandSettings, examples, format_option
from tui.commands.support.output import cannot_write
from tui.commands.support.tables import print_rows
from tui.settings.loading import ConfigurationBroken, Loaded, check_file, load
from tui.settings.paths import config_path
from tui.settings.problems import Problem
from tui.settings.reference import entries, template, toml_value
from tui.system.external_programs import scrubbed_environment
from tui.tables.column import Column, text_column

EDITOR_VARIABLES = ("VISUAL", "EDITOR")
EDITORS = ("nano", "vim", "vi")


@examples("bt-tui config show", "bt-tui config edit", "bt-tui config validate ./team.toml")
@click.group()
def config() -> None:
    """Show, edit and check the settings.

    They are stored in one TOML file. Flags override environment variables (BT_TUI_…), which override the
    file, which overrides the defaults.
    """


@examples("bt-tui config show", "bt-tui config show -o json")
@config.command("show", short_help="Show every setting, its value and its origin.")
@format_option(TABLE, JSON)
@click.option("--changed", is_flag=True, help="Only settings that differ from the default.")
@click.pass_obj
def show(settings: CommandSettings, output_format: str, changed: bool) -> None:
    """Print every setting, its value and its origin.

    JSON is a list of objects with setting, value and origin, which is "default", FILE:LINE, "environment
    VARIABLE" or "flag --NAME". For a webhook's URL only the host is shown.
    """
    output = settings.output
    loaded = _loaded(settings)
    rows = [row for row in _rows(loaded) if not changed or row[2] != "default"]
    if output_format == JSON:
        output.json([{"setting": name, "value": value, "origin": origin} for name, value, origin in rows])
        return

    print_rows(output, COLUMNS, rows)


Row = tuple[str, Any, str]
"""A setting, its value and its origin."""

COLUMNS: tuple[Column[Row], ...] = (
    text_column("SETTING", lambda row: row[0], "name"),
    text_column("VALUE", lambda row: "–" if row[1] is None else toml_value(row[1]), shrinks=True),
    Column(
        "ORIGIN", "ORIGIN", lambda row: [(row[2], "muted" if row[2] == "default" else "plain")], shrinks=True
    ),
)


@examples("bt-tui config path")
@config.command("path", short_help="Print the path of the settings file.")
@click.pass_obj
def path(settings: CommandSettings) -> None:
    """Print the path of the settings file, even if it does not exist yet."""
    settings.output.data(f"{config_path(os.environ)}\n")


@examples("bt-tui config validate", "bt-tui config validate draft.toml")
@config.command("validate", short_help="Check a file: unknown settings and bad values, by line.")
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
@click.pass_obj
def validate(settings: CommandSettings, file: Path | None) -> ExitCode:
    """Check a settings file (default: the one in use) and print each problem to stderr as FILE:LINE.

    The exit code is 0 for a valid file and 2 for one with problems.
    """
    chosen = file or config_path(os.environ)
    if file is None and not chosen.exists():
        settings.output.remark(f"no settings file ({chosen}); using the defaults")
        return ExitCode.OK
    return _report(chosen, settings)


@examples("bt-tui config edit", "EDITOR=nano bt-tui config edit")
@config.command("edit", short_help="Open the file in your editor, then check it.")
@click.pass_obj
def edit(settings: CommandSettings) -> ExitCode:
    """Open the settings file in $VISUAL or $EDITOR, then check it.

    A new file contains every setting as a comment.
    """
    chosen = config_path(os.environ)
    editor = _editor()
    try:
        if not chosen.exists():
            _create(chosen)
    except OSError as error:
        raise cannot_write(chosen, error) from None
    try:
        done = subprocess.run([*editor, str(chosen)], check=False, env=scrubbed_environment(os.environ))
    except OSError as error:
        raise CommandFailed(f"{error.filename or editor[0]}: {error.strerror}", ExitCode.USAGE) from None
    if chosen.exists() and chosen.stat().st_mode & 0o077:
        chosen.chmod(PRIVATE_FILE_MODE)  # it may hold a webhook's secret address
    if done.returncode != 0:
        raise CommandFailed(f"{editor[0]} exited with code {done.returncode}", ExitCode.UNEXPECTED)
    return _report(chosen, settings)


def _report(file: Path, settings: CommandSettings) -> ExitCode:
    output = settings.output
    ignored: list[Problem] = []
    problems = check_file(file, ignored)
    for problem in (*problems, *ignored):
        output.remark(str(problem))
    if not problems and not ignored:
        output.remark(f"{file}: no problems")
    return ExitCode.USAGE if problems else ExitCode.OK


def _loaded(settings: CommandSettings) -> Loaded:
    try:
        return load(os.environ, {"remote": settings.remote_name})
    except ConfigurationBroken as broken:
        raise CommandFailed(str(broken), ExitCode.USAGE) from None


def _rows(loaded: Loaded) -> list[Row]:
    values = asdict(loaded.configuration)
    rows = []
    for entry in entries():
        value = values[entry.name] if not entry.section else values[entry.section][entry.key]
        if entry.is_table:
            rows += [
                (f'{entry.name}."{key}"', item, loaded.origin(f"{entry.name}.{key}", entry.name))
                for key, item in value.items()
            ]
            continue
        if entry.name == "notifications.webhook" and value:
            value = _host_only(value)
        rows.append(
            (entry.name, sorted(value) if entry.name == "health.off" else value, loaded.origin(entry.name))
        )
    for number, pattern in enumerate(values["patterns"]):
        origin = loaded.origin(f"patterns.{number}", "patterns")
        rows.append((f"patterns.{number}", f"{pattern['name']}: {pattern['regex']}", origin))
    return rows


def _host_only(url: str) -> str:
    """Return only the host of a webhook's URL: its path is often its secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}/…"


def _create(file: Path) -> None:
    file.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    write_private(file, template().encode())


def _editor() -> list[str]:
    for variable in EDITOR_VARIABLES:
        editor = os.environ.get(variable, "").strip()
        if editor:
            try:
                return shlex.split(editor)
            except ValueError:
                raise CommandFailed(f"can't parse ${variable}: {editor}", ExitCode.USAGE) from None
    for name in EDITORS:
        if shutil.which(name):
            return [name]
    raise CommandFailed(
        f"no editor found; set VISUAL or EDITOR, or edit {config_path(os.environ)}", ExitCode.USAGE
    )
