"""Which rooms (all that lies right below ``api_client`` and ``tui``) import which, out of the sources."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
HOUSES = ("api_client", "tui")
_IMPORT = re.compile(r"^ *(?:from|import) ((?:api_client|tui)\.[\w.]+)", re.MULTILINE)
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
            if not module.startswith(TEMPLATES):
                own = _room(module.removesuffix(".__init__"))
                named = _IMPORT.findall(path.read_text(encoding="utf-8"))
                found[own] |= {_room(name) for name in named} - {own}
    return dict(found)


def _room(module: str) -> str:
    return "/".join(module.split(".")[:2])
