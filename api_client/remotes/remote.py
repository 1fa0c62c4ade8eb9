"""A remote: its addresses and its key, which may be an OAuth token that has to be renewed.

``Environment`` reads the environment variables that define a remote.

The official clients log in with OAuth's device flow. They store a short-lived access token and a refresh
token, which is exchanged for the next pair (truss 0.18, truss.remote.baseten.oauth).
``api_client.http.connection`` sends the renewal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from api_client.addresses import BaseUrl, parse_base_url
from api_client.clock import utc_text
from api_client.errors import ConfigurationError
from api_client.secret import SecretText
from api_client.words import READ_ONLY_OPTION, command_line


@dataclass(frozen=True)
class OAuthTokens:
    """Access and refresh token.

    Without ``expires_at``, the tokens are renewed after the server has rejected the access token.
    """

    access: SecretText
    refresh: SecretText | None = None
    expires_at: datetime | None = None

    def is_expired(self, now: datetime) -> bool:
        """Return True if the access token has expired or will expire within a minute."""
        # The same margin as in the official client.
        return self.expires_at is not None and now + timedelta(seconds=60) >= self.expires_at


@dataclass(frozen=True)
class TokenFields:
    """Names of the token fields in one client's storage.

    The expiry is stored in epoch seconds if ``is_expiry_epoch_s``, else as an RFC 3339 timestamp.
    """

    access: str
    refresh: str
    expiry: str
    is_expiry_epoch_s: bool

    def from_storage(self, fields: Mapping[str, object], origin: str) -> OAuthTokens | None:
        """Read the tokens; None without an access token. Raises ConfigurationError, which quotes no token."""
        access, refresh = (str(fields.get(name) or "").strip() for name in (self.access, self.refresh))
        if not access:
            return None
        return OAuthTokens(
            access=secret(access, origin),
            refresh=secret(refresh, origin) if refresh else None,
            expires_at=_parse_expiry(fields.get(self.expiry)),
        )

    def to_storage(self, tokens: OAuthTokens) -> dict[str, object]:
        fields: dict[str, object] = {self.access: tokens.access.get_secret_value()}
        if tokens.refresh is not None:
            fields[self.refresh] = tokens.refresh.get_secret_value()
        if tokens.expires_at is not None:
            epoch_s, expiry_text = int(tokens.expires_at.timestamp()), utc_text(tokens.expires_at)
            fields[self.expiry] = epoch_s if self.is_expiry_epoch_s else expiry_text
        return fields


def _parse_expiry(value: object) -> datetime | None:
    """Parse epoch seconds or an RFC 3339 timestamp; None if it is neither, or Go's zero time."""
    try:
        moment = datetime.fromtimestamp(float(str(value)), UTC)
    except (ValueError, OverflowError, OSError):
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            return None
    # In the first and last year, converting to another time zone would overflow.
    return moment if moment.tzinfo is not None and 1 < moment.year < 9999 else None


class OAuthLogin:
    """OAuth tokens of one remote, and the functions that store them. The repr shows no token.

    ``load`` returns the stored tokens, which another program may have renewed; ``save`` replaces the stored
    tokens. Both functions block, and may raise ConfigurationError. ``save_problem`` is the reason why renewed
    tokens could not be stored, or None; after such a failure, the user has to log in again for the next run.
    """

    def __init__(
        self,
        tokens: OAuthTokens,
        load: Callable[[], OAuthTokens | None],
        save: Callable[[OAuthTokens], None],
    ) -> None:
        self.tokens = tokens
        self.renewing = asyncio.Lock()
        self.save_problem: str | None = None
        self._load = load
        self._save = save
        self._replaced_tokens: list[str] = []

    def secrets(self) -> list[str]:
        """Return all tokens that must never be shown, newest first, including replaced tokens."""
        refresh = [self.tokens.refresh.get_secret_value()] if self.tokens.refresh else []
        return [self.tokens.access.get_secret_value(), *refresh, *self._replaced_tokens]

    async def adopt_saved_tokens(self) -> bool:
        """Use the stored tokens if another program has renewed them; return True if it has."""
        saved = await asyncio.to_thread(self._load)
        if saved is None or saved.access == self.tokens.access:
            return False
        self._replace(saved)
        return True

    async def renew(self, tokens: OAuthTokens) -> None:
        """Use new tokens from now on, and store them, because the old refresh token may be invalid.

        Raises ConfigurationError if the tokens cannot be stored; this object uses them anyway.
        """
        self._replace(tokens)
        await asyncio.to_thread(self._save, tokens)

    def _replace(self, tokens: OAuthTokens) -> None:
        self._replaced_tokens = self.secrets()
        self.tokens = tokens


AuthScheme = Literal["Bearer", "Api-Key"]

ENVIRONMENT_REMOTE = "<environment>"  # name of the remote defined by environment variables
DEFAULT_APP_URL = "https://app.baseten.co"


class KeyMissing(ConfigurationError):
    """A remote is selected by its name or address, but no key is configured for it."""


class RemoteNotConfigured(ConfigurationError):
    """No key in the environment and no remote in the credentials file: nothing has been configured yet."""


@dataclass(frozen=True)
class Remote:
    """Addresses to send requests to, and the key, which the repr does not show.

    ``app_url`` serves GraphQL and the web pages, ``api_url`` is the base URL of the REST API (may have a path
    prefix). The ``*_origin`` fields describe where each value came from. If the key is an OAuth token,
    ``login`` has the newest token. ``options`` select this remote on a command line, such as ``--remote
    local``; None if no command line can select it.
    """

    name: str
    app_url: str
    api_url: str
    key: SecretText | None
    key_origin: str
    auth_scheme: AuthScheme = "Bearer"
    team: str | None = None
    app_url_origin: str = ""
    api_url_origin: str = ""
    team_origin: str = ""
    login: OAuthLogin | None = field(default=None, compare=False, repr=False)
    options: tuple[str, ...] | None = field(default=(), compare=False)

    def command_line(self, *arguments: str, changes: bool = False) -> str:
        """Return a command to suggest for this remote, quoted for a shell; empty if no command can select it.

        ``--readonly`` is left out of a command that ``changes`` the server, which would be refused.
        """
        if self.options is None:
            return ""
        options = [option for option in self.options if not (changes and option == READ_ONLY_OPTION)]
        return command_line(*options, *arguments)


def rest_url(app_url: str, *, source: str = "the address") -> str:
    """Return the base URL of the REST API for the URL of the web app.

    For a host on this machine, or an IP address, both URLs are the same. Raises ConfigurationError, which
    names ``source``, for an unusable address.
    """
    app = parse_base_url(app_url, source=source)
    special_api_url = {
        "https://app.dev.baseten.co": "https://api.mc-dev.baseten.co",
        "http://localhost:8000": "http://api.localhost:8000",
    }.get(str(app))
    if special_api_url is not None:
        return special_api_url
    if (
        app.is_loopback
        or ":" in app.host
        or app.host.replace(".", "").isdigit()
        or app.host.startswith("api.")
    ):
        return str(app)
    return str(BaseUrl(app.scheme, "api." + app.host.removeprefix("app."), app.port, app.prefix))


def remote_at(
    name: str,
    url: str,
    source: str,
    *,
    key: SecretText | None,
    key_origin: str,
    api_url_and_origin: tuple[str, str] | None = None,
    login: OAuthLogin | None = None,
    team: str = "",
    team_origin: str = "",
) -> Remote:
    """Build the remote for the URL of a web app; an empty ``url`` means DEFAULT_APP_URL.

    ``source`` describes in errors where ``url`` comes from. By default, the base URL of the REST API is
    derived from ``url``. Raises ConfigurationError.
    """
    app_url = url or DEFAULT_APP_URL
    api_url, api_url_origin = api_url_and_origin or (rest_url(app_url, source=source), "app address")
    return Remote(
        name=name,
        app_url=str(parse_base_url(app_url, source=source)),
        api_url=api_url,
        key=key,
        key_origin=key_origin,
        team=team or None,
        app_url_origin=source if url else "default",
        api_url_origin=api_url_origin,
        team_origin=team_origin if team else "",
        login=login,
    )


def secret(value: str, origin: str) -> SecretText:
    """Wrap a key as a secret. Raises ConfigurationError if it is not valid in a header."""
    check_key(value, origin)
    return SecretText(value)


def check_key(value: str, origin: str) -> None:
    """Raise ConfigurationError, which does not quote the key, if it is not valid in an HTTP header."""
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ConfigurationError(
            f"the key from {origin} contains a line break, a space or an unusual character"
        )


API_KEY_VARIABLE = "BASETEN_API_KEY"
APP_URL_VARIABLE = "BASETEN_REMOTE_URL"
API_URL_VARIABLE = "BASETEN_MANAGEMENT_API_URL_OVERRIDE"
PROFILE_VARIABLE = "BASETEN_PROFILE"
TRUSS_URL_VARIABLE = "BASETEN_TRUSS_AUTH_REMOTE_URL"
TRUSS_KEY_VARIABLE = "BASETEN_TRUSS_AUTH_API_KEY"


class Environment:
    """Environment variables that define a remote; an empty variable counts as unset."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.variables = environ

    def value(self, variable: str) -> str:
        return self.variables.get(variable, "").strip()

    def secret(self, variable: str) -> SecretText | None:
        """Return the key in a variable. Raises ConfigurationError if it is not valid in a header."""
        return secret(self.value(variable), variable) if self.value(variable) else None

    @property
    def defines_remote(self) -> bool:
        """True if BASETEN_API_KEY or a BASETEN_TRUSS_AUTH_* variable is set; they override every file."""
        return any(map(self.value, (TRUSS_URL_VARIABLE, TRUSS_KEY_VARIABLE, API_KEY_VARIABLE)))

    @property
    def names_other_remote(self) -> bool:
        """True if a variable other than ``BASETEN_API_KEY`` names a remote or an address."""
        other_variables = (TRUSS_URL_VARIABLE, TRUSS_KEY_VARIABLE, PROFILE_VARIABLE)
        return bool(self.address_variables) or any(map(self.value, other_variables))

    @property
    def address_variables(self) -> list[str]:
        """Names of the set variables that hold addresses (not keys)."""
        return list(filter(self.value, (APP_URL_VARIABLE, API_URL_VARIABLE)))

    def remote(self) -> Remote:
        """Return the remote that the variables define.

        Raises ConfigurationError if one of truss's two variables is missing, and for unusable addresses.
        """
        url_variable, key_variable = TRUSS_URL_VARIABLE, TRUSS_KEY_VARIABLE
        missing = [variable for variable in (url_variable, key_variable) if not self.value(variable)]
        if len(missing) == 1:
            present = key_variable if url_variable in missing else url_variable
            raise ConfigurationError(f"{present} is set but {missing[0]} is not; set both or unset {present}")
        if missing:
            url_variable, key_variable = APP_URL_VARIABLE, API_KEY_VARIABLE
        # If BASETEN_API_KEY is set, the override is for that key; truss's key is sent only to truss's own
        # URL.
        is_overridden = bool(missing) or not self.value(API_KEY_VARIABLE)
        return remote_at(
            ENVIRONMENT_REMOTE,
            self.value(url_variable),
            url_variable,
            key=self.secret(key_variable),
            key_origin=key_variable,
            api_url_and_origin=self.overriding_api_url() if is_overridden else None,
        )

    def overriding_api_url(self) -> tuple[str, str] | None:
        """Return the REST API's base URL in the environment and the variable's name, or None.

        Raises ConfigurationError.
        """
        url = self.value(API_URL_VARIABLE)
        return (str(parse_base_url(url, source=API_URL_VARIABLE)), API_URL_VARIABLE) if url else None

    def reject_foreign_addresses(self, source: str, url: str) -> None:
        """Raise KeyMissing if address variables would send the key of ``where`` to another host."""
        if self.address_variables and not self.value(API_KEY_VARIABLE):
            raise KeyMissing(
                f"{' and '.join(self.address_variables)} is set without {API_KEY_VARIABLE}, but the key of "
                f"{source} is for {url or DEFAULT_APP_URL}: set {API_KEY_VARIABLE} too, or unset the address"
            )
