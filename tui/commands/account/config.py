"""``bt-tui config``: Show, edit and check the settings.

``bt-tui completion``: Print the completion script for your shell.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
from click.shell_completion import get_completion_class

from api_client.files import PRIVATE_FILE_MODE, PRIVATE_FOLDER_MODE, write_private
from tui.commands.support.catalogue import COMPLETION_VARIABLE
from tui.commands.support.options import CommandSettings, examples, format_option
from tui.commands.support.output import JSON, TABLE, ExitCode, cannot_write_error
from tui.commands.support.tables import table_text_if_any
from tui.commands.support.terminal import need_terminal
from tui.settings import config_path
from tui.settings.loading import check_file, load
from tui.settings.model import Loaded, PatternSettings
from tui.settings.problems import Problem
from tui.settings.reference import entries, one_line, settings_file_template, toml_value
from tui.system.external_programs import API_KEY_VARIABLES
from tui.tables.column import Column, text_column


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
def show(settings: CommandSettings, changed: bool) -> None:
    """Print every setting, its value and its origin.

    JSON is a list of objects with setting, value, origin and description. The origin is "default", FILE:LINE,
    "environment VARIABLE" or "flag --NAME". For a webhook's URL only the host is shown.
    """
    loaded = load(os.environ, {"remote": settings.remote_name})
    rows = [row for row in _setting_rows(loaded) if not changed or row[2] != "default"]
    document = [dict(zip(("setting", "value", "origin", "description"), row, strict=True)) for row in rows]
    settings.output.print_result(document, table_text_if_any(SETTING_COLUMNS, rows, settings.output))


SettingRow = tuple[str, Any, str, str]
"""A setting, its value, its origin, and its description."""

SETTING_COLUMNS: tuple[Column[SettingRow], ...] = (
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
    settings.output.write_text(f"{config_path(os.environ)}\n")


@examples("bt-tui config validate", "bt-tui config validate draft.toml")
@config.command("validate", short_help="Check a file: unknown settings and bad values, by line.")
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
@click.pass_obj
def validate(settings: CommandSettings, file: Path | None) -> ExitCode:
    """Check a settings file (default: your settings) and print each problem to stderr as FILE:LINE.

    The exit code is 0 for a valid file and 2 for one with problems.
    """
    settings_file = file or config_path(os.environ)
    if file is None and not settings_file.exists():
        settings.output.print_message(f"no settings file ({settings_file}); using the defaults")
        return ExitCode.OK
    return _print_problems(settings_file, settings)


@examples("bt-tui config edit", "EDITOR=nano bt-tui config edit")
@config.command("edit", short_help="Open the file in your editor, then check it.")
@click.pass_obj
def edit(settings: CommandSettings) -> ExitCode:
    """Open the settings file in $VISUAL or $EDITOR, then check it.

    A new file contains every setting as a comment.
    """
    settings_file = config_path(os.environ)
    need_terminal("an editor", f"the file is {settings_file}")
    if not settings_file.exists():
        try:
            settings_file.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
            write_private(settings_file, settings_file_template().encode())
        except OSError as error:
            raise cannot_write_error(settings_file, error) from None
    click.edit(filename=str(settings_file), env=dict.fromkeys(API_KEY_VARIABLES, ""))  # without API keys
    if settings_file.exists():
        settings_file.chmod(PRIVATE_FILE_MODE)  # the file may contain the secret URL of a webhook
    return _print_problems(settings_file, settings)


def _print_problems(file: Path, settings: CommandSettings) -> ExitCode:
    output = settings.output
    ignored: list[Problem] = []
    problems = check_file(file, ignored)
    for problem in (*problems, *ignored):
        output.print_message(str(problem))
    if not problems and not ignored:
        output.print_message(f"{file}: no problems")
    return ExitCode.USAGE if problems else ExitCode.OK


def _setting_rows(loaded: Loaded) -> list[SettingRow]:
    values = asdict(loaded.configuration)
    rows = []
    for entry in entries():
        value = values[entry.name] if not entry.section else values[entry.section][entry.key]
        if entry.is_table:
            rows += [
                (
                    f'{entry.name}."{key}"',
                    item_value,
                    loaded.origin(f"{entry.name}.{key}", entry.name),
                    entry.description,
                )
                for key, item_value in value.items()
            ]
            continue
        if entry.name == "notifications.webhook" and value:
            url = urlsplit(value)
            value = f"{url.scheme}://{url.hostname}/…"  # the path of a webhook often contains its secret
        if entry.name == "health.off":
            value = sorted(value)
        rows.append((entry.name, value, loaded.origin(entry.name), entry.description))
    description = one_line(PatternSettings.__doc__ or "")
    for number, pattern in enumerate(values["patterns"]):
        origin = loaded.origin(f"patterns.{number}", "patterns")
        rows.append((f"patterns.{number}", f"{pattern['name']}: {pattern['regex']}", origin, description))
    return rows


@examples(
    "bt-tui completion bash >> ~/.bashrc",
    "bt-tui completion zsh >> ~/.zshrc",
    "bt-tui completion fish > ~/.config/fish/completions/bt-tui.fish",
)
@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that lets bash, zsh or fish complete commands, options and names from the server.

    Also completes the names of jobs, projects, checkpoints and remotes, and ids whose beginning you have
    typed: each tab press queries the chosen remote for at most two seconds, or else uses the last response.
    Responses are cached in a private file, without keys.

    Install the script as shown below; completion works in shells opened after that.
    """
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    root = context.find_root()
    script = shell_class(root.command, {}, "bt-tui", COMPLETION_VARIABLE)
    text = script.source_template % script.source_vars()
    context.ensure_object(CommandSettings).output.write_text(text + "\n")
