"""Which remote a command talks to: a configured one, or the emulator on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tui.commands.configured import remote_name

if TYPE_CHECKING:
    from api_client.remotes import Remote
    from tui.commands.options import Settings


def chosen_remote(settings: Settings) -> Remote:
    """The remote that flags, environment and files lead to.

    Raises RemoteNotConfigured, ConfigurationError, CommandFailed.
    """
    from api_client.remotes import resolve_remote

    return resolve_remote(remote_name(settings.remote_name, os.environ), environ=os.environ)
