"""What is imported is declared in tested ranges, and nothing names where packages come from."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.warm_python import ROOT

IMPORT = re.compile(r"^ *(?:import (?=[\w.]+(?: as \w+)?$)|from (?=[\w.]+ import ))(\w+)", re.MULTILINE)


SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINNED = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)


def to_use() -> list[Requirement]:
    project = SETTINGS["project"]
    extras = [each for group in project["optional-dependencies"].values() for each in group]
    return [Requirement(each) for each in project["dependencies"] + extras]


def imported() -> set[str]:
    """The top-level names that the packages import; the templates are code of jobs."""
    paths = (*ROOT.glob("api_client/**/*.py"), *ROOT.glob("tui/**/*.py"))
    texts = (path.read_text() for path in paths if "templates" not in path.parts)
    return {name for text in texts for name in IMPORT.findall(text)}


def test_every_requirement_has_a_tested_version_in_its_range() -> None:
    versions = {canonicalize_name(name): version for name, version in PINNED}
    to_develop = [Requirement(each) for each in SETTINGS["dependency-groups"]["dev"]]
    for requirement in to_use() + to_develop:
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), requirement


def test_everything_imported_is_declared() -> None:
    declared = {canonicalize_name(each.name) for each in to_use()}
    of_import = packages_distributions()
    own, optional, in_texts = {"api_client", "tui"}, {"truss_train", "huggingface_hub"}, {"openai"}
    for name in imported() - sys.stdlib_module_names - own - optional - in_texts:
        assert declared & {canonicalize_name(each) for each in of_import[name]}, name


def test_what_is_installed_with_the_program_is_bounded_on_both_sides() -> None:
    operators = {each.name: {one.operator for one in each.specifier} for each in to_use()}
    assert operators.pop("textual") == {"=="}
    operators.pop("certifi")  # authorities only get newer
    assert all(found in ({">=", "<"}, {"=="}) for found in operators.values()), operators


def test_no_package_host_is_named() -> None:
    for name in ("constraints.txt", "pyproject.toml", "Makefile", ".ci/run"):
        text = (ROOT / name).read_text()
        assert not re.search(r"index-url|find-links|trusted-host|https?://(?!semver)", text), name
