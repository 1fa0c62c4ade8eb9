"""The order in which the sources are asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from api_client.errors import ConfigurationError
from api_client.remotes.environment import API_KEY_VARIABLE, PROFILE_VARIABLE, Environment
from api_client.remotes.profiles import Profiles
from api_client.remotes.remote import ENVIRONMENT_REMOTE, Remote, RemoteNotConfigured
from api_client.remotes.sections import remote_of_section
from api_client.remotes.trussrc import read_sections, trussrc_path

Place = tuple[str, str]
"""Which source (one of the three below), and the name there."""

ENVIRONMENT, TRUSSRC, PROFILE = "environment", "trussrc", "profile"


class Sources:
    """All places that may know of a remote, read when they are first needed."""

    def __init__(self, environ: Mapping[str, str], path: Path | None = None) -> None:
        self.environment = Environment(environ)
        self.path = path or trussrc_path(environ)
        self._environ = environ
        self._sections: dict[str, dict[str, str]] | None = None
        self._profiles: Profiles | None = None

    @property
    def sections(self) -> dict[str, dict[str, str]]:
        """The sections of the truss CLI's file. Raises ConfigurationError."""
        if self._sections is None:
            self._sections = read_sections(self.path)
        return self._sections

    @property
    def profiles(self) -> Profiles:
        """The profiles of the Go CLI. Raises ConfigurationError."""
        if self._profiles is None:
            self._profiles = Profiles(self._environ)
        return self._profiles

    def choose(self, name: str | None) -> Place:
        """Which remote is meant. Raises RemoteNotConfigured, ConfigurationError."""
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
                f"{' and '.join(self.environment.address_variables)} is set, but no key:"
                f" set {API_KEY_VARIABLE}"
            )
        if self.profiles.current is not None:
            return PROFILE, self.profiles.current
        if self.profiles.names:
            raise ConfigurationError(
                f"none of the profiles in {self.profiles.path} ({', '.join(self.profiles.names)}) is the"
                " current one: choose one with --remote NAME"
            )
        raise RemoteNotConfigured(
            f"no remote is configured: set {API_KEY_VARIABLE}, or log in with 'bt-tui login' ({self.path})"
        )

    def remote(self, place: Place) -> Remote:
        """The remote at that place. Raises ConfigurationError if it cannot be used."""
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
                f" has {known}: unset it, or 'baseten auth login' makes one"
            )
        return PROFILE, name


def resolve_remote(
    name: str | None = None, *, environ: Mapping[str, str], trussrc_path: Path | None = None
) -> Remote:
    """Find the remote to use; ``name`` is what the user asked for, if anything.

    Raises RemoteNotConfigured if there is nothing to go by, ConfigurationError if what there is
    contradicts itself or cannot be used.
    """
    sources = Sources(environ, trussrc_path)
    return sources.remote(sources.choose(name))
