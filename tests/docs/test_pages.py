"""What the pages name is there: places, links, imports as arrows, functions on the way of a line, proofs."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import click
import pytest
from generated import PAGES, REPOSITORY

from support.markers import marked
from tui.cli import cli as program

DOCUMENTS = (*(REPOSITORY / "docs").glob("*.md"), *(REPOSITORY.glob("*.md")))
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
PLACE = re.compile(r"`((?:api_client|tui|tests|benchmarks|examples|docs)/[\w./-]+)`")
IMPORT = re.compile(r"^ *(?:from|import) ((?:api_client|tui)\.[\w.]+)", re.MULTILINE)
HOUSES = ("api_client", "tui")
TEMPLATES = "tui/templates"
"""Starter projects: data to this program."""
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def arrows() -> set[tuple[str, str]]:
    diagram = PAGE.split("```mermaid")[1].split("```")[0]
    places = dict(re.findall(r'(\w+)\["([\w/]+)"\]', diagram))
    bare = re.sub(r'\["[\w/]+"\]', "", diagram)
    return {(places[one], places[other]) for one, other in re.findall(r"(\w+) --> (\w+)", bare)}


@pytest.mark.proves("docs/architecture.md", "Architecture")
def test_every_package_is_described() -> None:
    help_document = re.findall(r"^\| `((?:api_client|tui)/\w+)` \| \S", PAGE, re.MULTILINE)
    packages = {path.parent for house in HOUSES for path in (REPOSITORY / house).glob("*/__init__.py")}
    packages.add(REPOSITORY / TEMPLATES)
    assert sorted(help_document) == sorted(path.relative_to(REPOSITORY).as_posix() for path in packages)


def imports() -> set[tuple[str, str]]:
    """Which packages import which, within functions and for typing as well."""
    found = set()
    for path in (path for house in HOUSES for path in (REPOSITORY / house).rglob("*.py")):
        place = path.relative_to(REPOSITORY).with_suffix("")
        if not place.is_relative_to(TEMPLATES):
            named = IMPORT.findall(path.read_text(encoding="utf-8"))
            found |= {("/".join(place.parts[:2]), "/".join(name.split(".")[:2])) for name in named}
    return found


@pytest.mark.proves("README.md", "Where things are")
@pytest.mark.proves("docs/architecture.md", "Architecture")
def test_every_arrow_is_an_import_and_none_goes_against_it() -> None:
    real = imports()
    assert arrows() - real == set()
    assert {(other, one) for one, other in arrows()} & real == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_places_and_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    missing = [
        place for place in PLACE.findall(text) if "<" not in place and not (REPOSITORY / place).exists()
    ]
    missing += [link for link in LINK.findall(text) if not (document.parent / link).exists()]
    assert missing == []


STEP = re.compile(r"^(\d+)\. `([\w.]+):([\w.]+)`", re.MULTILINE)
MOST_STEPS = {"A log line": 24, "A GPU sample": 20}
MOST_STEPS_OF_THE_LOG_VIEW = 10


def way(title: str) -> list[tuple[str, str]]:
    section = re.split(r"^### ", PAGE.split(f"### {title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
    steps = STEP.findall(section)
    assert [int(number) for number, _, _ in steps] == list(range(1, len(steps) + 1))
    return [(module, name) for _, module, name in steps]


@pytest.mark.parametrize(("title", "most"), MOST_STEPS.items())
@pytest.mark.proves("docs/architecture.md", "Architecture")
def test_each_step_is_a_function_and_the_way_is_short(title: str, most: int) -> None:
    steps = way(title)
    assert 0 < len(steps) <= most
    for module, name in steps:
        assert callable(reduce(getattr, name.split("."), import_module(module))), (module, name)
    view = [module for module, _ in steps if "log_pane" in module or "log_view" in module]
    assert len(view) <= MOST_STEPS_OF_THE_LOG_VIEW


@pytest.mark.proves("docs/commands.md", "Commands")
def test_every_command_is_on_the_page_and_no_other() -> None:
    page = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")
    context = click.Context(program)
    commands = {name: program.get_command(context, name) for name in program.list_commands(context)}
    shown = {name for name, command in commands.items() if command and not command.hidden}
    named: set[str] = set()
    for cell in re.findall(r"^\| (`.+?) \|", page, re.MULTILINE):
        words = [words.split() for words in re.findall(r"`([^`]+)`", cell)]
        named |= {each[0] for each in words if each[0] in commands}
        groups = [commands[each[0]] for each in words if isinstance(commands.get(each[0]), click.Group)]
        below = {name for group in groups for name in group.list_commands(click.Context(group))}
        assert [each for each in words if each[0] not in commands.keys() | below] == [], cell
    assert shown - named == set()


SECURITY = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")
PROOF = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_proof_is_there() -> None:
    proofs = PROOF.findall(SECURITY)
    assert proofs
    sources = {place: (REPOSITORY / place).read_text(encoding="utf-8") for place, _name in proofs}
    assert [
        f"{place}::{name}"
        for place, name in proofs
        if not re.search(rf"^ *(?:async )?def {name}\(", sources[place], re.MULTILINE)
    ] == []


def test_every_promise_has_a_proof() -> None:
    promised = SECURITY.split("## What is guaranteed")[1].split("## What is not guaranteed")[0]
    promises = re.split(r"^- ", promised, flags=re.MULTILINE)[1:]
    assert [promise for promise in promises if not PROOF.search(promise)] == []


PROMISING = ("README.md", *(f"docs/{page.name}" for page in (REPOSITORY / "docs").glob("*.md")))
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
QUESTION = re.compile(r"^\*\*(.+\?)\*\*", re.MULTILINE)
ROW = re.compile(r"^\| (`[a-z][^`]*`)", re.MULTILINE)
DERIVED = frozenset({"docs/architecture.md", "docs/baseten.md", "docs/truss.md"})
"""Pages that are compared with the code as a whole, beside those with generated parts."""
PROMISES_NOTHING = frozenset({"bt-tui", "What people use it for", "License"})
"""Titles above other parts, and the license."""


def parts(document: str) -> list[str]:
    """Return headings, the questions of the README, and the first command in each row of docs/commands.md."""
    text = CODE.sub("", (REPOSITORY / document).read_text(encoding="utf-8"))
    rows = ROW.findall(text) if document == "docs/commands.md" else []
    return [*HEADING.findall(text), *QUESTION.findall(text), *rows]


@pytest.mark.parametrize("document", PROMISING)
def test_every_part_has_a_test_that_proves_it(document: str) -> None:
    """A page that is derived from the code needs one for the page."""
    proved = {part for marker_of, part in marked("proves") if marker_of == document}
    known = parts(document)
    assert proved - {*known} == set(), "no such part"
    derived = document.removeprefix("docs/") in PAGES or document in DERIVED
    assert {*(known[:1] if derived else known)} - proved - PROMISES_NOTHING == set()


def test_every_marker_names_a_document() -> None:
    assert {document for document, _part in marked("proves")} - {*PROMISING} == set()
