"""Choose the remote to use from flags, environment and files, and build it.

The package docstring lists the sources in order. A key that belongs to a remote is only sent to that remote's
own hosts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from api_client.addresses import parse_base_url
from api_client.errors import ConfigurationError
from api_client.remotes.environment import API_KEY_VARIABLE, PROFILE_VARIABLE, Environment
from api_client.remotes.profiles import (
    TRUSS_SERVICE,
    KeyringClosed,
    Profiles,
    parse_entry,
    read_entry,
    write_entry,
)
from api_client.remotes.remote import (
    DEFAULT_APP_URL,
    DEFAULT_ORIGIN,
    DERIVED_ORIGIN,
    ENVIRONMENT_REMOTE,
    OAuthLogin,
    OAuthTokens,
    Remote,
    RemoteNotConfigured,
    TokenStore,
    rest_url,
    secret,
)
from api_client.remotes.trussrc import Section, read_sections, set_section, trussrc_path

API_KEY, OAUTH = "api_key", "oauth"
ACCESS_FIELD, REFRESH_FIELD, EXPIRY_FIELD = "oauth_access_token", "oauth_refresh_token", "oauth_expires_at"
KEYRING_ORIGIN = f"system keyring ({TRUSS_SERVICE})"


def remote_of_section(name: str, section: Section, path: Path, environment: Environment) -> Remote:
    """Build the remote that a section describes.

    Its own key (from the file, else the keyring) is only sent to its own hosts. Without one,
    BASETEN_API_KEY is sent. Raises ConfigurationError.
    """
    where = f"{path} [{name}]"
    if section.get("remote_provider", "baseten").strip() != "baseten":
        raise ConfigurationError(f"{where} is not a Baseten remote: it has another remote_provider")
    own_url = section.get("remote_url", "").strip()
    app_url = own_url or DEFAULT_APP_URL
    source = f"remote_url of {where}"
    key, key_origin, login, why_not = _own_key(name, section, where, path, environment.variables)
    if key is not None:
        environment.reject_foreign_addresses(where, app_url)
        api_url, api_url_origin = rest_url(app_url, source=source), DERIVED_ORIGIN
    else:
        key, key_origin = environment.api_key, API_KEY_VARIABLE
        if key is None:
            raise ConfigurationError(
                f"{where} has {why_not}, and {API_KEY_VARIABLE} is not set: set a key with 'bt-tui login "
                f"--remote {name}'"
            )
        api_url, api_url_origin = environment.rest_base(app_url, source)
    team = section.get("team", "").strip() or None
    return Remote(
        name=name,
        app_url=str(parse_base_url(app_url, source=source)),
        api_url=api_url,
        key=key,
        key_origin=key_origin,
        team=team,
        app_url_origin=source if own_url else DEFAULT_ORIGIN,
        api_url_origin=api_url_origin,
        team_origin=f"team of {where}" if team else "",
        login=login,
    )


def _own_key(
    name: str, section: Section, where: str, path: Path, environ: Mapping[str, str]
) -> tuple[SecretStr | None, str, OAuthLogin | None, str]:
    """Return the key, its origin and its login; without a key, the reason why there is none."""
    kind = section.get("auth_type", "").strip().lower()
    field = ACCESS_FIELD if kind == OAUTH else API_KEY
    inline = section.get(field, "").strip()
    if inline:
        store = TokenStore(
            partial(_tokens_of_section, name, path),
            lambda tokens: set_section(path, name, _fields_of(tokens)),
        )
        fields: Mapping[str, object] = section
        origin = f"{field} of {where}"
    elif kind in (API_KEY, OAUTH):
        origin = KEYRING_ORIGIN
        try:
            fields = _keyring_fields(name, kind, environ)
        except KeyringClosed as closed:
            return None, "", None, f"no {field} ({closed})"
        if not fields:
            return None, "", None, f"no {field}, nor has the system keyring"
        store = TokenStore(
            partial(_tokens_of_keyring, name, environ), partial(_keep_in_keyring, name, environ)
        )
    else:
        return None, "", None, "no api_key"
    if kind == OAUTH:
        tokens = _tokens_in(fields, origin)
        return tokens.access, origin, OAuthLogin(tokens, store), ""
    return secret(str(fields.get(API_KEY, "")).strip(), origin), origin, None, ""


def _keyring_fields(name: str, kind: str, environ: Mapping[str, str]) -> Mapping[str, object]:
    """Return the secret fields that the truss CLI stored in the keyring; none without such an entry."""
    text = read_entry(TRUSS_SERVICE, name, environ)
    if not text:
        return {}
    source = f"the keyring entry of remote '{name}'"
    entry = parse_entry(text, source)
    field = ACCESS_FIELD if kind == OAUTH else API_KEY
    if entry.get("auth_type") != kind or not str(entry.get(field) or "").strip():
        raise ConfigurationError(f"{source} has no {field}: log in again with 'truss login --remote {name}'")
    return entry


def _tokens_in(fields: Mapping[str, object], origin: str) -> OAuthTokens:
    access = secret(str(fields.get(ACCESS_FIELD, "")).strip(), origin)
    assert access is not None
    return OAuthTokens(
        access=access,
        refresh=secret(str(fields.get(REFRESH_FIELD) or "").strip() or None, origin),
        expires_at=_moment(fields.get(EXPIRY_FIELD)),
    )


def _moment(value: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(str(value)), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _fields_of(tokens: OAuthTokens) -> dict[str, str]:
    fields = {ACCESS_FIELD: tokens.access.get_secret_value()}
    if tokens.refresh is not None:
        fields[REFRESH_FIELD] = tokens.refresh.get_secret_value()
    if tokens.expires_at is not None:
        fields[EXPIRY_FIELD] = str(int(tokens.expires_at.timestamp()))
    return fields


def _tokens_of_section(name: str, path: Path) -> OAuthTokens | None:
    section = read_sections(path).get(name, {})
    if not section.get(ACCESS_FIELD, "").strip():
        return None
    return _tokens_in(section, f"{ACCESS_FIELD} of {path} [{name}]")


def _tokens_of_keyring(name: str, environ: Mapping[str, str]) -> OAuthTokens | None:
    fields = _keyring_fields(name, OAUTH, environ)
    return _tokens_in(fields, KEYRING_ORIGIN) if fields else None


def _keep_in_keyring(name: str, environ: Mapping[str, str], tokens: OAuthTokens) -> None:
    fields: dict[str, object] = {"auth_type": OAUTH, **_fields_of(tokens)}
    if tokens.expires_at is not None:
        fields[EXPIRY_FIELD] = int(tokens.expires_at.timestamp())
    write_entry(TRUSS_SERVICE, name, json.dumps(fields), environ)


Place = tuple[str, str]
"""Source (one of the three below), and the name in it."""

ENVIRONMENT, TRUSSRC, PROFILE = "environment", "trussrc", "profile"


class Sources:
    """All sources of remotes, read on first use."""

    def __init__(self, environ: Mapping[str, str], path: Path | None = None) -> None:
        self.environment = Environment(environ)
        self.path = path or trussrc_path(environ)
        self._environ = environ
        self._sections: dict[str, dict[str, str]] | None = None
        self._profiles: Profiles | None = None

    @property
    def sections(self) -> dict[str, dict[str, str]]:
        """Sections of the truss CLI's file. Raises ConfigurationError."""
        if self._sections is None:
            self._sections = read_sections(self.path)
        return self._sections

    @property
    def profiles(self) -> Profiles:
        """Profiles of the Go CLI. Raises ConfigurationError."""
        if self._profiles is None:
            self._profiles = Profiles(self._environ)
        return self._profiles

    def choose(self, name: str | None) -> Place:
        """Select a remote. Raises RemoteNotConfigured, ConfigurationError."""
        if name is None or name == ENVIRONMENT_REMOTE:
            if self.environment.holds_a_remote:
                return ENVIRONMENT, ENVIRONMENT_REMOTE
            if name is not None:
                raise ConfigurationError(f"no remote '{name}': {API_KEY_VARIABLE} is not set")
        if name is not None:
            return self._named(name)
        if self.environment.profile is not None:
            return self._profile_of_environment(self.environment.profile)
        if len(self.sections) > 1:
            names = ", ".join(self.sections)
            raise ConfigurationError(
                f"{self.path} has several remotes ({names}): choose one with --remote NAME"
            )
        for only in self.sections:
            return TRUSSRC, only
        if self.environment.address_variables:
            raise ConfigurationError(
                f"{' and '.join(self.environment.address_variables)} is set without a key: set "
                f"{API_KEY_VARIABLE}"
            )
        if self.profiles.current is not None:
            return PROFILE, self.profiles.current
        if self.profiles.names:
            raise ConfigurationError(
                f"no current profile in {self.profiles.path} ({', '.join(self.profiles.names)}): choose one "
                f"with --remote NAME"
            )
        raise RemoteNotConfigured(
            f"no remote is configured: set {API_KEY_VARIABLE}, or log in with 'bt-tui login' ({self.path})"
        )

    def remote(self, place: Place) -> Remote:
        """Return the remote at that place. Raises ConfigurationError if it cannot be used."""
        source, name = place
        if source == ENVIRONMENT:
            remote = self.environment.remote()
            assert remote is not None
            return remote
        if source == PROFILE:
            return self.profiles.remote(name, self.environment)
        return remote_of_section(name, self.sections[name], self.path, self.environment)

    def _named(self, name: str) -> Place:
        if name in self.sections:
            return TRUSSRC, name
        if name in self.profiles.names:
            return PROFILE, name
        if self.sections:
            known = f"{self.path} has {', '.join(self.sections)}"
        else:
            known = f"{self.path} has none" if self.path.exists() else f"{self.path} not found"
        profiles = (
            f"; profiles of the Go CLI: {', '.join(self.profiles.names)}" if self.profiles.names else ""
        )
        raise ConfigurationError(f"no remote '{name}': {known}{profiles}")

    def _profile_of_environment(self, name: str) -> Place:
        if name not in self.profiles.names:
            known = ", ".join(self.profiles.names) or "none"
            raise ConfigurationError(
                f"{PROFILE_VARIABLE} names the profile '{name}', but {self.profiles.path or 'the Go CLI'}"
                f" has {known}: unset it, or create it with 'baseten auth login'"
            )
        return PROFILE, name


def resolve_remote(
    name: str | None = None, *, environ: Mapping[str, str], trussrc_path: Path | None = None
) -> Remote:
    """Find the remote to use; ``name`` is the user's choice, if any.

    Raises RemoteNotConfigured if nothing is configured, ConfigurationError if the configuration
    contradicts itself or cannot be used.
    """
    sources = Sources(environ, trussrc_path)
    return sources.remote(sources.choose(name))
