"""``bt-tui login``: Store the API key of a remote.

``bt-tui logout``: Delete the API key of a remote.
``bt-tui remotes``: List remotes and where their settings come from.
``bt-tui secrets``: List, set and delete secrets; values are never shown.

The key is read from a prompt or standard input only: an argument would be visible to other users.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import Any

import click

from api_client import ApiClientError, BadRequest, NotFound, TrainingClient, Unauthorized
from api_client.models import Secret
from api_client.remotes import Environment, Remote, check_key, resolve_remote
from api_client.remotes.profiles import TRUSS_SERVICE, delete_entry
from api_client.remotes.resolution import ListedRemote, list_remotes
from api_client.remotes.trussrc import read_sections, remove_section, trussrc_path
from api_client.secret import SecretText
from api_client.words import command_line
from tui.commands.support.options import (
    CommandSettings,
    examples,
    format_option,
    remote_option,
    team_named,
    yes_option,
)
from tui.commands.support.output import JSON, TABLE, CommandFailed, CommandOutput, ExitCode, refuse_if
from tui.commands.support.remotes import remote_name, with_own_emulator
from tui.commands.support.session import client_command, run_on_remote, run_with
from tui.commands.support.tables import table_text, table_text_if_any
from tui.commands.support.terminal import can_ask, confirm, piped_text
from tui.readers.login import key_owner, remote_without_key, store_key
from tui.tables.column import Column, Span, text_column
from tui.text.times import DATE_AND_MINUTE, local_time


@examples(
    "bt-tui remotes",
    "bt-tui remotes --remote staging",
    "bt-tui remotes -o json | jq -r '.[] | select(.selected) | .name'",
)
@click.command()
@format_option(TABLE, JSON)
@remote_option
@click.pass_obj
def remotes(settings: CommandSettings) -> ExitCode:
    """Show the remotes in order of precedence and which one is used.

    Each address, key and team is shown with its origin: a variable, a section of ~/.trussrc, a profile of
    the Go CLI, or the system's keyring. "local" is the emulator on this machine, which --remote local
    starts if it is not running. Keys are never shown, not even in part.
    """
    name = remote_name(settings.remote_name)
    listing = with_own_emulator(list_remotes(name, environ=os.environ), name)
    output = settings.output
    rows = [row for entry in listing.remotes for row in _remote_field_rows(entry)]
    output.print_result(
        list(map(_remote_record, listing.remotes)), table_text_if_any(REMOTE_FIELD_COLUMNS, rows, output)
    )
    problems = (f"{entry.name}: {entry.problem}" for entry in listing.remotes if entry.problem)
    for warning in (*problems, *listing.warnings):
        output.print_message(warning)
    if listing.problem is None:
        return ExitCode.OK
    output.print_message(listing.problem)
    if name is None and not any(entry.remote for entry in listing.remotes):
        output.print_message(f"set the variable, or store a key with {command_line('login')}")
    return ExitCode.USAGE if name is not None else ExitCode.OK


def _remote_record(listed_remote: ListedRemote) -> dict[str, Any]:
    remote = listed_remote.remote
    expires_at = remote.login.tokens.expires_at if remote and remote.login else None
    return {
        "name": listed_remote.name,
        "source": listed_remote.source,
        "selected": listed_remote.is_selected,
        "app_url": remote and {"value": remote.app_url, "origin": remote.app_url_origin},
        "api_url": remote and {"value": remote.api_url, "origin": remote.api_url_origin},
        "credential": remote
        and {
            "kind": "oauth" if remote.login else "api_key",
            "origin": remote.key_origin,
            "expires_at": expires_at.isoformat() if expires_at else None,
        },
        "team": {"value": remote.team, "origin": remote.team_origin} if remote and remote.team else None,
        "problem": listed_remote.problem,
    }


RemoteFieldRow = tuple[Span, str, str, Span, str]
"""A row's cells: the mark of the selected remote, a remote's name, a field's name, its value, its origin."""

REMOTE_FIELD_COLUMNS: tuple[Column[RemoteFieldRow], ...] = (
    Column("", " ", lambda row: [row[0]]),
    text_column("REMOTE", lambda row: row[1], "strong"),
    text_column("", lambda row: row[2], "muted"),
    Column("VALUE", "VALUE", lambda row: [row[3]]),
    text_column("FROM", lambda row: row[4], "muted", shrinks=True),
)


def _remote_field_rows(listed_remote: ListedRemote) -> list[RemoteFieldRow]:
    remote = listed_remote.remote
    fields: list[tuple[str, Span, str]] = [("key", ("unusable", "bad"), "")]
    if remote is None and listed_remote.problem is None:
        fields = [("app", ("not running", "muted"), "start it with --remote local")]
    elif remote is not None:
        fields = [
            ("app", (remote.app_url, "plain"), remote.app_url_origin),
            ("api", (remote.api_url, "plain"), remote.api_url_origin),
            ("key", (_credential_text(remote), "plain"), remote.key_origin),
        ]
        if remote.team:
            fields.append(("team", (remote.team, "plain"), remote.team_origin))
    mark = "▸" if listed_remote.is_selected else ""
    first_cells = [(mark, listed_remote.name)] + [("", "")] * (len(fields) - 1)
    return [((mark, "good"), name, *rest) for (mark, name), rest in zip(first_cells, fields, strict=True)]


def _credential_text(remote: Remote) -> str:
    if not remote.login:
        return "API key"
    expires_at = local_time(remote.login.tokens.expires_at, DATE_AND_MINUTE)
    return f"OAuth login, until {expires_at}" if expires_at else "OAuth login"


def _refuse_key(_context: click.Context, _parameter: click.Parameter, keys: tuple[str, ...]) -> None:
    """Raise UsageError for an API key given as an option or an argument, without printing the key."""
    refuse_if(
        keys,
        "a key on the command line stays in the shell history and the process list; use the prompt, or pipe "
        "it in with --api-key-stdin. If it was a real key, revoke it",
    )


@examples(
    "bt-tui login",
    "bt-tui login --remote staging --remote-url https://app.staging.baseten.co",
    "bt-tui login --team Research",
    "pass show baseten | bt-tui login --api-key-stdin",
)
@click.command()
@click.option(
    "--remote-url", metavar="URL", help="Address of the app (default: that of the section, or of Baseten)."
)
@click.option("--team", metavar="TEAM", help="Default team for jobs whose config names none.")
@click.option("--api-key-stdin", is_flag=True, help="Read the key from standard input instead of prompting.")
@click.option("--api-key", multiple=True, hidden=True, expose_value=False, callback=_refuse_key)
@click.argument(
    "stray", nargs=-1, type=click.UNPROCESSED, metavar="", expose_value=False, callback=_refuse_key
)
@remote_option
@click.pass_obj
def login(
    settings: CommandSettings,
    remote_url: str | None,
    team: str | None,
    api_key_stdin: bool,
) -> ExitCode | None:
    """Set the API key of a remote: verify the key with the server and store it in ~/.trussrc.

    The key is read from a hidden prompt or from standard input. Afterwards only you can read the file;
    its other sections and all comments are kept. --remote names the section (default: baseten). The truss
    CLI reads the same file.
    """
    remote = remote_without_key(settings.remote_name or "baseten", remote_url)
    key = _key_from_stdin() if api_key_stdin else _prompted_key(remote.name, remote.app_url)
    remote = replace(remote, key=SecretText(key))

    async def verify_and_store(client: TrainingClient, output: CommandOutput) -> None:
        owner = await key_owner(client)
        if team is not None:
            await _check_team(client, team)
        path = store_key(remote, team)
        output.print_message(f"logged in to {remote.app_url}{owner}; key stored in {path} [{remote.name}]")
        if Environment(os.environ).defines_remote:
            output.print_message(
                "BASETEN_* variables with another key take precedence: unset them or use --remote"
            )

    return run_with(remote, settings, verify_and_store)


def _key_from_stdin() -> str:
    text = piped_text(4096).strip()
    if not text:
        raise CommandFailed("no key on standard input", ExitCode.USAGE)
    check_key(text, "standard input")
    return text


def _prompted_key(name: str, app_url: str) -> str:
    if not can_ask():
        raise CommandFailed("no terminal to ask on; give --api-key-stdin", ExitCode.USAGE)
    from tui.commands.support.questions import ask_secret  # takes 0.1 s; only questions need it

    text = asyncio.run(ask_secret(f"API key of {app_url} (remote {name}), hidden:"))
    check_key(text, "the prompt")
    return text


async def _check_team(client: TrainingClient, team: str) -> None:
    """Raise CommandFailed if the key cannot see the team; accept any team if the server lists none."""
    try:
        names = sorted(member_team.name for member_team in await client.account.teams())
    except (NotFound, BadRequest, Unauthorized):
        return
    if names and team not in names:
        raise CommandFailed(f"no team {team!r} (known: {', '.join(names)})", ExitCode.NOT_FOUND)


@examples("bt-tui logout", "bt-tui logout --remote staging")
@click.command()
@remote_option
@click.pass_obj
def logout(settings: CommandSettings) -> None:
    """Remove a remote: its section of ~/.trussrc (comments are kept) and its entry in the system's keyring.

    An OAuth login is ended on the server too. An API key stays valid until it is revoked in the
    workspace's settings. Without --remote, the only section is removed.
    """
    path = trussrc_path(os.environ)
    sections = read_sections(path)
    if not sections:
        raise CommandFailed(f"no remote to remove: {path} has none", ExitCode.NOT_FOUND)
    names = ", ".join(sections)
    name = settings.remote_name or (next(iter(sections)) if len(sections) == 1 else None)
    if name is None:
        raise CommandFailed(
            f"{path} has several remotes ({names}): choose one with --remote NAME", ExitCode.USAGE
        )
    if name not in sections:
        raise CommandFailed(f"no remote {name!r} in {path} (it has: {names})", ExitCode.NOT_FOUND)
    if sections[name].get("auth_type", "").strip() == "oauth":
        try:  # the remote is removed from this machine even if the server cannot be reached
            run_with(
                resolve_remote(name, environ=os.environ),
                settings,
                lambda client, _output: client.account.log_out(),
            )
        except ApiClientError as error:
            settings.output.print_message(f"still logged in on the server: {error}")
    remove_section(path, name)
    delete_entry(TRUSS_SERVICE, name, os.environ)
    settings.output.print_message(f"removed remote '{name}' ({path})")


MAX_SECRET_CHARACTERS = 1_000_000

SECRET_COLUMNS: tuple[Column[Secret], ...] = (
    text_column("NAME", lambda secret: secret.name, "strong"),
    text_column("TEAM", lambda secret: secret.team_name or "", shrinks=True),
    text_column("CREATED", lambda secret: local_time(secret.created_at, DATE_AND_MINUTE)),
)
team_option = click.option("--team", metavar="TEAM", help="Team (id or name; default: the default team).")


@examples(
    "bt-tui secrets", "bt-tui secrets set hf_access_token < token.txt", "bt-tui secrets delete wandb_api_key"
)
@click.group(invoke_without_command=True)
@team_option
@format_option(TABLE, JSON)
@remote_option
@click.pass_context
def secrets(context: click.Context, team: str | None) -> ExitCode | None:
    """List the names of the secrets that jobs can use; values can never be read back."""
    if context.invoked_subcommand is not None:
        context.default_map = {name: {"team": team} for name in secrets.commands}
        return None

    async def show(client: TrainingClient, output: CommandOutput) -> None:
        team_secrets = await client.account.secrets(await _team_id(client, team))
        document = [secret.model_dump(mode="json", exclude={"value"}) for secret in team_secrets]
        if not team_secrets:
            output.print_message("no secrets")
        output.print_result(document, table_text(SECRET_COLUMNS, team_secrets, output))

    return run_on_remote(context.ensure_object(CommandSettings), show)


@examples("bt-tui secrets set hf_access_token", "pass show hf | bt-tui secrets set hf_access_token")
@secrets.command("set", short_help="Set a secret from a prompt or standard input.")
@click.argument("name", metavar="NAME")
@click.argument("stray", nargs=-1, type=click.UNPROCESSED, metavar="")
@team_option
@client_command
async def set_secret(
    client: TrainingClient, output: CommandOutput, name: str, stray: tuple[str, ...], team: str | None
) -> None:
    """Set a secret; its value is read from a hidden prompt or from standard input.

    One line break at the end of the value is removed.
    """
    refuse_if(
        stray, "a value on the command line stays in the shell history and the process list; pipe it in"
    )
    value = await _secret_value(name)
    secret = await client.account.upsert_secret(name, value, await _team_id(client, team))
    output.print_message(
        f"set secret {secret.name}" + (f" (team {secret.team_name})" if secret.team_name else "")
    )


@examples("bt-tui secrets delete hf_access_token")
@secrets.command("delete", short_help="Delete a secret.")
@click.argument("name", metavar="NAME")
@team_option
@yes_option
@client_command
async def delete_secret(
    client: TrainingClient, output: CommandOutput, name: str, team: str | None, assume_yes: bool
) -> None:
    """Delete a secret, after confirmation. Jobs that use it can no longer start."""
    team_id = await _team_id(client, team)
    confirm(f"delete secret {name}?", assume_yes=assume_yes)
    await client.account.delete_secret(name, team_id)
    output.print_message(f"deleted secret {name}")


async def _secret_value(name: str) -> str:
    if can_ask():
        from tui.commands.support.questions import ask_secret

        return await ask_secret(f"value of {name}, hidden:")
    text = piped_text(MAX_SECRET_CHARACTERS + 1)
    value = text.removesuffix("\n").removesuffix("\r")
    if not value:
        raise CommandFailed("no value on standard input", ExitCode.USAGE)
    if len(text) > MAX_SECRET_CHARACTERS:
        raise CommandFailed("value too long for a secret", ExitCode.USAGE)
    return value


async def _team_id(client: TrainingClient, team: str | None) -> str | None:
    return None if team is None else (await team_named(client, team)).id
