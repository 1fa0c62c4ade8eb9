"""A remote: its addresses, its key, and where each of them came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import SecretStr

from api_client.addresses import BaseUrl, parse_base_url
from api_client.errors import ConfigurationError
from api_client.remotes.tokens import OAuthLogin

AuthScheme = Literal["Bearer", "Api-Key"]

ENVIRONMENT_REMOTE = "<environment>"
"""Name of the remote that the environment variables describe."""

DEFAULT_APP_URL = "https://app.baseten.co"

DEFAULT_ORIGIN = "default"
"""Origin of what nobody has set."""

DERIVED_ORIGIN = "app address"
"""Origin of a REST base that follows from the address of the app."""

# REST hosts that are not the app host with "api" for "app" (API facts, 4).
_SPECIAL_API_URLS = {
    "https://app.dev.baseten.co": "https://api.mc-dev.baseten.co",
    "http://localhost:8000": "http://api.localhost:8000",
}


class RemoteNotConfigured(ConfigurationError):
    """No key in the environment and no remote in the credentials file: nothing has been set up yet."""


@dataclass(frozen=True)
class Remote:
    """Where to send requests and the key to send along; its repr shows no key.

    ``app_url`` serves GraphQL and the web pages, ``api_url`` is the REST base (may have a path prefix).
    The origins say in words where each value came from. ``login`` is there where the key is an OAuth
    token: it knows the newest one.
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
    """The REST base that belongs to an app host (API facts, 4).

    A host on this machine, or one given as an address, serves both. Raises ConfigurationError, which names
    ``source``, for an address that cannot be used.
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


def secret(value: str | None, origin: str) -> SecretStr | None:
    """The key as a secret; None stays None. Raises ConfigurationError if no header can carry it."""
    if value is None:
        return None
    check_key(value, origin)
    return SecretStr(value)


def check_key(value: str, origin: str) -> None:
    """Raises ConfigurationError if no HTTP header can carry this key (it is not quoted)."""
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ConfigurationError(f"the key from {origin} holds a line break, a space or an unusual character")
