"""Which remote a command talks to: a configured one, or the emulator on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tui.commands.configured import remote_name
from tui.commands.emulator import LOCAL_REMOTE, local_remote

if TYPE_CHECKING:
    from api_client.remotes import Remote
    from tui.commands.options import Settings
    from tui.commands.output import Output


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
