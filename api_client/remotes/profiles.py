"""Profiles of the Go CLI, and the system keyring, where both official clients store secrets if possible.

In the keyring, the Go CLI's service is ``baseten-profile`` and the truss CLI's service is ``baseten-truss``.
A truss entry has the remote's name as account and, as password, a JSON object with ``auth_type`` and the
secret fields of the section. Reading the keyring needs the optional package ``keyring``.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from api_client.errors import ConfigurationError
from api_client.files import os_errors_as, update_private_file, user_path
from api_client.remotes.remote import (
    Environment,
    OAuthLogin,
    OAuthTokens,
    Remote,
    TokenFields,
    remote_at,
    secret,
)
from api_client.remotes.trussrc import read_credentials

TRUSS_SERVICE = "baseten-truss"
PROFILE_SERVICE = "baseten-profile"
DISABLED_VARIABLE = "BASETEN_TRUSS_AUTH_KEYRING_DISABLED"


class KeyringInaccessible(ConfigurationError):
    """The keyring can't be used: it is disabled, not installed, locked or absent. The message says which."""


def read_entry(service: str, account: str, environ: Mapping[str, str]) -> str | None:
    """Return the password stored for an account; None if the keyring has none. Raises KeyringClosed."""
    password: str | None = _call_keyring(
        "read", environ, lambda keyring: keyring.get_password(service, account)
    )
    return password


def write_entry(service: str, account: str, password: str, environ: Mapping[str, str]) -> None:
    _call_keyring("write", environ, lambda keyring: keyring.set_password(service, account, password))


def delete_entry(service: str, account: str, environ: Mapping[str, str]) -> bool:
    """Delete an account's password; return True if it existed. Treats an inaccessible keyring as empty."""
    with suppress(KeyringInaccessible):
        if read_entry(service, account, environ) is not None:
            _call_keyring("write", environ, lambda keyring: keyring.delete_password(service, account))
            return True
    return False


def _call_keyring(verb: str, environ: Mapping[str, str], call: Callable[[Any], Any]) -> Any:
    """Call a function with the keyring module; ``verb`` is for errors. Raises KeyringClosed."""
    if environ.get(DISABLED_VARIABLE, "").strip().lower() in {"1", "true", "yes"}:
        raise KeyringInaccessible(f"{DISABLED_VARIABLE} disables the system keyring: unset it")
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        install = f"{shlex.quote(sys.executable)} -m pip install keyring"
        raise KeyringInaccessible(f"can't read the system keyring: {install}") from None
    if type(keyring.get_keyring()).__module__ in ("keyring.backends.fail", "keyring.backends.null"):
        raise KeyringInaccessible("this system has no keyring")
    try:
        return call(keyring)
    except (KeyringError, OSError, RuntimeError) as error:
        problem = f"can't {verb} the system keyring ({type(error).__name__}): unlock it and try again"
    raise KeyringInaccessible(problem)


def json_object(text: str | bytes, problem: str) -> dict[str, Any]:
    """Parse a JSON object. Raises ConfigurationError(``problem``), which quotes no content."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ConfigurationError(problem)
    return content


def parse_entry(text: str, source: str) -> dict[str, Any]:
    """Parse the JSON object of a keyring entry. Raises ConfigurationError, which quotes no content."""
    return json_object(text, f"{source} is not the JSON object that the official client writes: log in again")


FILE_NAME = "auth.json"
KEYRING_ORIGIN = f"system keyring ({PROFILE_SERVICE})"
_TOKENS_FIELD, _KEY_FIELD = "oauth_credential", "api_key"
_TOKEN_FIELDS = TokenFields("access_token", "refresh_token", "expiry", is_expiry_epoch_s=False)


class Profiles:
    """Profiles in the Go CLI's file; empty if there is no file.

    Raises ConfigurationError, which quotes no content.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.path = profiles_path(environ)
        text = read_credentials(self.path) if self.path else b""
        content = _parse_file(text, self.path) if self.path and text else {}
        table = content.get("profiles")
        self._profiles: dict[str, Any] = table if isinstance(table, dict) else {}
        current = content.get("current")
        self.current = current if isinstance(current, str) and current in self._profiles else None

    @property
    def names(self) -> list[str]:
        return sorted(self._profiles)

    def remote(self, name: str, environment: Environment) -> Remote:
        assert self.path is not None
        profile = self._profiles[name]
        source = f"profile '{name}' of {self.path}"
        if not isinstance(profile, dict):
            raise ConfigurationError(
                f"{source} is not in the Go CLI's format: 'baseten auth login' rewrites it"
            )
        url = str(profile.get("remote_url") or "").strip()
        is_oauth = profile.get("auth_type") == "oauth"
        text, origin = self._secret(name, profile, source, is_oauth=is_oauth)
        login = None
        if is_oauth:
            tokens = _tokens_of(text, source)
            login = OAuthLogin(
                tokens, partial(self._load_tokens, name, source), partial(self._save_tokens, name, origin)
            )
            key = tokens.access
        else:
            key = secret(text.strip(), origin)
        environment.reject_foreign_addresses(source, url)
        return remote_at(name, url, f"remote_url of {source}", key=key, key_origin=origin, login=login)

    def _secret(
        self, name: str, profile: Mapping[str, Any], source: str, *, is_oauth: bool
    ) -> tuple[str, str]:
        """Return the key, or the tokens as JSON, and its origin.

        The keyring comes first, as in the Go CLI.
        """
        field = _TOKENS_FIELD if is_oauth else _KEY_FIELD
        value_in_file = profile.get(field)
        secret, keyring_problem = None, "the system keyring has none"
        try:
            secret = read_entry(PROFILE_SERVICE, name, self._environ)
        except KeyringInaccessible as inaccessible:
            keyring_problem = str(inaccessible)
        if secret:
            return secret, KEYRING_ORIGIN
        if value_in_file:
            text = json.dumps(value_in_file) if isinstance(value_in_file, dict) else str(value_in_file)
            return text, f"{field} of {source}"
        raise ConfigurationError(
            f"{source} has no {field} ({keyring_problem}): 'baseten auth login' sets one"
        )

    def _load_tokens(self, name: str, source: str) -> OAuthTokens | None:
        reread = Profiles(self._environ)
        profile = reread._profiles.get(name)
        if not isinstance(profile, dict):
            return None
        text, _ = reread._secret(name, profile, source, is_oauth=True)
        return _tokens_of(text, source)

    def _save_tokens(self, name: str, origin: str, tokens: OAuthTokens) -> None:
        """Save renewed tokens where the old tokens are stored."""
        fields = _TOKEN_FIELDS.to_storage(tokens)
        if origin == KEYRING_ORIGIN:
            write_entry(PROFILE_SERVICE, name, json.dumps(fields), self._environ)
            return
        assert self.path is not None
        path = self.path

        def change(old_content: bytes) -> bytes:
            content = _parse_file(old_content, path)
            profiles = content.get("profiles")
            profile = profiles.get(name) if isinstance(profiles, dict) else None
            if not isinstance(profile, dict):
                raise ConfigurationError(f"{path} no longer has the profile '{name}'")
            profile[_TOKENS_FIELD] = fields
            return (json.dumps(content, indent=2) + "\n").encode()

        with os_errors_as(ConfigurationError, f"can't write {path}"):
            update_private_file(path.resolve(), change)


def profiles_path(environ: Mapping[str, str]) -> Path | None:
    """Return the path where the Go CLI stores its profiles; None if the environment has no home folder."""
    folder = environ.get("BASETEN_CONFIG_DIR", "").strip()
    if folder:
        return user_path(folder) / FILE_NAME
    home = environ.get("HOME", "").strip()
    if sys.platform == "darwin":
        base = Path(home, "Library", "Application Support") if home else None
    else:
        configured = environ.get("XDG_CONFIG_HOME", "").strip()
        base = Path(configured) if configured else Path(home, ".config") if home else None
    return base / "baseten" / FILE_NAME if base else None


def _parse_file(text: bytes, path: Path) -> dict[str, Any]:
    return json_object(text, f"{path} cannot be read: it is not a JSON object")


def _tokens_of(text: str, source: str) -> OAuthTokens:
    origin = f"the login of {source}"
    tokens = _TOKEN_FIELDS.from_storage(parse_entry(text, origin), origin)
    if tokens is None:
        raise ConfigurationError(f"{origin} has no access_token: 'baseten auth login' renews it")
    return tokens
