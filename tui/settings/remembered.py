"""What the dashboard remembers from one time to the next: last layout, filter and order. Never needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs

from api_client.files import PRIVATE_FOLDER_MODE, write_private

FILE_NAME = "layout.json"
LARGEST_BYTES = 64 * 1024
MOST_SECTIONS = 32


def memory_path() -> Path:
    """Where it is kept."""
    return platformdirs.user_state_path("bt-tui") / FILE_NAME


class Memory:
    """Small tables of JSON values by name, in one private file; without a path, for this time only.

    A file that cannot be read counts as empty, one that cannot be written is done without.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._tables = _read(path) if path is not None else {}
        self._changed = False

    def table(self, name: str) -> Mapping[str, Any]:
        """What was put there last; empty for nothing."""
        found = self._tables.get(name)
        return found if isinstance(found, dict) else {}

    def put(self, name: str, values: Mapping[str, Any]) -> None:
        """Remember these values, until others are put there; ``save`` writes them."""
        if self.table(name) != values:
            self._tables[name] = dict(values)
            self._changed = True

    def save(self) -> None:
        """Write the file, if there is anything new: beside it first, then in its place."""
        if not self._changed or self._path is None:
            return
        self._changed = False
        content = json.dumps(self._tables).encode("ascii")
        if len(content) > LARGEST_BYTES or len(self._tables) > MOST_SECTIONS:
            return
        with suppress(OSError):
            self._path.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
            write_private(self._path, content)


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        found = json.loads(content) if len(content) <= LARGEST_BYTES else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
