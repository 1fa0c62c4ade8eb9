"""A remote: its addresses and its key, which may be an OAuth token that has to be renewed.

The official clients log in by OAuth's device flow and store an access token that soon expires, with a refresh
token that buys the next pair (truss 0.18, truss.remote.baseten.oauth). ``api_client.http.connection`` sends
the renewal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import SecretStr

from api_client.addresses import BaseUrl, parse_base_url
from api_client.errors import ConfigurationError

EXPIRY_LEEWAY = timedelta(seconds=60)
"""Renew a token this long before it expires, as the official client does."""


@dataclass(frozen=True)
class OAuthTokens:
    """Pair of tokens. Without ``expires_at`` it is renewed only when the server rejects it."""

    access: SecretStr
    refresh: SecretStr | None = None
    expires_at: datetime | None = None

    def is_expired(self, now: datetime) -> bool:
        """Return True if the access token has expired, or is about to."""
        return self.expires_at is not None and now + EXPIRY_LEEWAY >= self.expires_at


@dataclass(frozen=True)
class TokenFields:
    """Names of the tokens' fields in one client's storage, and if it writes the expiry as epoch seconds."""

    access: str
    refresh: str
    expiry: str
    has_epoch: bool

    def read(self, fields: Mapping[str, object], origin: str) -> OAuthTokens | None:
        """Return the tokens, None without an access token. Raises ConfigurationError, which quotes none."""
        access, refresh = (str(fields.get(name) or "").strip() for name in (self.access, self.refresh))
        if not access:
            return None
        return OAuthTokens(
            access=secret(access, origin),
            refresh=secret(refresh, origin) if refresh else None,
            expires_at=_moment(fields.get(self.expiry)),
        )

    def written(self, tokens: OAuthTokens) -> dict[str, object]:
        """Return the fields to store."""
        fields: dict[str, object] = {self.access: tokens.access.get_secret_value()}
        if tokens.refresh is not None:
            fields[self.refresh] = tokens.refresh.get_secret_value()
        if tokens.expires_at is not None:
            text = tokens.expires_at.isoformat().replace("+00:00", "Z")
            fields[self.expiry] = int(tokens.expires_at.timestamp()) if self.has_epoch else text
        return fields


def _moment(value: object) -> datetime | None:
    """Parse epoch seconds or an RFC 3339 timestamp; None if it is neither, or Go's zero time."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(float(str(value)), UTC)
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None and moment.year > 1 else None


@dataclass(frozen=True)
class TokenStore:
    """Storage of a login between two runs. Both functions block and may raise ConfigurationError.

    ``load`` returns the stored tokens, which another program may have renewed; ``save`` replaces them.
    """

    load: Callable[[], OAuthTokens | None]
    save: Callable[[OAuthTokens], None]


class OAuthLogin:
    """Tokens of one remote while a client uses them. Its repr shows none.

    ``not_kept`` says why renewed tokens could not be stored, if so: the next run has to log in again.
    """

    def __init__(self, tokens: OAuthTokens, store: TokenStore | None = None) -> None:
        self.tokens = tokens
        self.renewing = asyncio.Lock()
        self.not_kept: str | None = None
        self._store = store
        self._spent: list[str] = []

    def secrets(self) -> list[str]:
        """All tokens that must never be shown, newest first, including replaced ones."""
        refresh = [self.tokens.refresh.get_secret_value()] if self.tokens.refresh else []
        return [self.tokens.access.get_secret_value(), *refresh, *self._spent]

    async def adopt_saved_tokens(self) -> bool:
        """Use tokens that another program has stored since; return True if there were any."""
        kept = await asyncio.to_thread(self._store.load) if self._store else None
        if kept is None or kept.access == self.tokens.access:
            return False
        self._replace(kept)
        return True

    async def renew(self, tokens: OAuthTokens) -> None:
        """Use these tokens from now on, and store them: the old refresh token may be invalid.

        Raises ConfigurationError if they cannot be stored; they are used anyway.
        """
        self._replace(tokens)
        if self._store is not None:
            await asyncio.to_thread(self._store.save, tokens)

    def _replace(self, tokens: OAuthTokens) -> None:
        self._spent = self.secrets()
        self.tokens = tokens


AuthScheme = Literal["Bearer", "Api-Key"]

ENVIRONMENT_REMOTE = "<environment>"
"""Name of the remote defined by environment variables."""

DEFAULT_APP_URL = "https://app.baseten.co"

DEFAULT_ORIGIN = "default"
"""Origin of values that are not set."""

DERIVED_ORIGIN = "app address"
"""Origin of a REST base derived from the app address."""

# REST hosts that are not the app host with "app" replaced by "api" (API facts, 4).
_SPECIAL_API_URLS = {
    "https://app.dev.baseten.co": "https://api.mc-dev.baseten.co",
    "http://localhost:8000": "http://api.localhost:8000",
}


class RemoteNotConfigured(ConfigurationError):
    """No key in the environment and no remote in the credentials file: nothing has been configured yet."""


@dataclass(frozen=True)
class Remote:
    """Addresses to send requests to, and the key; its repr shows no key.

    ``app_url`` serves GraphQL and the web pages, ``api_url`` is the REST base (may have a path prefix).
    The origins describe where each value came from. ``login`` is set if the key is an OAuth token, and
    holds the newest one.
    """

    name: str
    app_url: str
    api_url: str
    key: SecretStr | None
    key_origin: str
    auth_scheme: AuthScheme = "Bearer"
    team: str | None = None
    app_url_origin: str = ""
    api_url_origin: str = ""
    team_origin: str = ""
    login: OAuthLogin | None = field(default=None, compare=False, repr=False)


def rest_url(app_url: str, *, source: str = "the address") -> str:
    """Return the REST base that belongs to an app host (API facts, 4).

    A host on this machine, or one given as an address, serves both. Raises ConfigurationError, which
    names ``source``, for an unusable address.
    """
    app = parse_base_url(app_url, source=source)
    special = _SPECIAL_API_URLS.get(str(app))
    if special is not None:
        return special
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
    key: SecretStr | None,
    key_origin: str,
    api: tuple[str, str] | None = None,
    login: OAuthLogin | None = None,
    team: str = "",
    team_origin: str = "",
) -> Remote:
    """Build the remote at an app address that ``source`` names; an empty one is the default.

    ``api`` is the REST base and its origin, if it does not follow from the app address. Raises
    ConfigurationError.
    """
    app_url = url or DEFAULT_APP_URL
    api_url, api_url_origin = api or (rest_url(app_url, source=source), DERIVED_ORIGIN)
    return Remote(
        name=name,
        app_url=str(parse_base_url(app_url, source=source)),
        api_url=api_url,
        key=key,
        key_origin=key_origin,
        team=team or None,
        app_url_origin=source if url else DEFAULT_ORIGIN,
        api_url_origin=api_url_origin,
        team_origin=team_origin if team else "",
        login=login,
    )


def secret(value: str, origin: str) -> SecretStr:
    """Wrap a key as a secret. Raises ConfigurationError if it is not valid in a header."""
    check_key(value, origin)
    return SecretStr(value)


def check_key(value: str, origin: str) -> None:
    """Raise ConfigurationError if the key is not valid in an HTTP header; the error does not quote it."""
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ConfigurationError(
            f"the key from {origin} contains a line break, a space or an unusual character"
        )
