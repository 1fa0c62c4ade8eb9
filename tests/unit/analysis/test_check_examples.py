"""Each check with its own examples: what it finds, and what resembles it and is none."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from support.example_runs import moment, watch_example
from tui.analysis.fleet.snapshot import brief
from tui.analysis.health.check import Check, Example
from tui.analysis.health.registry import CHECKS
from tui.analysis.run.finding import SHORT_CHARACTERS

EXAMPLES = [
    pytest.param(check, example, id=f"{check.kind}-{example.about}")
    for check in CHECKS
    for example in check.examples
]
BRIEF_CHARACTERS = 32
"""What Home has room for."""


@pytest.mark.parametrize(("check", "example"), EXAMPLES)
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_example_is_found_as_its_check_says(check: Check[Any], example: Example) -> None:
    looks = [[each for each in findings if each.kind == check.kind] for findings in watch_example(example)]
    shorts = [each.short for each in looks[-1]]
    if example.finds:
        assert shorts and shorts[0].startswith(example.finds)
        assert len(shorts[0]) <= SHORT_CHARACTERS
        words = brief(looks[-1][0], moment(example.minutes * 60))
        assert 0 < len(words) <= BRIEF_CHARACTERS and "{" not in words
    else:
        assert not any(looks), looks


def test_every_check_has_an_example_that_it_finds() -> None:
    assert [str(check.kind) for check in CHECKS if not any(each.finds for each in check.examples)] == []


@pytest.mark.proves("docs/health.md", "Health and cost")
def test_noisy_jump_to_harder_data_is_no_divergence() -> None:
    draw = random.Random(270)
    levels = [
        1.2 + 3 / (1 + step / 70) if step < 1020 else 1.72 + 0.35 * math.exp(-(step - 1020) / 150)
        for step in range(1060)
    ]
    losses = [level * (1 + draw.gauss(0, 0.08)) for level in levels]
    run = Example("harder data", minutes=1050, step_s=60.0, loss=losses.__getitem__)
    assert not [each for found in watch_example(run) for each in found if str(each.kind) == "loss-exploding"]
