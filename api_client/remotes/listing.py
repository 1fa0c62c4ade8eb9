"""List all remotes, the selected one, and the origin of each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from api_client.errors import ConfigurationError
from api_client.remotes.profiles import profiles_path
from api_client.remotes.remote import ENVIRONMENT_REMOTE, Remote
from api_client.remotes.resolution import ENVIRONMENT, PROFILE, TRUSSRC, Place, Sources
from api_client.remotes.trussrc import readable_by_others


@dataclass(frozen=True)
class ListedRemote:
    """A remote, or why it cannot be used. ``source`` is environment, trussrc or profile.

    Both ``remote`` and ``problem`` are None for the local emulator while it is not running.
    """

    name: str
    source: str
    is_selected: bool
    remote: Remote | None
    problem: str | None


@dataclass(frozen=True)
class RemoteListing:
    """All remotes, why none of them is selected (if so), and problems with their files."""

    remotes: tuple[ListedRemote, ...]
    problem: str | None
    warnings: tuple[str, ...]


def list_remotes(name: str | None = None, *, environ: Mapping[str, str]) -> RemoteListing:
    """List the remotes of environment and files, in order of precedence. Raises nothing."""
    sources = Sources(environ)
    selected: Place | None = None
    problem = None
    try:
        selected = sources.choose(name)
    except ConfigurationError as error:
        problem = str(error)
    places: list[Place] = []
    warnings = []
    if sources.environment.holds_a_remote:
        places.append((ENVIRONMENT, ENVIRONMENT_REMOTE))
    try:
        places += [(TRUSSRC, section) for section in sources.sections]
    except ConfigurationError as error:
        warnings.append(str(error))
    try:
        places += [(PROFILE, profile) for profile in sources.profiles.names]
    except ConfigurationError as error:
        warnings.append(str(error))
    for path in filter(None, (sources.path, profiles_path(environ))):
        mode = readable_by_others(path)
        if mode is not None:
            warnings.append(f"{path} holds keys but others can read it (mode {mode}): chmod 600 {path}")
    listed = tuple(_listed(sources, place, is_selected=place == selected) for place in places)
    return RemoteListing(listed, problem, tuple(dict.fromkeys(warnings)))


def _listed(sources: Sources, place: Place, *, is_selected: bool) -> ListedRemote:
    source, name = place
    try:
        return ListedRemote(name, source, is_selected, sources.remote(place), None)
    except ConfigurationError as error:
        return ListedRemote(name, source, is_selected, None, str(error))
