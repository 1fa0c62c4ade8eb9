"""A run is called healthy when its log and its metrics were judged, and at no other time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from support.sick_runs import sick_run
from support.worlds import ONE_O_CLOCK, job_metrics, run
from tui.analysis.connection import LOG, METRICS, STATUS
from tui.analysis.node_metrics import MetricsSnapshot, NodeSnapshot
from tui.analysis.run.snapshot import verdict
from tui.analysis.series import Series

WELL = run(metrics=job_metrics((0.97, 0.96, 0.97, 0.97)))
LATER = ONE_O_CLOCK + timedelta(minutes=12)


def parts(*names: str) -> frozenset[str]:
    return frozenset(names)


@pytest.mark.parametrize(
    ("snapshot", "state", "words"),
    [
        (WELL, "healthy", "healthy"),
        (sick_run("straggler"), "findings", ""),
        (replace(WELL, checked_sources=parts(LOG)), "checking", "checking health…"),
        (replace(WELL, checked_sources=parts(METRICS)), "checking", "checking health…"),
        (replace(WELL, checked_sources=parts()), "checking", "checking health…"),
        (replace(WELL, log_read=False), "checking", "checking health…"),
        (
            replace(WELL, checked_sources=parts(LOG), failing=parts(METRICS)),
            *("unknown", "no problems in the log; can't read the metrics"),
        ),
        (
            replace(WELL, failing=parts(LOG)),
            *("unknown", "no problems in the metrics; can't read the log"),
        ),
        (
            replace(WELL, checked_sources=parts(), failing=parts(LOG, METRICS)),
            *("unknown", "health unknown: can't read the log or the metrics"),
        ),
        (
            replace(WELL, health_metrics=MetricsSnapshot()),
            "unknown",
            "no problems in the log, no metrics yet",
        ),
        (replace(WELL, at=LATER), "stale", "no problems when last seen, 12m ago"),
        (replace(WELL, failing=parts(STATUS)), "stale", "no problems when last seen, 0s ago"),
        (replace(WELL, at=LATER, health_metrics_at=LATER, stale_after_s=3600.0), "healthy", "healthy"),
        (replace(WELL, at=LATER, seen_at=LATER), "checking", "checking health…"),
        (replace(WELL, at=LATER, seen_at=LATER, health_metrics_at=LATER), "healthy", "healthy"),
    ],
    ids=[
        *(
            "well",
            "sick",
            "metrics-unjudged",
            "log-unjudged",
            "nothing-judged",
            "log-read-again",
            "metrics-fail",
            "log-fails",
        ),
        *(
            "both-fail",
            "no-samples",
            "offline",
            "status-fails",
            "seldom-asked",
            "just-back",
            "back-and-judged",
        ),
    ],
)
def test_what_may_be_said_of_a_run(snapshot, state, words):
    assert (verdict(snapshot).state, verdict(snapshot).words) == (state, words)


@pytest.mark.parametrize(("seen_s", "state"), [(17.0, "checking"), (299.0, "checking"), (301.0, "healthy")])
def test_a_run_without_gpus_is_judged_after_five_minutes_of_metrics(seen_s: float, state: str) -> None:
    now = ONE_O_CLOCK.timestamp()
    cpu = Series("cpu", (now - seen_s, now), (1.0, 1.0))
    metrics = MetricsSnapshot((NodeSnapshot("node-0", cpu=cpu),), at=now)
    assert verdict(replace(WELL, health_metrics=metrics)).state == state
