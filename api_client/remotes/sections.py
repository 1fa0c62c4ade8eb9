"""A section of the truss CLI's file as a remote, its key from the file, the keyring or a variable."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import SecretStr

from api_client.addresses import parse_base_url
from api_client.errors import ConfigurationError
from api_client.remotes.environment import API_KEY_VARIABLE, Environment
from api_client.remotes.keyring_entries import (
    TRUSS_SERVICE,
    KeyringClosed,
    parse_entry,
    read_entry,
    write_entry,
)
from api_client.remotes.remote import (
    DEFAULT_APP_URL,
    DEFAULT_ORIGIN,
    DERIVED_ORIGIN,
    Remote,
    rest_url,
    secret,
)
from api_client.remotes.tokens import OAuthLogin, OAuthTokens, TokenStore
from api_client.remotes.trussrc import Section, read_sections

API_KEY, OAUTH = "api_key", "oauth"
ACCESS_FIELD, REFRESH_FIELD, EXPIRY_FIELD = "oauth_access_token", "oauth_refresh_token", "oauth_expires_at"
KEYRING_ORIGIN = f"system keyring ({TRUSS_SERVICE})"


def remote_of_section(name: str, section: Section, path: Path, environment: Environment) -> Remote:
    """The remote that a section describes.

    Its own key (from the file, else the keyring) goes to its own hosts alone. Without one
    BASETEN_API_KEY is sent. Raises ConfigurationError.
    """
    where = f"{path} [{name}]"
    if section.get("remote_provider", "baseten").strip() != "baseten":
        raise ConfigurationError(f"{where} is not a Baseten remote: its remote_provider is another one")
    own_url = section.get("remote_url", "").strip()
    app_url = own_url or DEFAULT_APP_URL
    source = f"remote_url of {where}"
    key, key_origin, login, why_not = _own_key(name, section, where, path, environment.variables)
    if key is not None:
        environment.refuse_foreign_addresses(where, app_url)
        api_url, api_url_origin = rest_url(app_url, source=source), DERIVED_ORIGIN
    else:
        key, key_origin = environment.api_key, API_KEY_VARIABLE
        if key is None:
            raise ConfigurationError(
                f"{where} has {why_not}, and {API_KEY_VARIABLE} is not set: 'bt-tui login --remote {name}'"
                " sets a key"
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
    """Key, its origin and the login it is from; without a key, why there is none."""
    kind = section.get("auth_type", "").strip().lower()
    field = ACCESS_FIELD if kind == OAUTH else API_KEY
    inline = section.get(field, "").strip()
    store: TokenStore
    if inline:
        store = _SectionTokens(name, path)
        fields: Mapping[str, object] = section
        origin = f"{field} of {where}"
    elif kind in (API_KEY, OAUTH):
        origin = KEYRING_ORIGIN
        try:
            fields = _keyring_fields(name, kind, environ)
        except KeyringClosed as closed:
            return None, "", None, f"no {field} ({closed})"
        if not fields:
            return None, "", None, f"no {field}, in the system's keyring neither"
        store = _KeyringTokens(name, environ)
    else:
        return None, "", None, "no api_key"
    if kind == OAUTH:
        tokens = _tokens_in(fields, origin)
        return tokens.access, origin, OAuthLogin(tokens, store), ""
    return secret(str(fields.get(API_KEY, "")).strip(), origin), origin, None, ""


def _keyring_fields(name: str, kind: str, environ: Mapping[str, str]) -> Mapping[str, object]:
    """The secret fields that the truss CLI put into the keyring; none if there is no such entry."""
    text = read_entry(TRUSS_SERVICE, name, environ)
    if not text:
        return {}
    source = f"the keyring's entry of remote '{name}'"
    entry = parse_entry(text, source)
    field = ACCESS_FIELD if kind == OAUTH else API_KEY
    if entry.get("auth_type") != kind or not str(entry.get(field) or "").strip():
        raise ConfigurationError(
            f"{source} holds no {field}: log in again with 'truss login --remote {name}'"
        )
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
    """Unix seconds as a moment; None for what is none."""
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


class _SectionTokens:
    """Tokens written out in the file itself."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path

    def load(self) -> OAuthTokens | None:
        section = read_sections(self._path).get(self._name, {})
        if not section.get(ACCESS_FIELD, "").strip():
            return None
        return _tokens_in(section, f"{ACCESS_FIELD} of {self._path} [{self._name}]")

    def save(self, tokens: OAuthTokens) -> None:
        from api_client.remotes.trussrc_writing import set_section

        set_section(self._path, self._name, _fields_of(tokens))


class _KeyringTokens:
    """Tokens in the system's keyring."""

    def __init__(self, name: str, environ: Mapping[str, str]) -> None:
        self._name = name
        self._environ = environ

    def load(self) -> OAuthTokens | None:
        fields = _keyring_fields(self._name, OAUTH, self._environ)
        return _tokens_in(fields, KEYRING_ORIGIN) if fields else None

    def save(self, tokens: OAuthTokens) -> None:
        import json

        fields: dict[str, object] = {"auth_type": OAUTH, **_fields_of(tokens)}
        if tokens.expires_at is not None:
            fields[EXPIRY_FIELD] = int(tokens.expires_at.timestamp())
        write_entry(TRUSS_SERVICE, self._name, json.dumps(fields), self._environ)
