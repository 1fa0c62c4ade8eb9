"""Remember the last layout, filter and sort order between sessions. Optional: all of it may be lost."""

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
MAX_SECTIONS = 32


def memory_path() -> Path:
    return platformdirs.user_state_path("bt-tui") / FILE_NAME


class Memory:
    """Small tables of JSON values by name, in one private file or only in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._tables = _read(path) if path is not None else {}
        self._changed = False

    def table(self, name: str) -> Mapping[str, Any]:
        """Return the values stored under `name`; empty if there are none."""
        found = self._tables.get(name)
        return found if isinstance(found, dict) else {}

    def put(self, name: str, values: Mapping[str, Any]) -> None:
        """Replace the values stored under `name`; ``save`` writes them to the file."""
        if self.table(name) != values:
            self._tables[name] = dict(values)
            self._changed = True

    def save(self) -> None:
        if not self._changed or self._path is None:
            return
        self._changed = False
        content = json.dumps(self._tables).encode("ascii")
        if len(content) > LARGEST_BYTES or len(self._tables) > MAX_SECTIONS:
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
