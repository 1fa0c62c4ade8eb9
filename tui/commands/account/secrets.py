"""``bt-tui secrets``: List, set and delete secrets; values are never shown."""

from __future__ import annotations

import click

from api_client.client import TrainingClient
from api_client.models import Secret
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.lookups import team_named
from tui.commands.support.options import (
    JSON,
    TABLE,
    CommandSettings,
    examples,
    format_option,
    remote_option,
    yes_option,
)
from tui.commands.support.output import Output
from tui.commands.support.questions import ask_secret
from tui.commands.support.session import client_command, run_on_remote
from tui.commands.support.tables import table_of
from tui.commands.support.terminal import can_ask, confirm, piped_text
from tui.tables.column import Column, text_column
from tui.text.times import DATE_AND_MINUTE, local_time

LARGEST_VALUE_CHARACTERS = 1_000_000

COLUMNS: tuple[Column[Secret], ...] = (
    text_column("NAME", lambda secret: secret.name, "strong"),
    text_column("TEAM", lambda secret: secret.team_name or "", shrinks=True),
    text_column("CREATED", lambda each: local_time(each.created_at, DATE_AND_MINUTE)),
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
def secrets(context: click.Context, team: str | None, output_format: str) -> ExitCode | None:
    """List the names of the secrets that jobs can use; values can never be read back."""
    if context.invoked_subcommand is not None:
        context.default_map = {name: {"team": team} for name in secrets.commands}
        return None

    async def show(client: TrainingClient, output: Output) -> None:
        stored = await client.account.secrets(await _team_id(client, team))
        document = [secret.model_dump(mode="json", exclude={"value"}) for secret in stored]
        if not stored:
            output.remark("no secrets")
        output.answer(output_format, document, table_of(COLUMNS, stored, output))

    return run_on_remote(context.ensure_object(CommandSettings), show)


@examples("bt-tui secrets set hf_access_token", "pass show hf | bt-tui secrets set hf_access_token")
@secrets.command("set", short_help="Set a secret from a prompt or standard input.")
@click.argument("name", metavar="NAME")
@click.argument("stray", nargs=-1, type=click.UNPROCESSED, metavar="")
@team_option
@client_command
async def set_secret(
    client: TrainingClient, output: Output, name: str, stray: tuple[str, ...], team: str | None
) -> None:
    """Set a secret; its value is read from a hidden prompt or from standard input.

    One line break at the end of the value is removed.
    """
    if stray:
        raise CommandFailed(
            "a value on the command line stays in the shell history and the process list; pipe it in",
            ExitCode.USAGE,
        )
    value = await _value(name)
    secret = await client.account.upsert_secret(name, value, await _team_id(client, team))
    output.remark(f"set secret {secret.name}" + (f" (team {secret.team_name})" if secret.team_name else ""))


@examples("bt-tui secrets delete hf_access_token")
@secrets.command("delete", short_help="Delete a secret.")
@click.argument("name", metavar="NAME")
@team_option
@yes_option
@client_command
async def delete_secret(
    client: TrainingClient, output: Output, name: str, team: str | None, assume_yes: bool
) -> None:
    """Delete a secret, after confirmation. Jobs that use it can no longer start."""
    team_id = await _team_id(client, team)
    confirm(f"delete secret {name}?", assume_yes=assume_yes)
    await client.account.delete_secret(name, team_id)
    output.remark(f"deleted secret {name}")


async def _value(name: str) -> str:
    if can_ask():
        return await ask_secret(f"value of {name}, hidden:")
    text = piped_text(LARGEST_VALUE_CHARACTERS + 1)
    value = text.removesuffix("\n").removesuffix("\r")
    if not value:
        raise CommandFailed("no value on standard input", ExitCode.USAGE)
    if len(text) > LARGEST_VALUE_CHARACTERS:
        raise CommandFailed("value too long for a secret", ExitCode.USAGE)
    return value


async def _team_id(client: TrainingClient, team: str | None) -> str | None:
    return None if team is None else (await team_named(client, team)).id
