"""Which folders go into an archive: the config's own, or what its ``Workspace`` says (API facts, 3.5)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from api_client.errors import ArchiveError


class WorkspaceSettings(Protocol):
    """The three fields of ``definitions.Workspace``; paths are relative to the config's folder."""

    workspace_root: str | None
    external_dirs: list[str]
    exclude_dirs: list[str]


@dataclass(frozen=True, slots=True)
class WorkspaceLayout:
    """``root`` is archived as the working directory, each of ``externals`` under its own name in it.

    ``excluded`` are names at the top of ``root`` that stay out. ``follows_links``: a workspace is
    archived as if it had been copied, links resolved; a plain config folder keeps its links.
    """

    root: Path
    externals: tuple[Path, ...] = ()
    excluded: frozenset[str] = frozenset()
    follows_links: bool = False
    warnings: tuple[str, ...] = ()


def lay_out(config_dir: Path, workspace: WorkspaceSettings | None) -> WorkspaceLayout:
    """Work out what to archive. Raises ArchiveError naming the setting that cannot be used."""
    config_dir = Path(os.path.abspath(config_dir))  # noqa: PTH100 – links in the path stay as they are
    if not config_dir.is_dir():
        raise ArchiveError(f"{config_dir} is not a folder")
    if workspace is None or not (
        workspace.workspace_root or workspace.external_dirs or workspace.exclude_dirs
    ):
        return WorkspaceLayout(config_dir)
    config_dir = config_dir.resolve()
    root = (config_dir / (workspace.workspace_root or ".")).resolve()
    if not config_dir.is_relative_to(root):
        raise ArchiveError(f"workspace_root: {root} does not contain the config's folder {config_dir}")
    excluded = frozenset(_excluded_name(text, config_dir, root) for text in workspace.exclude_dirs)
    externals, warnings = _externals(workspace.external_dirs, config_dir, root, excluded)
    return WorkspaceLayout(root, externals, excluded, follows_links=True, warnings=warnings)


def _excluded_name(text: str, config_dir: Path, root: Path) -> str:
    path = (config_dir / text).resolve()
    if path.parent != root or path == root:
        raise ArchiveError(
            f"exclude_dirs: '{text}' is {path}, not directly inside the workspace's root {root};"
            " only what lies at its top can be excluded"
        )
    return path.name


def _externals(
    texts: list[str], config_dir: Path, root: Path, excluded: frozenset[str]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The folders from outside, and warnings for those that are not outside."""
    taken = {entry.name for entry in root.iterdir()} - excluded if texts else set()
    kept: list[Path] = []
    warnings: list[str] = []
    for text in texts:
        path = (config_dir / text).resolve()
        if path.is_relative_to(root):
            warnings.append(f"external_dirs: '{text}' lies inside the workspace's root already; skipped")
            continue
        if not path.is_dir():
            problem = "is not a folder" if path.exists() else "does not exist"
            raise ArchiveError(f"external_dirs: '{text}' ({path}) {problem}")
        if path.name in taken:
            raise ArchiveError(
                f"external_dirs: '{text}' would be '{path.name}' in the archive, and there is one already"
            )
        taken.add(path.name)
        kept.append(path)
    return tuple(kept), tuple(warnings)
