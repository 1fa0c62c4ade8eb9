"""Choose the remote and the settings of a command; this needs no API client.

The remote ``local`` is the emulator on this machine, which is started on demand.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from api_client.errors import ConfigurationError
from api_client.files import read_small_file
from api_client.remotes import Remote, resolve_remote
from api_client.remotes.remote import remote_at, secret
from api_client.remotes.resolution import ListedRemote, RemoteListing
from api_client.remotes.trussrc import read_sections, trussrc_path
from api_client.words import command_line
from tui.commands.support.options import CommandSettings
from tui.commands.support.output import CommandOutput
from tui.settings import config_path
from tui.settings.runs import DEFAULT, RunSettings

if TYPE_CHECKING:
    from api_client.emulator.data_folder import EmulatorAddress
    from tui.settings.model import Configuration, Loaded


DEMO_WORLD, EMPTY_WORLD = "demo", "empty"
LOCAL_REMOTE = "local"
"""Name of the remote for the emulator on this machine, which starts on demand."""


def local_remote(output: CommandOutput) -> Remote:
    """Return the emulator on this machine as a remote, starting it if needed.

    Raises ApiClientError and OSError.
    """
    from api_client.emulator.data_folder import running_address
    from api_client.emulator.processes import ensure_running  # imports psutil, which is slow

    folder = default_data_dir(EMPTY_WORLD)
    if running_address(folder) is None:
        stop = command_line("emulator", "stop")
        output.print_message(f"starting the emulator; stop it and its jobs with: {stop}")
    return _local_remote_at(ensure_running(folder))


def running_local_remote() -> Remote | None:
    """Return the emulator on this machine as a remote if it is running; never start it."""
    from api_client.emulator.data_folder import running_address

    folder = default_data_dir(EMPTY_WORLD)
    try:
        address = running_address(folder)
        return None if address is None else _local_remote_at(address)
    except (ConfigurationError, OSError):
        return None


def _local_remote_at(address: EmulatorAddress) -> Remote:
    return emulator_remote(LOCAL_REMOTE, address.url, Path(address.key_file))


def emulator_remote(name: str, url: str, key_file: Path) -> Remote:
    """Return a remote with the key in ``key_file``. Raises ConfigurationError, and OSError."""
    origin = f"the emulator folder {key_file.parent}"
    key = secret(read_small_file(key_file).decode("ascii", "replace").strip(), origin)
    return remote_at(name, url, origin, key=key, key_origin=origin, api_url_and_origin=(url, origin))


def default_data_dir(world: str) -> Path:
    """Return the emulator's default data directory; the demo's is separate from the user's own jobs."""
    name = "emulator" if world == EMPTY_WORLD else f"emulator-{world}"
    return platformdirs.user_data_path("bt-tui") / name


def chosen_remote(settings: CommandSettings) -> Remote:
    remote = remote_by_name(remote_name(settings.remote_name), settings.output)
    return replace(remote, options=settings.options)


def remote_by_name(name: str | None, output: CommandOutput) -> Remote:
    """Return the remote called `name` (None: the default); ``local`` is the emulator on this machine.

    A section of ~/.trussrc with that name takes precedence. Raises RemoteNotConfigured,
    ConfigurationError, ApiClientError.
    """
    if name == LOCAL_REMOTE and name not in read_sections(trussrc_path(os.environ)):
        return local_remote(output)
    return resolve_remote(name, environ=os.environ)


def with_own_emulator(listing: RemoteListing, selected_name: str | None) -> RemoteListing:
    """Return the listing with ``local`` appended, and selected if ``selected_name`` is ``local``.

    A section with that name in the credentials file takes precedence; it is already listed.
    """
    if any(entry.name == LOCAL_REMOTE and entry.source == "trussrc" for entry in listing.remotes):
        return listing
    is_selected_local = selected_name == LOCAL_REMOTE
    other_entries = [
        replace(entry, is_selected=entry.is_selected and not is_selected_local) for entry in listing.remotes
    ]
    emulator_entry = ListedRemote(LOCAL_REMOTE, "emulator", is_selected_local, running_local_remote(), None)
    return replace(
        listing,
        remotes=(*other_entries, emulator_entry),
        problem=None if is_selected_local else listing.problem,
    )


def started_local_remote() -> Remote:
    """Return the emulator on this machine, starting it silently if needed.

    Blocks while the emulator starts. Raises ApiClientError.
    """
    return local_remote(CommandOutput(stdout=io.StringIO(), stderr=io.StringIO()))


CREDENTIAL_VARIABLES = (
    "BASETEN_API_KEY",
    "BASETEN_TRUSS_AUTH_REMOTE_URL",
    "BASETEN_TRUSS_AUTH_API_KEY",
    "BASETEN_PROFILE",
)
"""Variables with credentials: if one is set, the environment selects the remote, not the settings file."""


def settings_if_any() -> Loaded | None:
    """Return the settings in effect, or None if nothing is set, which is fast to find out.

    Raises ConfigurationError with every problem and its line.
    """
    if not _has_settings():
        return None
    from tui.settings.loading import load  # slow to import; most users have no settings

    return load(os.environ)


def _has_settings() -> bool:
    debug_variables = ("BT_TUI_DEBUG", "BT_TUI_LOG_DRAIN_S")  # these are not settings
    has_variables = any(name.startswith("BT_TUI_") and name not in debug_variables for name in os.environ)
    with suppress(OSError):
        return has_variables or config_path(os.environ).exists()
    return True  # loading the file reports why it cannot be read


def configuration_if_any() -> Configuration | None:
    loaded = settings_if_any()
    return None if loaded is None else loaded.configuration


def run_settings() -> RunSettings:
    """Return the settings for runs, or the defaults if none are set."""
    configuration = configuration_if_any()
    return configuration.runs if configuration is not None else DEFAULT


def dashboard_settings(settings: CommandSettings) -> Loaded:
    """Return the settings of the dashboard, with the flags; the defaults if they are invalid."""
    flags = {"remote": settings.remote_name, "readonly": settings.readonly or None}
    if not any(flags.values()) and not _has_settings():
        from tui.settings.model import Loaded

        return Loaded()
    from tui.settings.loading import load_or_defaults

    return load_or_defaults(os.environ, flags)


def read_only_by(readonly_flag: bool) -> str:
    """Return what makes the session read-only (flag, variable, or file and line); empty if nothing.

    Raises ConfigurationError for invalid settings: they might forbid changes.
    """
    if readonly_flag:
        return "flag --readonly"
    loaded = settings_if_any()
    return loaded.origin("readonly") if loaded is not None and loaded.configuration.readonly else ""


def remote_name(remote_flag: str | None) -> str | None:
    """Return the remote named by ``--remote``, ``BT_TUI_REMOTE`` or the file; None if there is none.

    Credentials in the environment take precedence over the file. Raises ConfigurationError for invalid
    settings, even if they do not name a remote.
    """
    configuration = configuration_if_any()
    return (
        remote_flag
        if configuration is None
        else choose_remote_name(configuration.remote, remote_flag, os.environ)
    )


def choose_remote_name(
    configured: str | None, remote_flag: str | None, environ: Mapping[str, str]
) -> str | None:
    """Return the remote named by ``--remote``, else by the loaded settings (``configured``).

    None if there is none, or if credentials in the environment take precedence over the settings file.
    """
    if remote_flag is not None:
        return remote_flag
    if not environ.get("BT_TUI_REMOTE", "").strip() and any(
        environ.get(name) for name in CREDENTIAL_VARIABLES
    ):
        return None
    return configured
