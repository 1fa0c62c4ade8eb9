"""What is news, and that nothing is told twice."""

import pickle
from datetime import datetime, timedelta
from typing import Any, Literal

import pytest

from support.worlds import ONE_O_CLOCK, job
from tui.alerts.alert import Alert, AlertTracker, severity_of_end
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import HealthFinding

SLOW = HealthFinding(KINDS["straggler"], "warning", "61% of the others", "node-2")
RUNNING = job("llama70")


def at(minutes: float) -> datetime:
    return ONE_O_CLOCK + timedelta(minutes=minutes)


def told(alerts: tuple[Alert, ...]) -> list[str]:
    return [alert.finding.key if alert.finding else alert.job.current_status for alert in alerts]


STALL = HealthFinding(KINDS["stalled"], "critical", "no step for 9m", since=at(1))
OLD = HealthFinding(KINDS["stalled"], "critical", "no step", since=at(-1))
STORIES: dict[str, list[tuple[float, tuple[HealthFinding, ...], Literal["run", "fleet"], str]]] = {
    "what is new is told once, whoever sees it": [
        (0, (), "run", ""),
        (1, (STALL,), "run", "stalled"),
        (2, (STALL, SLOW), "run", "straggler:node-2"),
        (3, (STALL, SLOW), "fleet", ""),
    ],
    "what began before the dashboard is no news": [(1, (SLOW,), "run", ""), (2, (OLD, SLOW), "run", "")],
    "but what is found there later is": [(1, (), "run", ""), (3, (OLD,), "run", "stalled")],
    "one that wavers is told once, and one that comes back after long again": [
        (0, (), "run", ""),
        (1, (SLOW,), "run", "straggler:node-2"),
        (5, (), "run", ""),
        (20, (SLOW,), "run", ""),
        (21, (), "run", ""),
        (60, (SLOW,), "run", "straggler:node-2"),
    ],
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_what_is_news(story: list[tuple[float, tuple[HealthFinding, ...], Any, str]]) -> None:
    book = AlertTracker(ONE_O_CLOCK)
    for minute, findings, source, news in story:
        assert told(book.update(RUNNING, findings, at(minute), source=source)) == news.split(), minute
    assert told(book.update(job("other"), (STALL,), at(61), source="fleet")) == ["stalled"]


def test_a_snooze_is_for_a_finding_and_a_while_and_only_its_end_is_told() -> None:
    book = AlertTracker(ONE_O_CLOCK)
    book.update(RUNNING, (STALL,), at(1), source="run")
    book.snooze(RUNNING.id, ["stalled"], at(31))
    assert book.snoozed(at(2)) == {(RUNNING.id, "stalled")}
    for minute, news in ((2, ["straggler:node-2"]), (20, []), (32, ["stalled"]), (33, [])):
        assert told(book.update(RUNNING, (STALL, SLOW), at(minute), source="run")) == news
    assert book.snoozed(at(33)) == frozenset()
    book.snooze(RUNNING.id, ["stalled"], at(63))
    book.end_snooze(RUNNING.id, ["stalled"])
    assert told(book.update(RUNNING, (STALL, SLOW), at(34), source="run")) == []


def test_memory_of_jobs_does_not_grow_with_jobs_that_ended() -> None:
    tracker = AlertTracker(ONE_O_CLOCK)
    sizes = []
    for number in range(300):
        running, ended = job(f"job-{number}"), job(f"job-{number}", "COMPLETED")
        tracker.update(running, (), at(number), source="list")
        tracker.update(running, (), at(number), source="preview")
        assert len(tracker.update(ended, (), at(number), source="list")) == 1
        sizes.append(size_of(tracker))
    assert sizes[-1] == sizes[0]


def test_memory_keeps_only_jobs_that_exist() -> None:
    tracker = AlertTracker(ONE_O_CLOCK)
    for name in ("deleted", "kept"):
        tracker.update(job(name), (SLOW,), at(1), source="list")
        tracker.snooze(name, ["stalled"], at(30))
    tracker.prune({"kept"}, at(2))
    assert tracker.snoozed(at(2)) == {("kept", "stalled")}
    assert told(tracker.update(job("kept", "COMPLETED"), (), at(3), source="list")) == [
        "TRAINING_JOB_COMPLETED"
    ]
    assert told(tracker.update(job("deleted", "COMPLETED"), (), at(3), source="list")) == []
    tracker.prune(set(), at(4))
    assert size_of(tracker) == size_of(AlertTracker(ONE_O_CLOCK))


def test_memory_of_findings_ends_once_they_would_count_as_new_again() -> None:
    tracker = AlertTracker(ONE_O_CLOCK)
    tracker.update(RUNNING, (), at(0), source="run")
    empty = size_of(tracker)
    tracker.update(RUNNING, (STALL, SLOW), at(1), source="run")
    tracker.snooze(RUNNING.id, ["stalled"], at(20))
    tracker.prune({RUNNING.id}, at(30))
    assert size_of(tracker) > empty
    tracker.prune({RUNNING.id}, at(32))
    assert size_of(tracker) == empty


def size_of(tracker: AlertTracker) -> int:
    return len(pickle.dumps(tracker))


def test_the_end_of_a_job_is_told_if_it_was_seen_running() -> None:
    book = AlertTracker(ONE_O_CLOCK)
    failed = RUNNING.model_copy(update={"current_status": "TRAINING_JOB_FAILED", "error_message": "exit 1"})
    assert book.update(job("past", "FAILED"), (), at(0), source="fleet") == ()
    book.update(RUNNING, (), at(0), source="fleet")
    news = book.update(failed, (), at(1), source="run")
    assert [(alert.event, alert.severity, alert.text) for alert in news] == [
        ("job-ended", "critical", "failed: exit 1")
    ]
    assert book.update(failed, (), at(2), source="fleet") == ()


@pytest.mark.parametrize(
    ("status", "severity"),
    [("COMPLETED", "info"), ("STOPPED", "warning"), ("EXPIRED", "warning"), ("FAILED", "critical")],
)
def test_severity_of_an_end_depends_on_status(status: str, severity: str) -> None:
    assert severity_of_end(job("one", status)) == severity
