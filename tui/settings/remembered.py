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
from pathlib import Path
from typing import Annotated, Any, TypeVar

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from api_client.files import (
    MAX_SMALL_FILE_BYTES,
    PRIVATE_FOLDER_MODE,
    read_small_file,
    update_private_file,
)


class State(BaseModel):
    """Values to remember, each with a default, which also replaces a value of another type."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False, defer_build=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _default_if_invalid(cls, value: Any, validate: Callable[[Any], Any], info: ValidationInfo) -> Any:
        try:
            return validate(value)
        except ValueError:
            return cls.model_fields[info.field_name or ""].get_default(call_default_factory=True)


class HomeState(State):
    sort: str = ""
    descending: bool = False
    filter: str = ""
    projects_flipped: bool = False


class JobState(State):
    """Layout of the job screen; None if the user has not chosen."""

    tab: str = ""
    job_id: str = ""
    memory_in_matrix: bool = False
    time: str = ""
    wrap: bool | None = None
    collapse_progress: bool | None = None
    fold_tracebacks: bool | None = None


class Bookmarks(State):
    jobs: list[str] = []
    """Ids of jobs, the newest last."""


class ThemeState(State):
    name: str = ""


class DashboardState(State):
    """All that the dashboard remembers. Readers ignore values that make no sense to them."""

    home: HomeState = HomeState.model_construct()
    job: JobState = JobState.model_construct()
    bookmarks: Bookmarks = Bookmarks.model_construct()
    theme: ThemeState = ThemeState.model_construct()
    teams: dict[str, str] = {}
    """The chosen team of each remote; empty for all teams."""
    pins: dict[str, list[str]] = {}
    """The pinned charts of each project, by their ids."""
    tips: dict[str, Annotated[int, Field(ge=0, le=1000)]] = {}
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
        after = json.dumps(change(_parsed(content, kind)).model_dump()).encode("ascii")
        if len(after) > MAX_SMALL_FILE_BYTES:
            raise OSError(errno.EFBIG, f"it would be larger than {MAX_SMALL_FILE_BYTES:,} bytes", str(path))
        return after

    path.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    update_private_file(path, changed, wait_s=wait_s, replace_unreadable=True)


def _parsed(content: bytes, kind: type[StateT]) -> StateT:
    try:
        return kind.model_validate(json.loads(content))
    except (ValueError, RecursionError):
        return kind()


class Memory:
    """The state that one dashboard remembers, in a private file or only in memory.

    Other dashboards may change the file, too: ``save`` writes what changed here, and leaves the rest.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.state = (
            read_state(path, DashboardState) if path is not None else DashboardState.model_construct()
        )
        self._saved = self.state

    def put(self, **changes: State | dict[str, Any]) -> None:
        """Replace fields of the state; ``save`` writes them to the file."""
        self.state = self.state.model_copy(update=changes)

    def save(self, *, wait_s: float = 0.0) -> None:
        """Write the changes, if any. What cannot be written now is written by a later call."""
        if self._path is None or self.state is self._saved:
            return
        before, after = self._saved.model_dump(), self.state.model_dump()
        if before == after:
            return

        def merge(stored: DashboardState) -> DashboardState:
            return DashboardState.model_validate(merged(before, after, stored.model_dump()))

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
