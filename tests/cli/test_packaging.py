"""The tested versions belong to the declared ranges, and nothing names where packages come from."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def pinned() -> dict[str, str]:
    """Name → version of every line of the constraints."""
    lines = [each for each in (ROOT / "constraints.txt").read_text().splitlines() if not each.startswith("#")]
    return {
        canonicalize_name(name): version
        for name, _equals, version in (each.partition("==") for each in lines)
    }


def requirements() -> list[Requirement]:
    """Everything that pyproject.toml asks for: to run, for the extras, to develop."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = settings["project"]
    extras = [each for group in project["optional-dependencies"].values() for each in group]
    return [
        Requirement(each) for each in project["dependencies"] + extras + settings["dependency-groups"]["dev"]
    ]


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_every_requirement_has_a_tested_version_in_its_range(requirement: Any) -> None:
    version = pinned()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version)


def test_textual_is_pinned_exactly() -> None:
    (textual,) = [each for each in requirements() if each.name == "textual"]
    assert [each.operator for each in textual.specifier] == ["=="]


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml", "Makefile", ".ci/run"])
def test_no_package_host_is_named(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not re.search(r"index-url|find-links|trusted-host|https?://(?!semver)", text)
