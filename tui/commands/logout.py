"""``bt-tui logout``: forget a remote of ``~/.trussrc``."""

from __future__ import annotations

import os

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.options import Settings, examples, remote_option
from tui.commands.session import run_with


@click.command(
    short_help="Forget a remote's key.",
    epilog=examples(
        "bt-tui logout",
        "bt-tui logout --remote staging",
    ),
)
@remote_option
@click.pass_obj
def logout(settings: Settings) -> ExitCode:
    """Forget a remote: its section of ~/.trussrc (comments stay) and its entry of the system's keyring.

    An OAuth login is ended at the server too. An API key stays valid until it is revoked in the
    workspace's settings. Without --remote the only section is meant.
    """
    from api_client.remotes.keyring_entries import TRUSS_SERVICE, delete_entry
    from api_client.remotes.trussrc import read_sections, trussrc_path
    from api_client.remotes.trussrc_writing import remove_section

    path = trussrc_path(os.environ)
    sections = read_sections(path)
    if not sections:
        raise CommandFailed(f"no remote to forget: {path} has none", ExitCode.NOT_FOUND)
    names = ", ".join(sections)
    name = settings.remote_name or (next(iter(sections)) if len(sections) == 1 else None)
    if name is None:
        raise CommandFailed(f"{path} has several remotes ({names}): say which with --remote", ExitCode.USAGE)
    if name not in sections:
        raise CommandFailed(f"no remote {name!r} in {path} (it has: {names})", ExitCode.NOT_FOUND)
    if sections[name].get("auth_type", "").strip() == "oauth":
        _end_login(settings, name)
    remove_section(path, name)
    delete_entry(TRUSS_SERVICE, name, os.environ)
    settings.output.remark(f"forgot remote '{name}' ({path})")
    return ExitCode.OK


def _end_login(settings: Settings, name: str) -> None:
    """Tell the server; whatever goes wrong with that, the login is forgotten here all the same."""
    from api_client.errors import ApiClientError
    from api_client.remotes import resolve_remote

    async def end(client: object, _output: object) -> ExitCode:
        from api_client.client import TrainingClient

        assert isinstance(client, TrainingClient)
        await client.account.log_out()
        return ExitCode.OK

    try:
        run_with(resolve_remote(name, environ=os.environ), settings, end)
    except ApiClientError as error:
        settings.output.remark(f"the server was not told: {error}")
