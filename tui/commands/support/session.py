"""Which remote a command talks to: a configured one, or the emulator on this machine."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from api_client.remotes import Remote
from api_client.remotes.listing import ListedRemote, RemoteListing
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.local_emulator import LOCAL_REMOTE, local_remote, running_local_remote
from tui.commands.support.options import Settings
from tui.commands.support.output import Output
from tui.settings.checked import CONFIG_VARIABLE, config_path
from tui.system.process import collect_as_usual

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.events import RequestEvent
    from tui.settings.checked import CheckedSettings
    from tui.settings.loading import Loaded
    from tui.settings.model import Configuration


def chosen_remote(settings: Settings) -> Remote:
    """The remote that flags, environment and files lead to. Raises as ``remote_called`` does."""
    return remote_called(remote_name(settings.remote_name, os.environ), settings.output)


def remote_called(name: str | None, output: Output) -> Remote:
    """The remote of that name, the usual one for None; ``local`` is the emulator on this machine.

    A section of ~/.trussrc that is called so goes before it. Raises RemoteNotConfigured,
    ConfigurationError, CommandFailed.
    """
    from api_client.remotes import resolve_remote

    if name == LOCAL_REMOTE:
        from api_client.remotes.trussrc import read_sections, trussrc_path

        if name not in read_sections(trussrc_path(os.environ)):
            return local_remote(output)
    return resolve_remote(name, environ=os.environ)


EMULATOR_SOURCE = "emulator"


def with_own_emulator(listing: RemoteListing, wanted: str | None) -> RemoteListing:
    """The listing with ``local`` at its end, chosen if it is ``wanted``.

    A section of the credentials file that is called so hides it; that one is listed already.
    """
    if any(one.name == LOCAL_REMOTE and one.source == "trussrc" for one in listing.remotes):
        return listing
    is_wanted = wanted == LOCAL_REMOTE
    others = [replace(one, is_selected=one.is_selected and not is_wanted) for one in listing.remotes]
    own = ListedRemote(LOCAL_REMOTE, EMULATOR_SOURCE, is_wanted, running_local_remote(), None)
    return replace(listing, remotes=(*others, own), problem=None if is_wanted else listing.problem)


def started_local_remote() -> Remote:
    """The emulator on this machine, started if need be, without a word on the dashboard's terminal.

    Blocks for as long as the start takes. Raises CommandFailed.
    """
    return local_remote(Output(stdout=io.StringIO(), stderr=io.StringIO()))


OTHER_VARIABLES = frozenset({"BT_TUI_DEBUG", "BT_TUI_LOG_DRAIN_S"})
"""Variables of this program that are no settings."""

CREDENTIALS = (
    "BASETEN_API_KEY",
    "BASETEN_TRUSS_AUTH_REMOTE_URL",
    "BASETEN_TRUSS_AUTH_API_KEY",
    "BASETEN_PROFILE",
)
"""With one of these in the environment, that is where to connect, whatever the file says."""


def configuration(environ: Mapping[str, str] | None = None) -> Configuration:
    """The settings in force. Raises CommandFailed with every problem and its line, if they are broken."""
    return _loaded(os.environ if environ is None else environ).configuration


def read_only_by(flag: bool, environ: Mapping[str, str]) -> str:
    """What forbids changes, in words: the flag, the variable, or the file and its line; empty: nothing does.

    Raises CommandFailed for settings that are broken: what they forbid cannot be told.
    """
    if flag:
        return "flag --readonly"
    return _checked(environ).read_only_by if has_settings(environ) else ""


def _checked(environ: Mapping[str, str]) -> CheckedSettings:
    """What every command wants to know of the settings; the file is checked once for each change of it."""
    from tui.settings.checked import CheckedSettings, keep, recall, stamp_of

    stamp = stamp_of(environ)
    found = recall(stamp)
    if found is None:
        loaded = _loaded(environ)
        forbidden_by = loaded.origin("readonly") if loaded.configuration.readonly else ""
        found = CheckedSettings(loaded.configuration.remote, forbidden_by)
        keep(stamp, found)
    return found


def _loaded(environ: Mapping[str, str]) -> Loaded:
    from tui.settings.loading import ConfigurationBroken, load

    try:
        return load(environ)
    except ConfigurationBroken as broken:
        raise CommandFailed(str(broken), ExitCode.USAGE) from None


def configuration_if_any(environ: Mapping[str, str] | None = None) -> Configuration | None:
    """The settings in force; None, and nothing is loaded, where nobody set anything. Raises CommandFailed."""
    known = os.environ if environ is None else environ
    return configuration(known) if has_settings(known) else None


def remote_name(flag: str | None, environ: Mapping[str, str]) -> str | None:
    """The remote that the person named: by ``--remote``, ``BT_TUI_REMOTE``, or in the file; None if nowhere.

    Credentials in the environment come before the file. Costs next to nothing where there is no file.
    Raises CommandFailed for settings that are broken, whether or not they name a remote.
    """
    if not has_settings(environ):
        return flag
    return remote_of(_checked(environ).remote, flag, environ)


def remote_of(configured: str | None, flag: str | None, environ: Mapping[str, str]) -> str | None:
    """The same, by what the settings say, which were read already."""
    if flag is not None:
        return flag
    if not environ.get("BT_TUI_REMOTE", "").strip() and any(environ.get(name) for name in CREDENTIALS):
        return None
    return configured


def has_settings(environ: Mapping[str, str]) -> bool:
    """Whether anybody set anything: a file that exists or is named, or one of the variables."""
    named = any(name.startswith("BT_TUI_") and name not in OTHER_VARIABLES for name in environ)
    return named or bool(environ.get(CONFIG_VARIABLE)) or config_path(environ).exists()


HTTPX_COMMAND_LINE = "httpx._main"

LASTING_S = 5.0
"""A command that still runs then goes on for long, as ``logs --follow`` does."""

ClientAction = Callable[["TrainingClient", Output], Awaitable[ExitCode]]


def run_on_remote(settings: Settings, action: ClientAction) -> ExitCode:
    """Resolve the remote, run ``action`` with a client on it, and return its exit code.

    The client refuses to change anything where ``--readonly`` or the settings forbid it. Raises what the
    client raises; waits before retries are remarked on stderr as they happen.
    """
    return run_with(chosen_remote(settings), settings, action)


def run_with(remote: Remote, settings: Settings, action: ClientAction) -> ExitCode:
    """Run ``action`` with a client on that very remote, as ``run_on_remote`` does."""
    output, forbidden_by = settings.output, read_only_by(settings.readonly, os.environ)
    with without_httpx_command_line():
        from api_client.client import TrainingClient

    async def session() -> ExitCode:
        asyncio.get_running_loop().call_later(LASTING_S, collect_as_usual)
        async with TrainingClient(
            remote, on_event=lambda event: _remark_wait(event, output), read_only_by=forbidden_by
        ) as client:
            return await action(client, output)

    try:
        return asyncio.run(session())
    finally:
        if remote.login is not None and remote.login.not_kept:
            output.remark(f"the renewed login could not be kept: {remote.login.not_kept}")


@contextmanager
def without_httpx_command_line() -> Iterator[None]:
    """Keep ``import httpx`` from loading its own command line, and with it rich and pygments.

    Where click and rich are installed httpx imports them for its ``httpx`` command: 40 % of its import.
    """
    absent = HTTPX_COMMAND_LINE not in sys.modules
    if absent:
        sys.modules[HTTPX_COMMAND_LINE] = None  # type: ignore[assignment]  # "cannot be imported"
    try:
        yield
    finally:
        if absent:
            del sys.modules[HTTPX_COMMAND_LINE]


def _remark_wait(event: RequestEvent, output: Output) -> None:
    """Say on stderr that a request waits before it is tried again, and why."""
    if event.kind == "waiting":
        output.remark(f"{event.reason}; retrying in {event.delay_s:.1f} s")
