"""The ways of a log line and of a GPU sample name functions that exist, and stay short."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module

import pytest
from rooms import REPOSITORY

PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
STEP = re.compile(r"^(\d+)\. `([\w.]+):([\w.]+)`", re.MULTILINE)
MOST_STEPS = {"A log line": 32, "A GPU sample": 26}
MOST_STEPS_OF_THE_LOG_VIEW = 14


def way(title: str) -> list[tuple[str, str]]:
    section = re.split(r"^### ", PAGE.split(f"### {title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
    steps = STEP.findall(section)
    assert [int(number) for number, _, _ in steps] == list(range(1, len(steps) + 1))
    return [(module, name) for _, module, name in steps]


@pytest.mark.parametrize(("title", "most"), MOST_STEPS.items())
def test_each_step_is_a_function_and_the_way_is_short(title: str, most: int) -> None:
    steps = way(title)
    assert 0 < len(steps) <= most
    for module, name in steps:
        function = reduce(getattr, name.split("."), import_module(module))
        assert callable(function), (module, name)


def test_the_log_view_has_few_of_the_steps() -> None:
    view = [module for module, _ in way("A log line") if "log_pane" in module or "log_view" in module]
    assert 0 < len(view) <= MOST_STEPS_OF_THE_LOG_VIEW
