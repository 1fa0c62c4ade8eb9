"""Choose the remote to use from flags, environment and files, and build it, or list all remotes.

The package docstring lists the sources in order. A key that belongs to a remote is sent only to that remote's
own hosts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from api_client.errors import ConfigurationError
from api_client.remotes.profiles import (
    TRUSS_SERVICE,
    KeyringInaccessible,
    Profiles,
    parse_entry,
    profiles_path,
    read_entry,
    write_entry,
)
from api_client.remotes.remote import (
    API_KEY_VARIABLE,
    ENVIRONMENT_REMOTE,
    PROFILE_VARIABLE,
    Environment,
    KeyMissing,
    OAuthLogin,
    OAuthTokens,
    Remote,
    RemoteNotConfigured,
    TokenFields,
    remote_at,
    secret,
)
from api_client.remotes.trussrc import Section, read_sections, readable_by_others, set_section, trussrc_path
from api_client.secret import SecretText
from api_client.words import command_line

API_KEY, OAUTH = "api_key", "oauth"
TRUSS_TOKEN_FIELDS = TokenFields(
    "oauth_access_token", "oauth_refresh_token", "oauth_expires_at", is_expiry_epoch_s=True
)


def remote_of_section(name: str, section: Section, path: Path, environment: Environment) -> Remote:
    """Build the remote that a section of ``~/.trussrc`` describes.

    The section's own key (from the file, else the keyring) is sent only to the section's hosts. A section
    without a key uses BASETEN_API_KEY. Raises ConfigurationError.
    """
    origin = f"{path} [{name}]"
    if section.get("remote_provider", "baseten").strip() != "baseten":
        raise ConfigurationError(f"{origin} is not a Baseten remote: it has another remote_provider")
    url = section.get("remote_url", "").strip()
    api_url_and_origin = None
    try:
        key, key_origin, login = _find_section_key(name, section, origin, path, environment.variables)
        environment.reject_foreign_addresses(origin, url)
    except _NoSectionKey as missing:
        api_url_and_origin, login = environment.overriding_api_url(), None
        environment_key = environment.secret(API_KEY_VARIABLE)
        if environment_key is None:
            raise KeyMissing(
                f"{origin} has {missing}, and {API_KEY_VARIABLE} is not set: set a key with: "
                f"{command_line('login', '--remote', name)}"
            ) from None
        key, key_origin = environment_key, API_KEY_VARIABLE
    return remote_at(
        name,
        url,
        f"remote_url of {origin}",
        key=key,
        key_origin=key_origin,
        api_url_and_origin=api_url_and_origin,
        login=login,
        team=section.get("team", "").strip(),
        team_origin=f"team of {origin}",
    )


class _NoSectionKey(Exception):
    """The section has no key; the message says which field is missing."""


def _find_section_key(
    name: str, section: Section, where: str, path: Path, environ: Mapping[str, str]
) -> tuple[SecretText, str, OAuthLogin | None]:
    """Return the section's key, its origin and its OAuth login, if any.

    Raises _NoSectionKey and ConfigurationError.
    """
    auth_type = section.get("auth_type", "").strip().lower()
    field = TRUSS_TOKEN_FIELDS.access if auth_type == OAUTH else API_KEY
    fields: Mapping[str, object] = section
    load, save = partial(_fields_in_file, name, path), partial(_save_in_file, name, path)
    origin = f"{field} of {where}"
    if not section.get(field, "").strip():
        if auth_type not in (API_KEY, OAUTH):
            raise _NoSectionKey("no api_key")
        load, save = (
            partial(_fields_in_keyring, name, auth_type, environ),
            partial(_save_in_keyring, name, environ),
        )
        origin = f"system keyring ({TRUSS_SERVICE})"
        try:
            fields = load()
        except KeyringInaccessible as inaccessible:
            raise _NoSectionKey(f"no {field} ({inaccessible})") from None
        if not fields:
            raise _NoSectionKey(f"no {field}, nor has the system keyring")
    if auth_type != OAUTH:
        return secret(str(fields[API_KEY]).strip(), origin), origin, None
    tokens = TRUSS_TOKEN_FIELDS.from_storage(fields, origin)
    assert tokens is not None
    return (
        tokens.access,
        origin,
        OAuthLogin(tokens, lambda: TRUSS_TOKEN_FIELDS.from_storage(load(), origin), save),
    )


def _fields_in_file(name: str, path: Path) -> Mapping[str, object]:
    return read_sections(path).get(name, {})


def _save_in_file(name: str, path: Path, tokens: OAuthTokens) -> None:
    set_section(
        path, name, {field: str(value) for field, value in TRUSS_TOKEN_FIELDS.to_storage(tokens).items()}
    )


def _fields_in_keyring(name: str, kind: str, environ: Mapping[str, str]) -> Mapping[str, object]:
    """Return the secret fields that the truss CLI stored in the keyring; empty if there is no entry."""
    text = read_entry(TRUSS_SERVICE, name, environ)
    if not text:
        return {}
    source = f"the keyring entry of remote '{name}'"
    entry = parse_entry(text, source)
    field = TRUSS_TOKEN_FIELDS.access if kind == OAUTH else API_KEY
    if entry.get("auth_type") != kind or not str(entry.get(field) or "").strip():
        raise ConfigurationError(f"{source} has no {field}: log in again with 'truss login --remote {name}'")
    return entry


def _save_in_keyring(name: str, environ: Mapping[str, str], tokens: OAuthTokens) -> None:
    entry = {"auth_type": OAUTH, **TRUSS_TOKEN_FIELDS.to_storage(tokens)}
    write_entry(TRUSS_SERVICE, name, json.dumps(entry), environ)


RemoteId = tuple[str, str]  # source (environment, trussrc or profile), and the remote's name there

ENVIRONMENT, TRUSSRC, PROFILE = "environment", "trussrc", "profile"


class Sources:
    """The sources of remotes: environment, ``~/.trussrc`` and Go CLI profiles.

    Files are read on first use.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environment = Environment(environ)
        self.path = trussrc_path(environ)

    @cached_property
    def sections(self) -> dict[str, Section]:
        return read_sections(self.path)

    @cached_property
    def profiles(self) -> Profiles:
        return Profiles(self.environment.variables)

    def choose(self, name: str | None) -> RemoteId:
        if name is None or name == ENVIRONMENT_REMOTE:
            if self.environment.defines_remote:
                return ENVIRONMENT, ENVIRONMENT_REMOTE
            if name is not None:
                raise KeyMissing(f"no remote '{name}': {API_KEY_VARIABLE} is not set")
        if name is not None:
            return self._find_named(name)
        if profile := self.environment.value(PROFILE_VARIABLE):
            return self._find_environment_profile(profile)
        if len(self.sections) > 1:
            names = ", ".join(self.sections)
            raise ConfigurationError(
                f"{self.path} has several remotes ({names}): choose one with --remote NAME"
            )
        for only in self.sections:
            return TRUSSRC, only
        if self.environment.address_variables:
            raise KeyMissing(
                f"{' and '.join(self.environment.address_variables)} set without a key: set "
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
            f"no remote is configured: {API_KEY_VARIABLE} is not set, "
            f"{self.path} {'has no section' if self.path.exists() else 'not found'}"
        )

    def remote(self, remote_id: RemoteId) -> Remote:
        source, name = remote_id
        if source == ENVIRONMENT:
            return self.environment.remote()
        if source == PROFILE:
            return self.profiles.remote(name, self.environment)
        return remote_of_section(name, self.sections[name], self.path, self.environment)

    def _find_named(self, name: str) -> RemoteId:
        if name in self.sections:
            return TRUSSRC, name
        if name in self.profiles.names:
            return PROFILE, name
        if self.sections:
            existing = f"{self.path} has {', '.join(self.sections)}"
        else:
            existing = f"{self.path} has none" if self.path.exists() else f"{self.path} not found"
        profiles = (
            f"; profiles of the Go CLI: {', '.join(self.profiles.names)}" if self.profiles.names else ""
        )
        hint = ""
        if name == "local":
            hint = (
                "; commands start the emulator under that name, a script needs its address in"
                " BASETEN_REMOTE_URL and its key in BASETEN_API_KEY"
            )
        raise ConfigurationError(f"no remote '{name}': {existing}{profiles}{hint}")

    def _find_environment_profile(self, name: str) -> RemoteId:
        if name not in self.profiles.names:
            existing = ", ".join(self.profiles.names) or "none"
            raise ConfigurationError(
                f"{PROFILE_VARIABLE} names the profile '{name}', but {self.profiles.path or 'the Go CLI'}"
                f" has {existing}: unset it, or create it with 'baseten auth login'"
            )
        return PROFILE, name


def resolve_remote(name: str | None = None, *, environ: Mapping[str, str]) -> Remote:
    """Find the remote to use; ``name`` is the user's choice, if any.

    Raises RemoteNotConfigured if nothing is configured, ConfigurationError if the configuration is
    contradictory or unusable.
    """
    sources = Sources(environ)
    return sources.remote(sources.choose(name))


@dataclass(frozen=True)
class ListedRemote:
    """A remote, or the reason why it is unusable. ``source`` is environment, trussrc or profile.

    Both ``remote`` and ``problem`` are None for the local emulator while it is not running.
    """

    name: str
    source: str
    is_selected: bool
    remote: Remote | None
    problem: str | None


@dataclass(frozen=True)
class RemoteListing:
    """All remotes; ``problem`` is why no remote is selected, ``warnings`` are problems with files."""

    remotes: tuple[ListedRemote, ...]
    problem: str | None
    warnings: tuple[str, ...]


def list_remotes(name: str | None = None, *, environ: Mapping[str, str]) -> RemoteListing:
    """List the remotes of the environment and of files, in order of precedence.

    Never raises: invalid remotes and files are reported in the listing.
    """
    sources = Sources(environ)
    selected: RemoteId | None = None
    problem = None
    try:
        selected = sources.choose(name)
    except ConfigurationError as error:
        problem = str(error)
    remote_ids: list[RemoteId] = []
    warnings = []
    if sources.environment.defines_remote:
        remote_ids.append((ENVIRONMENT, ENVIRONMENT_REMOTE))
    try:
        remote_ids += [(TRUSSRC, section) for section in sources.sections]
    except ConfigurationError as error:
        warnings.append(str(error))
    try:
        remote_ids += [(PROFILE, profile) for profile in sources.profiles.names]
    except ConfigurationError as error:
        warnings.append(str(error))
    for path in filter(None, (sources.path, profiles_path(environ))):
        mode = readable_by_others(path)
        if mode is not None:
            warnings.append(f"{path} holds keys but others can read it (mode {mode}): chmod 600 {path}")
    listed_remotes = tuple(
        _list_remote(sources, remote_id, is_selected=remote_id == selected) for remote_id in remote_ids
    )
    return RemoteListing(listed_remotes, problem, tuple(dict.fromkeys(warnings)))


def _list_remote(sources: Sources, remote_id: RemoteId, *, is_selected: bool) -> ListedRemote:
    source, name = remote_id
    try:
        return ListedRemote(name, source, is_selected, sources.remote(remote_id), None)
    except ConfigurationError as error:
        return ListedRemote(name, source, is_selected, None, str(error))
