"""The system's keyring, where the official clients keep what they can (extra ``keyring``).

The truss CLI: service ``baseten-truss``, the account is the remote's name, the password a JSON object of
``auth_type`` and the section's secret fields. The Go CLI: service ``baseten-profile``.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping

from api_client.errors import ConfigurationError

TRUSS_SERVICE = "baseten-truss"
PROFILE_SERVICE = "baseten-profile"
DISABLED_VARIABLE = "BASETEN_TRUSS_AUTH_KEYRING_DISABLED"
_YES = frozenset({"1", "true", "yes"})


class KeyringClosed(ConfigurationError):
    """The keyring cannot be asked: forbidden, not installed, locked or absent. The message says which."""


def is_disabled(environ: Mapping[str, str]) -> bool:
    """Whether the environment forbids to ask the keyring."""
    return environ.get(DISABLED_VARIABLE, "").strip().lower() in _YES


def read_entry(service: str, account: str, environ: Mapping[str, str]) -> str | None:
    """The password kept for an account, None if there is none. Raises KeyringClosed."""
    import_problem = _why_closed(environ)
    if import_problem:
        raise KeyringClosed(import_problem)
    import keyring
    from keyring.errors import KeyringError

    problem = ""
    try:
        return keyring.get_password(service, account)
    except (KeyringError, OSError, RuntimeError) as error:
        problem = type(error).__name__
    raise KeyringClosed(f"the system's keyring cannot be read ({problem}): unlock it and try again")


def write_entry(service: str, account: str, password: str, environ: Mapping[str, str]) -> None:
    """Keep a password for an account. Raises KeyringClosed."""
    problem = _why_closed(environ)
    if not problem:
        import keyring
        from keyring.errors import KeyringError

        try:
            keyring.set_password(service, account, password)
            return
        except (KeyringError, OSError, RuntimeError) as error:
            problem = f"the system's keyring cannot be written ({type(error).__name__})"
    raise KeyringClosed(problem)


def delete_entry(service: str, account: str, environ: Mapping[str, str]) -> bool:
    """Forget an account's password; whether there was one. A keyring that cannot be asked has none."""
    if _why_closed(environ):
        return False
    import keyring
    from keyring.errors import KeyringError

    try:
        if keyring.get_password(service, account) is None:
            return False
        keyring.delete_password(service, account)
    except (KeyringError, OSError, RuntimeError):
        return False
    return True


def parse_entry(text: str, source: str) -> dict[str, object]:
    """The JSON object of an entry. Raises ConfigurationError, which quotes nothing of it."""
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        raise ConfigurationError(
            f"{source} is not the JSON object that the official client writes: log in again"
        )
    return entry


def _why_closed(environ: Mapping[str, str]) -> str:
    if is_disabled(environ):
        return f"{DISABLED_VARIABLE} forbids to ask the system's keyring: unset it"
    try:
        import keyring
    except ImportError:
        return f"the system's keyring cannot be read: {shlex.quote(sys.executable)} -m pip install keyring"
    module = type(keyring.get_keyring()).__module__
    if module in ("keyring.backends.fail", "keyring.backends.null"):
        return "this system has no keyring that could be asked"
    return ""
