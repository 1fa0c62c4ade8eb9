"""Weights from this machine: ``file:///home/me/model``, for trying a configuration out."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from api_client.emulator.runner.weights_order import FetchFailed, FetchOrder, Progress
from api_client.emulator.runner.weights_placing import place


def fetch_files(order: FetchOrder, progress: Progress) -> None:
    """Copy a folder's files, or one file; raises ``FetchFailed`` if there is no such thing."""
    source = Path(unquote(order.location))
    if not source.is_absolute():
        raise FetchFailed("a file:// source needs an absolute path, as in file:///home/me/model")
    if source.is_dir():
        found = {path.relative_to(source).as_posix(): path for path in _below(source)}
    elif source.is_file():
        found = {source.name: source}
    else:
        raise FetchFailed(f"there is no {source} on this machine")
    wanted = {name: path for name, path in sorted(found.items()) if order.wants(name)}
    progress.expect(len(wanted), sum(path.stat().st_size for path in wanted.values()))
    for name, path in wanted.items():
        place(path, Path(order.destination), name, link=False)
        progress.add(path.stat().st_size)


def _below(folder: Path) -> list[Path]:
    """Every file; links to files count as what they lead to, links to folders are left alone."""
    return [
        Path(parent) / name
        for parent, _, names in os.walk(folder)
        for name in names
        if (Path(parent) / name).is_file()
    ]
