"""Each threshold of ``[health]`` in the settings, moved, brings or takes away a finding."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from metrics_payloads import GIB, series
from test_health_rules import (
    LEAK,
    RESTARTED,
    SAVED,
    Lines,
    evaluated,
    look,
    metrics,
    moment,
    paced,
    ranks,
    starved,
    steps,
    told,
)

from tui.analysis.health.registry import CHECKS, Thresholds
from tui.analysis.health.rules import HealthRules
from tui.analysis.run.finding import HealthFinding
from tui.settings.loading import load

Look = Callable[[HealthRules], tuple[HealthFinding, ...]]


def seen(at_s: float = 3600, **given: Any) -> Look:
    return lambda rules: look(at_s, rules=rules, **given)


def logged(lines: Lines, at_s: float) -> Look:
    return seen(at_s, progress=told(lines))


def measured(*nodes: dict[str, Any], at_s: float = 3600, **given: Any) -> Look:
    return seen(at_s, health_metrics=metrics(*nodes), **given)


FROM_SCRATCH = [
    *((10.0 * step, f"step {step}/9000 loss=2.0") for step in range(1, 481)),
    (4810.0, "RuntimeError: CUDA error"),
    *((5200.0 + 10.0 * step, f"step {step}/9000 loss=2.0") for step in range(1, 101)),
]


def quiet(step: int) -> float:
    return 1.0 + 0.02 * (step % 5)


def climbing(step: int) -> float:
    return 1.0 + 0.04 * math.sin(step**2) + max(0, step - 580) * 0.02


def saving(count: int) -> Look:
    return seen(5600, checkpoints=SAVED[-count:], progress=told(steps(5600)))


def slowing(to_s: float, from_s: float, until_s: float) -> Look:
    return logged(paced(lambda at: 10 if at < from_s else to_s, until_s), until_s)


def then(before: float, after: float, at_s: float) -> Callable[[float], float]:
    return lambda at: before if at < at_s else after


def rising(level: float, an_hour: float, from_s: float = 0.0) -> Callable[[float], float]:
    return lambda at: level + max(0.0, at - from_s) / 3600 * an_hour


WELL = series(gpu=0.95)
LATE_LEAK = series(gpu_memory=lambda at: rising(68, 24, 2940)(at) * GIB)
WAVERING = metrics(*[WELL] * 3, series(gpu=0.785))
SLOW = look(health_metrics=metrics(*[WELL] * 3, series(gpu=0.74)))
FAILED = sorted([*steps(3600), (3300.0, "ValueError: no")])

CHANGES: dict[str, tuple[object, str, Look]] = {
    "off": (["straggler"], "straggler", measured(WELL, WELL, WELL, series(gpu=0.5))),
    "release": (0.0, "straggler", seen(3700, health_metrics=WAVERING, previous=SLOW)),
    "stall_after_s": (60.0, "stalled", logged(steps(600), 700)),
    "loss_factor": (1.2, "loss-exploding", logged(steps(3000, loss=climbing), 3000)),
    "idle_below": (0.1, "gpu-idle", measured(series(gpu=then(0.95, 0.08, 1200)))),
    "idle_after_s": (60.0, "gpu-idle", measured(series(gpu=then(0.95, 0.0, 3480)))),
    "idle_never_s": (600.0, "gpu-idle", measured(series(range(0, 1260, 60), gpu=0.0, cpu=1.0), at_s=1200)),
    "straggler_share": (0.4, "straggler", measured(WELL, WELL, WELL, series(gpu=0.5))),
    "straggler_window_s": (120.0, "straggler", measured(WELL, WELL, WELL, series(gpu=then(0.95, 0.5, 3480)))),
    "straggler_step_time": (2.0, "straggler",
        seen(601, progress=ranks(*([s] * 60 for s in (1.0, 1.02, 1.6, 0.99))))),
    "missing_after_s": (1200.0, "node-missing", measured(WELL, series(range(0, 3000, 60)))),
    "metrics_after_s": (1800.0, "metrics-missing",
        seen(4500, health_metrics=metrics(series()), health_metrics_at=moment(4500))),
    "gpu_memory_share": (0.95, "gpu-memory", measured(series(gpu_memory=77 * GIB))),
    "disk_share": (0.99, "disk-filling", measured(series(disk=0.97))),
    "growth_window_s": (1200.0, "memory-leak", measured(LATE_LEAK)),
    "full_within_s": (600.0, "memory-leak", seen(health_metrics=LEAK)),
    "checkpoint_factor": (2.0, "checkpoint-overdue", saving(3)),
    "slowdown_share": (0.85, "slowdown", slowing(12.2, 7200, 14_000)),
    "slowdown_window_s": (600.0, "slowdown", slowing(14, 7200, 7950)),
    "overfit_evaluations": (40, "overfitting", lambda rules: evaluated(0.03, rules=rules)),
    "overfit_share": (0.9, "overfitting", lambda rules: evaluated(0.03, rules=rules)),
    "underused_below": (0.2, "gpu-underused", lambda rules: starved(0.31, rules=rules)),
    "underused_after_s": (9000.0, "gpu-underused", lambda rules: starved(0.31, rules=rules)),
    "restarts": (3, "restarts", seen(1100, queue=RESTARTED)),
    "lost_after_s": (7200, "restarts", logged(FROM_SCRATCH, 6200)),
    "errors_within_s": (60.0, "errors", logged(FAILED, 3600)),
    "queued_after_s": (*(3600.0, "queued"), seen(1560, status="PENDING", job={"created_at": moment(0)})),
}  # fmt: skip


@pytest.mark.proves("docs/health.md", "Health and cost")
def test_no_threshold_is_left_out() -> None:
    """A check may move its thresholds in its own examples instead."""
    in_examples = {name for check in CHECKS for example in check.examples for name, _ in example.limits}
    thresholds = {one.name for one in fields(Thresholds)}
    assert set(CHANGES) | in_examples == thresholds, "no Example changes it: give one limits=((NAME, VALUE),)"


@pytest.mark.setting("health")
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.proves("docs/configuration.md", "Configuration")
def test_a_threshold_moved_changes_what_is_found(name: str, tmp_path: Path) -> None:
    value, kind, run = CHANGES[name]
    file = tmp_path / "config.toml"
    file.write_text(f"[health]\n{name} = {json.dumps(value)}\n")
    moved = load({"BT_TUI_CONFIG": str(file)}).configuration.health
    assert kinds(run(HealthRules())) ^ kinds(run(moved)) == {kind}


def kinds(found: tuple[HealthFinding, ...]) -> set[str]:
    return {str(one.kind) for one in found}
