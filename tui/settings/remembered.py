"""Save the layout, bookmarks and more between sessions; the dashboard also works without saved state.

A state file is a ``State`` as JSON. A field whose stored value has the wrong type gets its default, and the
next save overwrites that value. Processes that share a file lock it to write, and each writes only its own
changes.
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
    """Base of frozen dataclasses whose fields are remembered; each field needs a default.

    A default also replaces a stored value of another type. pydantic could do that, too, but importing it
    would delay Home's first frame, which needs the remembered state.
    """


# cached, because evaluating the annotations takes three quarters of the time of a read
field_types = cache(get_type_hints)


def restored(kind: Any, stored: Any) -> Any:
    """Convert stored JSON to a value of the type ``kind``. Raises ValueError for JSON of another type."""
    if kind is Any:
        return stored
    origin, type_arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(stored, dict):
        values = {}
        for name, part_type in field_types(kind).items():
            with suppress(KeyError, ValueError):
                values[name] = restored(part_type, stored[name])
        return kind(**values)
    if origin is UnionType:
        for part_type in type_arguments:
            with suppress(ValueError):
                return restored(part_type, stored)
    if origin is dict and isinstance(stored, dict):
        return {
            restored(type_arguments[0], key): restored(type_arguments[1], value)
            for key, value in stored.items()
        }
    if origin is list and isinstance(stored, list):
        return [restored(type_arguments[0], value) for value in stored]
    if origin is tuple and isinstance(stored, list):
        return tuple(
            restored(part_type, value) for part_type, value in zip(type_arguments, stored, strict=True)
        )
    if kind is float and type(stored) is int:
        stored = float(str(stored))  # infinite if it is too large
    if type(stored) is not kind:
        raise ValueError(f"not {kind}")
    # raises ValueError for NaN, infinity or a lone surrogate
    json.dumps(stored, allow_nan=False, ensure_ascii=False).encode()
    return stored


@dataclass(frozen=True)
class HomeState(State):
    sort: str = ""
    descending: bool = False
    filter: str = ""
    projects_flipped: bool = False


@dataclass(frozen=True)
class JobState(State):
    """Layout of the job screen; empty or None where the user has chosen nothing."""

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
    """Ids of bookmarked jobs, the newest bookmark last."""


@dataclass(frozen=True)
class ThemeState(State):
    name: str = ""


@dataclass(frozen=True)
class DashboardState(State):
    """Everything that the dashboard remembers. Readers must ignore values that they do not know."""

    home: HomeState = HomeState()
    job: JobState = JobState()
    bookmarks: Bookmarks = Bookmarks()
    theme: ThemeState = ThemeState()
    teams: dict[str, str] = field(default_factory=dict)
    """The chosen team by remote; an empty text stands for all teams."""
    pins: dict[str, list[str]] = field(default_factory=dict)
    """The ids of pinned charts by project."""
    tips: dict[str, int] = field(default_factory=dict)
    """The number of starts that showed a tip, by tip."""


StateT = TypeVar("StateT", bound=State)


def state_path(name: str) -> Path:
    return platformdirs.user_state_path("bt-tui") / name


def memory_path() -> Path:
    return state_path("layout.json")


def read_state(path: Path, kind: type[StateT]) -> StateT:
    """Return the state in a file; the default state if the file is missing or invalid."""
    try:
        return _parse_state(read_small_file(path), kind)
    except OSError:
        return kind()


def change_state(
    path: Path, kind: type[StateT], change: Callable[[StateT], StateT], *, wait_s: float = 1.0
) -> None:
    """Replace the state in a file with ``change(state)``. Raises OSError if it cannot be saved."""

    def changed_content(content: bytes) -> bytes:
        new_content = json.dumps(asdict(change(_parse_state(content, kind)))).encode("ascii")
        if len(new_content) > MAX_SMALL_FILE_BYTES:
            raise OSError(errno.EFBIG, f"it would be larger than {MAX_SMALL_FILE_BYTES:,} bytes", str(path))
        return new_content

    path.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    update_private_file(path, changed_content, wait_s=wait_s, replace_unreadable=True)


def _parse_state(content: bytes, kind: type[StateT]) -> StateT:
    try:
        state: StateT = restored(kind, json.loads(content))
    except (ValueError, RecursionError):
        return kind()
    return state


class Memory:
    """The state of one dashboard, remembered in a private file, or only in memory without a path.

    Other dashboards may change the file, too: ``save`` writes only the changes of this dashboard.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.state = read_state(path, DashboardState) if path is not None else DashboardState()
        self._saved_state = self.state

    def put(self, **changes: Any) -> None:
        """Replace fields of the state; ``save`` writes them to the file."""
        self.state = replace(self.state, **changes)

    def save(self, *, wait_s: float = 0.0) -> None:
        """Write the changes, if any; if that fails, a later call tries again."""
        if self._path is None or self.state is self._saved_state:
            return
        before, after = asdict(self._saved_state), asdict(self.state)
        if before == after:
            return

        def merge(stored_state: DashboardState) -> DashboardState:
            state: DashboardState = restored(DashboardState, merged(before, after, asdict(stored_state)))
            return state

        with suppress(OSError):
            change_state(self._path, DashboardState, merge, wait_s=wait_s)
            self._saved_state = self.state


def merged(before: Any, after: Any, stored: Any) -> Any:
    """Return the stored value with the changes from ``before`` to ``after`` applied.

    Tables are merged by key, lists of ids by element (new ids are appended), and counts by their difference.
    """
    if before == after:
        return stored
    if isinstance(after, dict) and isinstance(before, dict) and isinstance(stored, dict):
        absent = object()
        names = [*stored, *(name for name in after if name not in stored)]
        values = {
            name: merged(before.get(name, absent), after.get(name, absent), stored.get(name, absent))
            for name in names
        }
        return {name: value for name, value in values.items() if value is not absent}
    if isinstance(after, list) and isinstance(before, list) and isinstance(stored, list):
        changed_items = set(before) ^ set(after)
        return [item for item in stored if item not in changed_items] + [
            item for item in after if item in changed_items
        ]
    if type(before) is type(after) is type(stored) is int:
        return stored + after - before
    return after
