"""Choose the remote and the settings of a command, and run its requests with a client."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from api_client.client import TrainingClient
from api_client.events import RequestEvent
from api_client.remotes import Remote, resolve_remote
from api_client.remotes.listing import ListedRemote, RemoteListing
from api_client.remotes.trussrc import read_sections, trussrc_path
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.local_emulator import LOCAL_REMOTE, local_remote, running_local_remote
from tui.commands.support.options import CommandSettings
from tui.commands.support.output import Output
from tui.settings.checked import CONFIG_VARIABLE, CheckedSettings, config_path, keep, recall, stamp_of
from tui.system.process import restore_collection

if TYPE_CHECKING:
    from tui.settings.loading import Loaded
    from tui.settings.model import Configuration


def chosen_remote(settings: CommandSettings) -> Remote:
    """Return the remote selected by flags, environment and files. Raises as ``remote_by_name`` does."""
    return remote_by_name(remote_name(settings.remote_name, os.environ), settings.output)


def remote_by_name(name: str | None, output: Output) -> Remote:
    """Return the remote called `name` (None: the default); ``local`` is the emulator on this machine.

    A section of ~/.trussrc with that name takes precedence. Raises RemoteNotConfigured,
    ConfigurationError, CommandFailed.
    """
    if name == LOCAL_REMOTE and name not in read_sections(trussrc_path(os.environ)):
        return local_remote(output)
    return resolve_remote(name, environ=os.environ)


EMULATOR_SOURCE = "emulator"


def with_own_emulator(listing: RemoteListing, wanted: str | None) -> RemoteListing:
    """Return the listing with ``local`` appended, selected if it is ``wanted``.

    A section with that name in the credentials file takes precedence; it is already listed.
    """
    if any(one.name == LOCAL_REMOTE and one.source == "trussrc" for one in listing.remotes):
        return listing
    is_wanted = wanted == LOCAL_REMOTE
    others = [replace(one, is_selected=one.is_selected and not is_wanted) for one in listing.remotes]
    own = ListedRemote(LOCAL_REMOTE, EMULATOR_SOURCE, is_wanted, running_local_remote(), None)
    return replace(listing, remotes=(*others, own), problem=None if is_wanted else listing.problem)


def started_local_remote() -> Remote:
    """Return the emulator on this machine, starting it silently if needed.

    Blocks while the emulator starts. Raises CommandFailed.
    """
    return local_remote(Output(stdout=io.StringIO(), stderr=io.StringIO()))


OTHER_VARIABLES = frozenset({"BT_TUI_DEBUG", "BT_TUI_LOG_DRAIN_S"})
"""Environment variables of this program that are not settings."""

CREDENTIALS = (
    "BASETEN_API_KEY",
    "BASETEN_TRUSS_AUTH_REMOTE_URL",
    "BASETEN_TRUSS_AUTH_API_KEY",
    "BASETEN_PROFILE",
)
"""Credentials in the environment: if one is set, it selects the remote, regardless of the file."""


def configuration(environ: Mapping[str, str] | None = None) -> Configuration:
    """Return the effective settings. Raises CommandFailed with every problem and its line."""
    return _loaded(os.environ if environ is None else environ).configuration


def read_only_by(flag: bool, environ: Mapping[str, str]) -> str:
    """Return what makes the session read-only (flag, variable, or file and line); empty if nothing.

    Raises CommandFailed for invalid settings: they might forbid changes.
    """
    if flag:
        return "flag --readonly"
    return _checked(environ).read_only_by if has_settings(environ) else ""


def _checked(environ: Mapping[str, str]) -> CheckedSettings:
    """Return the settings that every command needs; the file is checked only when it has changed."""
    stamp = stamp_of(environ)
    found = recall(stamp)
    if found is None:
        loaded = _loaded(environ)
        forbidden_by = loaded.origin("readonly") if loaded.configuration.readonly else ""
        found = CheckedSettings(loaded.configuration.remote, forbidden_by)
        keep(stamp, found)
    return found


def _loaded(environ: Mapping[str, str]) -> Loaded:
    from tui.settings.loading import ConfigurationBroken, load  # slow, and most commands have no settings

    try:
        return load(environ)
    except ConfigurationBroken as broken:
        raise CommandFailed(str(broken), ExitCode.USAGE) from None


def configuration_if_any(environ: Mapping[str, str] | None = None) -> Configuration | None:
    """Return the effective settings; None, without loading, if none are set. Raises CommandFailed."""
    known = os.environ if environ is None else environ
    return configuration(known) if has_settings(known) else None


def remote_name(flag: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the remote named by ``--remote``, ``BT_TUI_REMOTE`` or the file; None if there is none.

    Credentials in the environment take precedence over the file. Costs almost nothing if there is no
    file. Raises CommandFailed for invalid settings, even if they do not name a remote.
    """
    if not has_settings(environ):
        return flag
    return remote_of(_checked(environ).remote, flag, environ)


def remote_of(configured: str | None, flag: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the same as ``remote_name``, given the remote from settings that are already loaded."""
    if flag is not None:
        return flag
    if not environ.get("BT_TUI_REMOTE", "").strip() and any(environ.get(name) for name in CREDENTIALS):
        return None
    return configured


def has_settings(environ: Mapping[str, str]) -> bool:
    """Return True if any setting is set: the file exists or is named, or a variable is set."""
    named = any(name.startswith("BT_TUI_") and name not in OTHER_VARIABLES for name in environ)
    return named or bool(environ.get(CONFIG_VARIABLE)) or config_path(environ).exists()


LASTING_S = 5.0
"""Time after which a command counts as long-running, like ``logs --follow``."""

ClientAction = Callable[[TrainingClient, Output], Awaitable[ExitCode]]


def run_on_remote(settings: CommandSettings, action: ClientAction) -> ExitCode:
    """Resolve the remote, run ``action`` with a client for it, and return its exit code.

    The client refuses changes if ``--readonly`` or the settings forbid them. Raises the client's errors;
    waits before retries are remarked on stderr as they happen.
    """
    return run_with(chosen_remote(settings), settings, action)


def run_with(remote: Remote, settings: CommandSettings, action: ClientAction) -> ExitCode:
    output, forbidden_by = settings.output, read_only_by(settings.readonly, os.environ)

    async def session() -> ExitCode:
        asyncio.get_running_loop().call_later(LASTING_S, restore_collection)
        async with TrainingClient(
            remote, on_event=lambda event: _report_wait(event, output), read_only_by=forbidden_by
        ) as client:
            return await action(client, output)

    try:
        return asyncio.run(session())
    finally:
        if remote.login is not None and remote.login.not_kept:
            output.remark(f"the renewed login could not be saved: {remote.login.not_kept}")


def _report_wait(event: RequestEvent, output: Output) -> None:
    if event.kind == "waiting":
        output.remark(f"{event.reason}; retrying in {event.delay_s:.1f} s")
