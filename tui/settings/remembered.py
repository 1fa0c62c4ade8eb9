"""Remember layout, bookmarks and more between sessions. Optional: all of it may be lost.

A state file is JSON of a ``State``. What has another shape, for whatever reason, is forgotten field by field,
and is gone after the next save. Processes that write the same file take turns, and each writes only what it
changed.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import platformdirs

from api_client.files import (
    MAX_SMALL_FILE_BYTES,
    PRIVATE_FOLDER_MODE,
    read_small_file,
    update_private_file,
)


@dataclass(frozen=True)
class State:
    """Base of frozen dataclasses of values to remember, each with a default.

    A default also replaces a stored value of another type. pydantic could do that, too, but Home's first
    picture needs what is remembered, and does not wait for pydantic.
    """


# Uncached, evaluating the annotations takes three quarters of the time of a read.
field_types = cache(get_type_hints)


def restored(kind: Any, stored: Any) -> Any:
    """Return the stored JSON as a value of the type. Raises ValueError if it is none."""
    if kind is Any:
        return stored
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(stored, dict):
        values = {}
        for name, part in field_types(kind).items():
            with suppress(KeyError, ValueError):
                values[name] = restored(part, stored[name])
        return kind(**values)
    if origin is UnionType:
        for part in parts:
            with suppress(ValueError):
                return restored(part, stored)
    if origin is dict and isinstance(stored, dict):
        return {restored(parts[0], key): restored(parts[1], value) for key, value in stored.items()}
    if origin is list and isinstance(stored, list):
        return [restored(parts[0], value) for value in stored]
    if origin is tuple and isinstance(stored, list):
        return tuple(restored(part, value) for part, value in zip(parts, stored, strict=True))
    if kind is float and type(stored) is int:
        stored = float(str(stored))  # infinite if it is too large
    if type(stored) is not kind:
        raise ValueError(f"not {kind}")
    json.dumps(stored, allow_nan=False, ensure_ascii=False).encode()  # no NaN, infinity or half a character
    return stored


@dataclass(frozen=True)
class HomeState(State):
    sort: str = ""
    descending: bool = False
    filter: str = ""
    projects_flipped: bool = False


@dataclass(frozen=True)
class JobState(State):
    """Layout of the job screen; None if the user has not chosen."""

    tab: str = ""
    job_id: str = ""
    memory_in_matrix: bool = False
    time: str = ""
    wrap: bool | None = None
    collapse_progress: bool | None = None
    fold_tracebacks: bool | None = None


@dataclass(frozen=True)
class Bookmarks(State):
    jobs: list[str] = field(default_factory=list)
    """Ids of jobs, the newest last."""


@dataclass(frozen=True)
class ThemeState(State):
    name: str = ""


@dataclass(frozen=True)
class DashboardState(State):
    """All that the dashboard remembers. Readers ignore values that make no sense to them."""

    home: HomeState = HomeState()
    job: JobState = JobState()
    bookmarks: Bookmarks = Bookmarks()
    theme: ThemeState = ThemeState()
    teams: dict[str, str] = field(default_factory=dict)
    """The chosen team of each remote; empty for all teams."""
    pins: dict[str, list[str]] = field(default_factory=dict)
    """The pinned charts of each project, by their ids."""
    tips: dict[str, int] = field(default_factory=dict)
    """In how many starts each tip was shown."""


StateT = TypeVar("StateT", bound=State)


def state_path(name: str) -> Path:
    return platformdirs.user_state_path("bt-tui") / name


def memory_path() -> Path:
    return state_path("layout.json")


def read_state(path: Path, kind: type[StateT]) -> StateT:
    """Return the state in a file; the default if there is none that can be read."""
    try:
        return _parsed(read_small_file(path), kind)
    except OSError:
        return kind()


def change_state(
    path: Path, kind: type[StateT], change: Callable[[StateT], StateT], *, wait_s: float = 1.0
) -> None:
    """Replace the state in a file with what ``change`` makes of it. Raises OSError if it cannot be saved."""

    def changed(content: bytes) -> bytes:
        after = json.dumps(asdict(change(_parsed(content, kind)))).encode("ascii")
        if len(after) > MAX_SMALL_FILE_BYTES:
            raise OSError(errno.EFBIG, f"it would be larger than {MAX_SMALL_FILE_BYTES:,} bytes", str(path))
        return after

    path.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    update_private_file(path, changed, wait_s=wait_s, replace_unreadable=True)


def _parsed(content: bytes, kind: type[StateT]) -> StateT:
    try:
        state: StateT = restored(kind, json.loads(content))
    except (ValueError, RecursionError):
        return kind()
    return state


class Memory:
    """The state that one dashboard remembers, in a private file or only in memory.

    Other dashboards may change the file, too: ``save`` writes what changed here, and leaves the rest.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.state = read_state(path, DashboardState) if path is not None else DashboardState()
        self._saved = self.state

    def put(self, **changes: Any) -> None:
        """Replace fields of the state; ``save`` writes them to the file."""
        self.state = replace(self.state, **changes)

    def save(self, *, wait_s: float = 0.0) -> None:
        """Write the changes, if any. What cannot be written now is written by a later call."""
        if self._path is None or self.state is self._saved:
            return
        before, after = asdict(self._saved), asdict(self.state)
        if before == after:
            return

        def merge(stored: DashboardState) -> DashboardState:
            state: DashboardState = restored(DashboardState, merged(before, after, asdict(stored)))
            return state

        with suppress(OSError):
            change_state(self._path, DashboardState, merge, wait_s=wait_s)
            self._saved = self.state


def merged(before: Any, after: Any, stored: Any) -> Any:
    """Return the stored value with what changed from ``before`` to ``after``.

    Tables are merged by key and lists of ids by element, where new ones come last; counts add up.
    """
    if before == after:
        return stored
    if isinstance(after, dict) and isinstance(before, dict) and isinstance(stored, dict):
        missing = object()
        names = [*stored, *(name for name in after if name not in stored)]
        values = {
            name: merged(before.get(name, missing), after.get(name, missing), stored.get(name, missing))
            for name in names
        }
        return {name: value for name, value in values.items() if value is not missing}
    if isinstance(after, list) and isinstance(before, list) and isinstance(stored, list):
        changed = set(before) ^ set(after)
        return [item for item in stored if item not in changed] + [item for item in after if item in changed]
    if type(before) is type(after) is type(stored) is int:
        return stored + after - before
    return after
