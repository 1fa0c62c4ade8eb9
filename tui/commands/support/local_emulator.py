"""The remote ``local``: the emulator on this machine, started when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from api_client.emulator.data_folder import running_address
from api_client.errors import ConfigurationError
from api_client.files import read_small_file
from api_client.remotes import Remote
from api_client.remotes.remote import remote_at, secret
from api_client.words import command_line
from tui.commands.support.output import Output

DEMO_WORLD, EMPTY_WORLD = "demo", "empty"
LOCAL_REMOTE = "local"
"""Name of the remote for the emulator on this machine, which starts on demand."""


def local_remote(output: Output) -> Remote:
    """Return the emulator on this machine as a remote, starting it if needed.

    Raises ApiClientError and OSError.
    """
    from api_client.emulator.processes import ensure_running  # psutil: not for every command

    folder = default_data_dir(EMPTY_WORLD)
    if running_address(folder) is None:
        stop = command_line("emulator", "stop")
        output.remark(f"starting the emulator; stop it and its jobs with: {stop}")
    return _local(ensure_running(folder, world=EMPTY_WORLD))


def running_local_remote() -> Remote | None:
    """Return the emulator on this machine as a remote if it is running; never start it."""
    folder = default_data_dir(EMPTY_WORLD)
    try:
        address = running_address(folder)
        return None if address is None else _local(address)
    except (ConfigurationError, OSError):
        return None


def _local(address: Mapping[str, Any]) -> Remote:
    return emulator_remote(LOCAL_REMOTE, address["url"], Path(address["key_file"]))


def emulator_remote(name: str, url: str, key_file: Path) -> Remote:
    """Return a remote with the key in that file. Raises ConfigurationError, and OSError."""
    origin = f"the emulator folder {key_file.parent}"
    key = secret(read_small_file(key_file).decode("ascii", "replace").strip(), origin)
    return remote_at(name, url, origin, key=key, key_origin=origin, api=(url, origin))


def default_data_dir(world: str) -> Path:
    """Return the emulator's default data directory; the demo's is separate from the user's own jobs."""
    name = "emulator" if world == EMPTY_WORLD else f"emulator-{world}"
    return platformdirs.user_data_path("bt-tui") / name
