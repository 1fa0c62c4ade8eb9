"""Which rooms (all that lies right below ``api_client`` and ``tui``) import which, out of the sources."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
HOUSES = ("api_client", "tui")
TEMPLATES = "tui.templates"
"""Starter projects: data to this program."""


def rooms() -> list[str]:
    """All packages right below the houses, as ``house/room``."""
    return sorted(
        f"{house}/{path.name}"
        for house in HOUSES
        for path in (REPOSITORY / house).iterdir()
        if (path / "__init__.py").exists() or path.name == "templates"
    )


def imports() -> dict[str, set[str]]:
    """What each room imports of other rooms, the imports within functions and for typing included."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for house in HOUSES:
        for path in (REPOSITORY / house).rglob("*.py"):
            module = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
            if module.startswith(TEMPLATES):
                continue
            own = _room(module.removesuffix(".__init__"))
            for name in _imported(ast.parse(path.read_text(encoding="utf-8"))):
                other = _room(name)
                if name.split(".")[0] in HOUSES and other != own:
                    found[own].add(other)
    return dict(found)


def _room(module: str) -> str:
    return "/".join(module.split(".")[:2])


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
