"""Which config files there are to choose from: recent ones, then those near at hand. Runs none."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import platformdirs

from api_client.files import PRIVATE_FOLDER_MODE, write_private

REMEMBERED = 20
FOUND_AT_MOST = 50
DEEPEST = 3
"""Folders below the working directory that are looked into."""
SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "build", "dist"})
FILE_NAME = "recent-configs.json"
PROJECT = b"TrainingProject"
READ_BYTES = 65_536
"""Of a file near at hand, to see whether it names a project."""


@dataclass(frozen=True, slots=True)
class ConfigChoice:
    """A config file; ``recent`` if it was submitted from here before."""

    path: Path
    recent: bool


def recent_configs_file() -> Path:
    """Where the recent ones are remembered."""
    return platformdirs.user_state_path("bt-tui") / FILE_NAME


def find_configs(below: Path, memory: Path) -> tuple[ConfigChoice, ...]:
    """Recent configs that still exist, newest first, then every ``config.py`` below a folder.

    Those that name a TrainingProject precede the others, as many programs have a ``config.py`` of their own;
    one may also import its project.
    """
    recent = [path for path in _remembered(memory) if path.is_file()]
    near = (path for path in _walk(below) if path not in recent)
    found = sorted(islice(near, FOUND_AT_MOST), key=lambda path: not _names_a_project(path))
    return (
        *(ConfigChoice(path, True) for path in recent),
        *(ConfigChoice(path, False) for path in found),
    )


def remember_config(path: Path, memory: Path) -> None:
    """Put a config first among the recent ones. A memory that cannot be written is done without."""
    kept = [str(other) for other in _remembered(memory) if other != path][: REMEMBERED - 1]
    try:
        memory.parent.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
        write_private(memory, json.dumps([str(path), *kept]).encode())
    except OSError:
        return


def _remembered(memory: Path) -> list[Path]:
    try:
        names = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [Path(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _names_a_project(path: Path) -> bool:
    if not path.is_file():  # a pipe of that name would be waited for
        return False
    try:
        with path.open("rb") as file:
            return PROJECT in file.read(READ_BYTES)
    except OSError:
        return False


def _walk(below: Path) -> Iterator[Path]:
    for folder, subfolders, files in os.walk(below):
        depth = len(Path(folder).relative_to(below).parts)
        subfolders[:] = sorted(
            name for name in subfolders if depth < DEEPEST and name not in SKIPPED and name[0] != "."
        )
        yield from (Path(folder, name) for name in sorted(files) if name == "config.py")
