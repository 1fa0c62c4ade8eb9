"""Which remote to talk to, and with whose key.

Sources, first match wins (API facts, 4; the names are those of the official clients):

1. ``--remote NAME``: that section of ``~/.trussrc``
2. ``BASETEN_TRUSS_AUTH_REMOTE_URL`` and ``BASETEN_TRUSS_AUTH_API_KEY``, both
3. ``BASETEN_API_KEY``, with ``BASETEN_REMOTE_URL`` and ``BASETEN_MANAGEMENT_API_URL_OVERRIDE``
4. the only section of ``~/.trussrc`` (another path: ``USER_TRUSSRC_PATH``)

A key from a file's section only ever goes to that section's own hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as IniError
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import SecretStr

from api_client.addresses import BaseUrl, parse_base_url
from api_client.errors import ConfigurationError

AuthScheme = Literal["Bearer", "Api-Key"]

ENVIRONMENT_REMOTE = "<environment>"
"""Name of the remote that the environment variables describe."""

DEFAULT_APP_URL = "https://app.baseten.co"

API_KEY_VARIABLE = "BASETEN_API_KEY"
APP_URL_VARIABLE = "BASETEN_REMOTE_URL"
API_URL_VARIABLE = "BASETEN_MANAGEMENT_API_URL_OVERRIDE"
TRUSS_URL_VARIABLE = "BASETEN_TRUSS_AUTH_REMOTE_URL"
TRUSS_KEY_VARIABLE = "BASETEN_TRUSS_AUTH_API_KEY"
TRUSSRC_VARIABLE = "USER_TRUSSRC_PATH"

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
    ``key_origin`` says in words where the key came from.
    """

    name: str
    app_url: str
    api_url: str
    key: SecretStr | None
    key_origin: str
    auth_scheme: AuthScheme = "Bearer"
    team: str | None = None


def resolve_remote(
    name: str | None = None, *, environ: Mapping[str, str], trussrc_path: Path | None = None
) -> Remote:
    """Find the remote to use; ``name`` is what the user asked for, if anything.

    Raises RemoteNotConfigured if there is nothing to go by, ConfigurationError if what there is
    contradicts itself or cannot be used.
    """
    settings = _Environment(environ)
    if name is None or name == ENVIRONMENT_REMOTE:
        from_environment = settings.remote()
        if from_environment is not None:
            return from_environment
        if name is not None:
            raise ConfigurationError(f"there is no remote '{name}': {API_KEY_VARIABLE} is not set")
    path = trussrc_path or _trussrc_path(environ)
    section_name, section = _choose_section(name, _read_sections(path), path, settings)
    return _from_section(section_name, section, path, settings)


def rest_url(app_url: str, *, source: str = APP_URL_VARIABLE) -> str:
    """The REST base that belongs to an app host (API facts, 4).

    A host on this machine, or one given as an address, serves both.
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


class _Environment:
    """The environment variables that count; an empty one is as good as none."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        def value(variable: str) -> str | None:
            return environ.get(variable, "").strip() or None

        self.api_key = _secret(value(API_KEY_VARIABLE), API_KEY_VARIABLE)
        self.app_url = value(APP_URL_VARIABLE)
        self.api_url = value(API_URL_VARIABLE)
        self.truss_url = value(TRUSS_URL_VARIABLE)
        self.truss_key = _secret(value(TRUSS_KEY_VARIABLE), TRUSS_KEY_VARIABLE)

    @property
    def address_variables(self) -> list[str]:
        """Names of the variables that say where to go (and not with which key)."""
        values = {APP_URL_VARIABLE: self.app_url, API_URL_VARIABLE: self.api_url}
        return [name for name, value in values.items() if value]

    def remote(self) -> Remote | None:
        """The remote they describe, or None if they hold no key."""
        if self.truss_url is not None or self.truss_key is not None:
            if self.truss_url is None or self.truss_key is None:
                missing = TRUSS_URL_VARIABLE if self.truss_url is None else TRUSS_KEY_VARIABLE
                present = TRUSS_KEY_VARIABLE if self.truss_url is None else TRUSS_URL_VARIABLE
                raise ConfigurationError(f"{present} is set but {missing} is not; they work together only")
            return self._remote(self.truss_url, TRUSS_URL_VARIABLE, self.truss_key, TRUSS_KEY_VARIABLE)
        if self.api_key is None:
            return None
        return self._remote(self.app_url or DEFAULT_APP_URL, APP_URL_VARIABLE, self.api_key, API_KEY_VARIABLE)

    def _remote(self, app_url: str, source: str, key: SecretStr, key_origin: str) -> Remote:
        return Remote(
            name=ENVIRONMENT_REMOTE,
            app_url=str(parse_base_url(app_url, source=source)),
            api_url=self.rest_url(app_url, source),
            key=key,
            key_origin=key_origin,
        )

    def rest_url(self, app_url: str, source: str) -> str:
        """The override if there is one, else what belongs to the app host."""
        if self.api_url is not None:
            return str(parse_base_url(self.api_url, source=API_URL_VARIABLE))
        return rest_url(app_url, source=source)


def _trussrc_path(environ: Mapping[str, str]) -> Path:
    configured = environ.get(TRUSSRC_VARIABLE, "").strip()
    return Path(configured or "~/.trussrc").expanduser()


def _read_sections(path: Path) -> dict[str, dict[str, str]]:
    """Sections of the file; none if there is no file. Raises ConfigurationError; quotes no content."""
    parser = ConfigParser(interpolation=None)
    problem = ""
    try:
        parser.read_string(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        problem = error.strerror or "it cannot be opened"
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except IniError as error:
        # Never the parser's own message: it quotes the line, which may hold a key.
        line = getattr(error, "lineno", None)
        problem = "it is not a well-formed INI file" + (f" (line {line})" if line else "")
    if problem:
        raise ConfigurationError(f"{path} cannot be read: {problem}")
    return {name: dict(parser[name]) for name in parser.sections()}


def _choose_section(
    name: str | None, sections: dict[str, dict[str, str]], path: Path, settings: _Environment
) -> tuple[str, dict[str, str]]:
    names = ", ".join(sections)
    if name is not None:
        if name not in sections:
            known = f"it has {names}" if sections else "it has none, or does not exist"
            raise ConfigurationError(f"there is no remote '{name}' in {path}: {known}")
        return name, sections[name]
    if not sections:
        if settings.address_variables:
            raise ConfigurationError(
                f"{' and '.join(settings.address_variables)} is set, but no key: set {API_KEY_VARIABLE}"
            )
        raise RemoteNotConfigured(
            f"no remote is configured: set {API_KEY_VARIABLE}, or log in with 'truss login' ({path})"
        )
    if len(sections) > 1:
        raise ConfigurationError(f"{path} has several remotes ({names}): choose one with --remote NAME")
    return next(iter(sections.items()))


def _from_section(name: str, section: dict[str, str], path: Path, settings: _Environment) -> Remote:
    where = f"{path} [{name}]"
    if section.get("remote_provider", "baseten").strip() != "baseten":
        raise ConfigurationError(f"{where} is not a Baseten remote: its remote_provider is another one")
    app_url = section.get("remote_url", "").strip() or DEFAULT_APP_URL
    source = f"remote_url of {where}"
    is_oauth = section.get("auth_type", "").strip().lower() == "oauth"
    field = "oauth_access_token" if is_oauth else "api_key"
    key = _secret(section.get(field, "").strip() or None, f"{field} of {where}")
    if key is not None:
        if settings.address_variables and settings.api_key is None:
            raise ConfigurationError(
                f"{' and '.join(settings.address_variables)} is set without {API_KEY_VARIABLE}, and the key"
                f" of {where} belongs to {app_url}: set {API_KEY_VARIABLE} too, or unset the address"
            )
        api_url, key_origin = rest_url(app_url, source=source), f"{field} of {where}"
    elif settings.api_key is not None:
        key, key_origin = settings.api_key, API_KEY_VARIABLE
        api_url = settings.rest_url(app_url, source)
    else:
        raise ConfigurationError(
            f"{where} has no {field}, and {API_KEY_VARIABLE} is not set"
            + (" (tokens in the system's keyring are not read yet)" if is_oauth else "")
        )
    return Remote(
        name=name,
        app_url=str(parse_base_url(app_url, source=source)),
        api_url=api_url,
        key=key,
        key_origin=key_origin,
        team=section.get("team", "").strip() or None,
    )


def _secret(value: str | None, origin: str) -> SecretStr | None:
    if value is None:
        return None
    check_key(value, origin)
    return SecretStr(value)


def check_key(value: str, origin: str) -> None:
    """Raises ConfigurationError if no HTTP header can carry this key (it is not quoted)."""
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ConfigurationError(f"the key from {origin} holds a line break, a space or an unusual character")
