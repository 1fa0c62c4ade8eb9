"""The settings of a headless command: read only where there is something to read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.configuration.places import CONFIG_VARIABLE, config_path

if TYPE_CHECKING:
    from tui.configuration.checked import CheckedSettings
    from tui.configuration.loading import Loaded
    from tui.configuration.model import Configuration

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
    from tui.configuration.checked import CheckedSettings, keep, recall, stamp_of

    stamp = stamp_of(environ)
    found = recall(stamp)
    if found is None:
        loaded = _loaded(environ)
        forbidden_by = loaded.origin("readonly") if loaded.configuration.readonly else ""
        found = CheckedSettings(loaded.configuration.remote, forbidden_by)
        keep(stamp, found)
    return found


def _loaded(environ: Mapping[str, str]) -> Loaded:
    from tui.configuration.loading import ConfigurationBroken, load

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
