"""The architecture page names what is there, and its arrows are the imports."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from rooms import REPOSITORY, imports, rooms

DOCUMENTS = (*(REPOSITORY / "docs").glob("*.md"), *(REPOSITORY.glob("*.md")))
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
PLACE = re.compile(r"`((?:api_client|tui|tests|benchmarks|examples|docs)/[\w./-]+)`")
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
LAYERS = ("screens", "feeds", "widgets", "wizard", "analysis")


def arrows() -> set[tuple[str, str]]:
    diagram = PAGE.split("```mermaid")[1].split("```")[0]
    places = dict(re.findall(r'(\w+)\["([\w/]+)"\]', diagram))
    bare = re.sub(r'\["[\w/]+"\]', "", diagram)
    return {(places[one], places[other]) for one, other in re.findall(r"(\w+) --> (\w+)", bare)}


def test_every_room_is_described() -> None:
    described = re.findall(r"^\| `((?:api_client|tui)/\w+)` \| \S", PAGE, re.MULTILINE)
    assert sorted(described) == rooms()


def test_every_arrow_is_an_import_and_none_goes_against_it() -> None:
    real = {(one, other) for one, others in imports().items() for other in others}
    assert arrows() - real == set()
    assert {(other, one) for one, other in arrows()} & real == set()


def test_the_contracts_hold_the_same_layers() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == ["tui"] and contract["type"] == "layers"
    )
    order = [room for layer in layers for room in re.findall(r"\w+", layer)]
    drawn = [
        (one.removeprefix("tui/"), other.removeprefix("tui/"))
        for one, other in arrows()
        if one.startswith("tui/") and other.startswith("tui/")
    ]
    known = [(one, other) for one, other in drawn if one in order and other in order]
    assert {one for one, _ in known} >= set(LAYERS[:-1])
    assert [(one, other) for one, other in known if order.index(one) > order.index(other)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_places_and_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    missing = [
        place for place in PLACE.findall(text) if "<" not in place and not (REPOSITORY / place).exists()
    ]
    missing += [link for link in LINK.findall(text) if not (document.parent / link).exists()]
    assert missing == []
