"""``bt-tui login``: a key for a remote, verified and kept in ``~/.trussrc``."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.commands.confirmation import can_ask
from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.options import Settings, examples, remote_option
from tui.commands.session import run_with
from tui.commands.terminal import piped_text

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.remotes import Remote
    from tui.commands.output import Output

DEFAULT_NAME = "baseten"
LARGEST_KEY_CHARACTERS = 4096
SECRET_FIELDS = ("oauth_access_token", "oauth_refresh_token", "oauth_expires_at")

KEY_ON_COMMAND_LINE = (
    "a key given on the command line stays in the shell's history and in lists of processes:"
    " let this ask for it, or pipe it in with --api-key-stdin. Revoke that key if it was a real one"
)


class _KeyOption(click.Option):
    """``--api-key VALUE`` would be natural, and is refused without repeating the value."""

    def handle_parse_result(
        self, ctx: click.Context, opts: object, args: list[str]
    ) -> tuple[object, list[str]]:
        value, args = super().handle_parse_result(ctx, opts, args)  # type: ignore[arg-type]
        if value:
            raise CommandFailed(KEY_ON_COMMAND_LINE, ExitCode.USAGE)
        return value, args


@click.command(
    short_help="Set the key of a remote.",
    epilog=examples(
        "bt-tui login",
        "bt-tui login --remote staging --remote-url https://app.staging.baseten.co",
        "bt-tui login --team Research",
        "pass show baseten | bt-tui login --api-key-stdin",
    ),
)
@click.option(
    "--remote-url", metavar="URL", help="Address of the app (default: the section's own, or Baseten)."
)
@click.option("--team", metavar="TEAM", help="The team to submit to where a config names none.")
@click.option(
    "--api-key-stdin", is_flag=True, help="Read the key from standard input instead of asking for it."
)
@click.option("--api-key", cls=_KeyOption, multiple=True, hidden=True, expose_value=False)
@click.argument("stray", nargs=-1, type=click.UNPROCESSED, metavar="")
@remote_option
@click.pass_obj
def login(
    settings: Settings,
    remote_url: str | None,
    team: str | None,
    api_key_stdin: bool,
    stray: tuple[str, ...],
) -> ExitCode:
    """Set the key of a remote: it is verified against the server and kept in ~/.trussrc.

    The key is asked for without being shown, or read from standard input. The file is readable by you
    alone afterwards; its other sections and all comments stay as they are. --remote names the section
    (default: baseten). The truss CLI reads the same file.
    """
    from api_client.remotes import Remote, check_key
    from api_client.remotes.trussrc import read_sections, trussrc_path
    from api_client.remotes.trussrc_writing import check_section_name

    if stray:
        raise CommandFailed(KEY_ON_COMMAND_LINE, ExitCode.USAGE)
    name = settings.remote_name or DEFAULT_NAME
    check_section_name(name)
    path = trussrc_path(os.environ)
    section = read_sections(path).get(name, {})
    app_url, api_url = _addresses(remote_url or section.get("remote_url", "").strip())
    text = _key_from_stdin() if api_key_stdin else _asked_key(name, app_url)
    check_key(text, "standard input" if api_key_stdin else "the prompt")

    from pydantic import SecretStr

    key = SecretStr(text)
    remote = Remote(name=name, app_url=app_url, api_url=api_url, key=key, key_origin="this login")

    async def verify_and_keep(client: TrainingClient, output: Output) -> ExitCode:
        who = await _verified(client)
        if team is not None:
            await _check_team(client, team)
        _keep(path, remote, team)
        output.remark(f"logged in to {remote.app_url}{who}; the key is kept in {path} [{name}]")
        if _environment_goes_first():
            output.remark(
                "BASETEN_* variables with another key are set and go before it: unset them, or --remote"
            )
        return ExitCode.OK

    return run_with(remote, settings, verify_and_keep)


def _addresses(app_url: str) -> tuple[str, str]:
    """App and API of the remote. Raises ConfigurationError for an unusable address."""
    from api_client.addresses import parse_base_url
    from api_client.remotes import DEFAULT_APP_URL, rest_url

    app_url = app_url or DEFAULT_APP_URL
    source = "the remote's URL"
    return str(parse_base_url(app_url, source=source)), rest_url(app_url, source=source)


def _key_from_stdin() -> str:
    text = piped_text(LARGEST_KEY_CHARACTERS).strip()
    if not text:
        raise CommandFailed("standard input holds no key", ExitCode.USAGE)
    return text


def _asked_key(name: str, app_url: str) -> str:
    if not can_ask():
        raise CommandFailed("there is no terminal to ask at: give --api-key-stdin", ExitCode.USAGE)
    from tui.wizard.terminal import asked_secret

    text = asyncio.run(asked_secret(f"API key of {app_url} (remote {name}), not shown:"))
    if not text:
        raise click.Abort
    return text


async def _verified(client: TrainingClient) -> str:
    """Whom the key belongs to, in words. Raises RequestError if the server does not take it."""
    from api_client.errors import BadRequest, InvalidAnswer, NotFound, Unauthorized

    try:
        user = await client.account.me()
    except (NotFound, BadRequest, InvalidAnswer):
        await client.projects.list()
        return ""
    except Unauthorized as error:
        # Keys of a workspace belong to nobody, and may be good all the same.
        if error.status == 401:
            raise
        await client.projects.list()
        return ""
    who = user.email or user.name
    return (f" as {who}" if who else "") + (f" ({user.workspace_name})" if user.workspace_name else "")


async def _check_team(client: TrainingClient, team: str) -> None:
    """Raise CommandFailed for a team that the key cannot see; a server that lists none is believed."""
    from api_client.errors import BadRequest, NotFound, Unauthorized

    try:
        names = sorted(one.name for one in await client.account.teams())
    except (NotFound, BadRequest, Unauthorized):
        return
    if names and team not in names:
        raise CommandFailed(f"no team {team!r}; there are: {', '.join(names)}", ExitCode.NOT_FOUND)


def _keep(path: Path, remote: Remote, team: str | None) -> None:
    from api_client.remotes.keyring_entries import TRUSS_SERVICE, delete_entry
    from api_client.remotes.trussrc_writing import set_section

    assert remote.key is not None
    values = {
        "remote_provider": "baseten",
        "remote_url": remote.app_url,
        "auth_type": "api_key",
        "api_key": remote.key.get_secret_value(),
    }
    if team is not None:
        values["team"] = team
    set_section(path, remote.name, values, without=SECRET_FIELDS)
    # What an earlier login left there would be worth nothing but trouble.
    delete_entry(TRUSS_SERVICE, remote.name, os.environ)


def _environment_goes_first() -> bool:
    from api_client.remotes.environment import Environment

    return Environment(os.environ).holds_a_remote
