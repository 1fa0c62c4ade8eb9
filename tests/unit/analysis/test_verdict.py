"""A run is called healthy when its log and its metrics were judged, and at no other time."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from support.sick_runs import sick_run
from support.worlds import ONE_O_CLOCK, job, job_metrics, run
from tui.analysis.connection import LOG, METRICS, STATUS
from tui.analysis.health.judge import judged as judged_by_rules
from tui.analysis.node_metrics import MetricsSnapshot, NodeSnapshot
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.run.verdict import verdict
from tui.analysis.series import Series

WELL = run(metrics=job_metrics((0.97, 0.96, 0.97, 0.97)))
LATER = ONE_O_CLOCK + timedelta(minutes=12)


def judged(*parts: str, **fields: Any) -> RunSnapshot:
    return replace(WELL, checked_sources=frozenset(parts), **fields)


def after_a_pause(sickness: str) -> RunSnapshot:
    at = ONE_O_CLOCK + timedelta(seconds=150)
    return judged_by_rules(replace(sick_run(sickness), at=at, seen_at=at))


CHECKING = "checking: checking health…"
NO_LOG, NO_METRICS, NO_STATUS = frozenset({LOG}), frozenset({METRICS}), frozenset({STATUS})


def said_of_runs() -> list[tuple[RunSnapshot, str]]:
    return [
        (WELL, "healthy: healthy"),
        (sick_run("straggler"), "findings: "),
        (after_a_pause("straggler"), "findings: "),
        (after_a_pause(""), "healthy: healthy"),
        (judged(LOG), CHECKING),
        (judged_by_rules(replace(WELL, health_metrics=None)), CHECKING),
        (judged_by_rules(replace(sick_run("hang"), log_read=False)), CHECKING),
        (judged(METRICS), CHECKING),
        (replace(WELL, log_read=False), CHECKING),
        (judged(LOG, failing=NO_METRICS), "unknown: no problems in the log; can't read the metrics"),
        (replace(WELL, failing=NO_LOG), "unknown: no problems in the metrics; can't read the log"),
        (judged(failing=NO_LOG | NO_METRICS), "unknown: health unknown: can't read the log or the metrics"),
        (replace(WELL, health_metrics=MetricsSnapshot()), "unknown: no problems in the log, no metrics yet"),
        (replace(WELL, at=LATER), "stale: no problems when last seen, 12m ago"),
        (replace(WELL, failing=NO_STATUS), "stale: no problems when last seen, 0s ago"),
        (replace(WELL, at=LATER, health_metrics_at=LATER, stale_after_s=3600.0), "healthy: healthy"),
        (replace(WELL, at=LATER, seen_at=LATER), CHECKING),
        (replace(WELL, at=LATER, seen_at=LATER, health_metrics_at=LATER), "healthy: healthy"),
    ]


@pytest.mark.proves("docs/health.md", "Health and cost")
def test_what_may_be_said_of_a_run() -> None:
    said = said_of_runs()
    assert [f"{verdict(run).state}: {verdict(run).words}" for run, _ in said] == [words for _, words in said]


NO_STEPS = replace(WELL, progress=None)
NEW = replace(NO_STEPS, job=job("new", hours_ago=0.05), queue=None)


@pytest.mark.parametrize(
    ("run", "seen_s", "words"),
    [(WELL, 299.0, "checking health…"), (WELL, 301.0, "healthy"),
     (NEW, 100.0, "checking health: just started…"), (NO_STEPS, 1000.0, "checking health: no steps seen yet…")],
)  # fmt: skip
def test_what_is_said_of_a_run_without_gpus_by_its_metrics(
    run: RunSnapshot, seen_s: float, words: str
) -> None:
    now = ONE_O_CLOCK.timestamp()
    cpu = Series("cpu", (now - seen_s, now), (1.0, 1.0))
    metrics = MetricsSnapshot((NodeSnapshot("node-0", cpu=cpu),), at=now)
    assert verdict(replace(run, health_metrics=metrics)).words == words
