"""Each check with its own examples: what it finds, and what resembles it and is none."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
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


def evaluations(rise: float) -> tuple[tuple[float, str], ...]:
    return tuple(
        (600.0 * n, f"step {60 * n} eval_loss: {1 + 0.8**n + max(0, n - 7) * rise:.4f}") for n in range(1, 14)
    )


CRASHES = tuple((3600.0 + 300 * n, "RuntimeError: engine 3 is dead") for n in range(6))
START = tuple(
    (at, "ValueError: no memory for the cache" if at % 240 == 0 else f"Loading shard {at // 60}")
    for at in (240, 300, 900, *range(960, 1500, 60))
)
IDLES = lambda at: 0.95 if at < 3600 else 0.0  # noqa: E731
SAMPLED_LATE = tuple(lambda at, use=use: use if at >= 3600 else None for use in (0.95, 0.95, 0.95, 0.6))
SEVERITIES = (
    ("evaluations that get worse with each", "overfitting", "warning", Example("", others=evaluations(0.1))),
    ("those that get a bit worse", "overfitting", "info", Example("", minutes=132, others=evaluations(0.05))),
    ("crashes that cost nothing", "errors", "info", Example("", minutes=90, others=CRASHES)),
    (
        "crashes that slow each step",
        "errors",
        "warning",
        Example("", minutes=90, others=CRASHES, step_s=lambda at: 10.0 if at < 3590 else 15.0),
    ),
    (
        "crashes that slow each step of a run without metrics",
        "errors",
        "warning",
        Example(
            "",
            minutes=90,
            others=CRASHES,
            step_s=lambda at: 10.0 if at < 3590 else 15.0,
            gpu=(lambda _at: None,),
        ),
    ),
    (
        "an error before the first step",
        "errors",
        "info",
        Example("", minutes=25, stops_s=0, others=START[:3]),
    ),
    ("one that comes again and again", "errors", "warning", Example("", minutes=25, stops_s=0, others=START)),
    ("a node that may always have lagged", "straggler", "warning", Example("", gpu=SAMPLED_LATE)),
    ("a node that idles while steps stay", "gpu-idle", "info", Example("", gpu=(0.95, IDLES))),
    (
        "one that idles since they are slower",
        "gpu-idle",
        "warning",
        Example("", gpu=(0.95, IDLES), step_s=lambda at: 10.0 if at < 3600 else 14.0),
    ),
)


@pytest.mark.proves("docs/health.md", "Health and cost")
@pytest.mark.parametrize(
    ("kind", "severity", "run"), [pytest.param(*case[1:], id=case[0]) for case in SEVERITIES]
)
def test_finding_is_as_severe_as_what_it_costs(kind: str, severity: str, run: Example) -> None:
    *_, found = watch_example(run)
    assert [each.severity for each in found if str(each.kind) == kind] == [severity]


@pytest.mark.proves("docs/health.md", "Health and cost")
@pytest.mark.parametrize(
    ("step_s", "severity"), [(10.0, "info"), (lambda at: 10.0 if at < 3600 else 15.0, "warning")]
)
def test_lagging_node_is_a_remark_if_the_run_keeps_its_speed(
    step_s: float | Callable[[float], float], severity: str
) -> None:
    lags = lambda at: 0.95 if at < 3600 else 0.6  # noqa: E731
    *_, found = watch_example(Example("one of four lags", gpu=(0.95, 0.95, 0.95, lags), step_s=step_s))
    slow = [each for each in found if str(each.kind) == "straggler"]
    assert [(each.node, each.severity, each.wasted > 0) for each in slow] == [
        ("node-3", severity, severity == "warning")
    ]


@pytest.mark.proves("docs/health.md", "Health and cost")
@pytest.mark.parametrize(
    ("line", "others"),
    [
        ("step {step}/90000 loss={loss:.4f} total_tflops={step}00", ()),
        ("step {step}/90000 loss={loss:.4f} peak_tflops=989.5", ()),
        (
            "step {step}/90000 loss={loss:.4f}",
            tuple((3600.0 * n, f"epoch {n} done, mfu 43.{n % 2}%") for n in (1, 2, 3)),
        ),
    ],
    ids=["a total", "a peak", "the use of an epoch"],
)
def test_slowdown_is_found_beside_operations_that_are_no_speed(
    line: str, others: tuple[tuple[float, str], ...]
) -> None:
    run = Example("", minutes=239, line=line, others=others, step_s=lambda at: 10.0 if at < 7200 else 16.0)
    *_, found = watch_example(run)
    assert [each.short[:10] for each in found if str(each.kind) == "slowdown"] == ["38% slower"]


@pytest.mark.proves("docs/health.md", "Health and cost")
def test_growth_that_has_ended_is_no_leak() -> None:
    """A copy of the data is in memory by minute 67."""
    copied = Example("a copy of the data", minutes=115, memory_gib=lambda at: min(388.0, 120 + at / 15))
    looks = [[each for each in found if str(each.kind) == "memory-leak"] for found in watch_example(copied)]
    assert any(looks) and not looks[-1]


@pytest.mark.proves("docs/health.md", "Health and cost")
def test_memory_that_is_not_half_full_is_no_leak_after_a_gap_in_its_samples() -> None:
    fills = Example("", minutes=165, memory_gib=lambda at: None if 720 <= at <= 1920 else 60 + at / 75)
    found = [str(each.kind) for findings in watch_example(fills) for each in findings]
    assert "memory-leak" not in found, "190 of 400 GiB"
    *_, found_later = watch_example(replace(fills, minutes=200))
    assert "memory-leak" in [str(each.kind) for each in found_later]


TEETH = (12, 12, 12, 16, 12, 20)
"""GiB by which memory grows in each 40 minutes, before it is freed."""

NOISE = random.Random(270)
HARDER = [
    (1.2 + 3 / (1 + step / 70) if step < 1020 else 1.72 + 0.35 * math.exp(-(step - 1020) / 150))
    * (1 + NOISE.gauss(0, 0.08))
    for step in range(1060)
]
IN_TURN = tuple(lambda at, n=n: 0.95 if at < 3600 or at // 400 % 4 == n else 0.8 for n in range(4))
RECOVERED = tuple(lambda at, n=n: 0.35 if n == 3 and 3000 < at < 3600 else 0.95 for n in range(4))
QUIET: dict[str, tuple[str, Example, int]] = {
    "a noisy jump to harder data": (
        "loss-exploding",
        Example("", minutes=1050, step_s=60.0, loss=HARDER.__getitem__),
        0,
        300,
    ),
    "nodes that are busiest in turn": ("straggler", Example("", gpu=IN_TURN), 0, 300),
    # A node that has been found to lag is not compared with the time in which it did.
    "a node that works again": ("straggler", Example("", gpu=RECOVERED), -1, 300),
    "a tooth a little higher than ever": (
        "memory-leak",
        Example("", minutes=239, gpu_memory_gib=lambda at: 55 + TEETH[int(at / 2400)] * (at % 2400 / 2400)),
        50,
        60,
    ),
    "the longest inputs first, a little longer than before": (
        "slowdown",
        Example(
            "",
            minutes=140,
            step_s=lambda at: (16 - 10 * (at % 5400) / 5400) * (1.0 if at < 5400 else 1.1),
        ),
        10,
        300,
    ),
}
"""What is not found of a run, from which of its looks on, and how many seconds are between these."""


@pytest.mark.proves("docs/health.md", "Health and cost")
@pytest.mark.parametrize(("kind", "run", "first", "look_s"), QUIET.values(), ids=QUIET)
def test_run_that_resembles_a_sick_one_has_no_finding(
    kind: str, run: Example, first: int, look_s: int
) -> None:
    looks = list(watch_example(run, look_s=look_s))[first:]
    assert not [each for found in looks for each in found if str(each.kind) == kind]


@pytest.mark.proves("docs/health.md", "Health and cost")
@pytest.mark.parametrize(("swing", "is_found"), [(0.15, False), (0.0, True)])
def test_silence_is_allowed_twice_the_time_while_gpus_go_up_and_down(swing: float, is_found: bool) -> None:
    level = lambda at: 0.8 + swing * (-1) ** int(at // 60)  # noqa: E731
    run = Example("a pause of 15 minutes at no round step", minutes=105, stops_s=5395, gpu=(level,))
    found = [str(each.kind) for findings in watch_example(run) for each in findings]
    assert ("stalled" in found) == is_found
