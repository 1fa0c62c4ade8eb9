"""What is news, and that nothing is told twice."""

from dataclasses import replace
from datetime import datetime, timedelta

from support.worlds import ONE_O_CLOCK, job
from tui.alerts.alert import Alert, AlertTracker
from tui.analysis.run.finding import FindingKind, HealthFinding

STALL = HealthFinding(
    FindingKind.STALLED, "critical", "no step for 9m", since=ONE_O_CLOCK + timedelta(minutes=1)
)
SLOW = HealthFinding(FindingKind.STRAGGLER, "warning", "61 % of the others", "node-2")
RUNNING = job("llama70")


def at(minutes: float) -> datetime:
    return ONE_O_CLOCK + timedelta(minutes=minutes)


def told(alerts: tuple[Alert, ...]) -> list[str]:
    return [alert.finding.key if alert.finding else alert.job.current_status for alert in alerts]


def test_what_is_new_is_told_once_whoever_sees_it() -> None:
    book = AlertTracker(ONE_O_CLOCK)
    assert told(book.update(RUNNING, (), at(0), source="run")) == []
    assert told(book.update(RUNNING, (STALL,), at(1), source="run")) == ["stalled"]
    assert told(book.update(RUNNING, (STALL, SLOW), at(2), source="run")) == ["straggler:node-2"]
    assert told(book.update(RUNNING, (STALL, SLOW), at(3), source="fleet")) == []


def test_what_began_before_the_dashboard_is_no_news() -> None:
    book = AlertTracker(ONE_O_CLOCK)
    old = HealthFinding(FindingKind.STALLED, "critical", "no step", since=at(-1))
    assert told(book.update(RUNNING, (old, SLOW), at(1), source="fleet")) == []
    assert told(book.update(RUNNING, (old, SLOW), at(2), source="fleet")) == []
    later = book.update(job("other"), (STALL,), at(5), source="fleet")
    assert told(later) == ["stalled"]


def test_one_that_wavers_is_told_once_and_one_that_comes_back_after_long_again() -> None:
    book = AlertTracker(ONE_O_CLOCK)
    book.update(RUNNING, (), at(0), source="run")
    assert told(book.update(RUNNING, (SLOW,), at(1), source="run")) == ["straggler:node-2"]
    book.update(RUNNING, (), at(5), source="run")
    assert told(book.update(RUNNING, (SLOW,), at(20), source="run")) == []
    book.update(RUNNING, (), at(21), source="run")
    assert told(book.update(RUNNING, (SLOW,), at(60), source="run")) == ["straggler:node-2"]


def test_a_snooze_is_for_a_finding_and_a_while_and_then_it_is_told_again() -> None:
    book = AlertTracker(ONE_O_CLOCK)
    book.update(RUNNING, (STALL,), at(1), source="run")
    book.snooze(RUNNING.id, ["stalled"], at(31))
    assert book.snoozed(at(2)) == {(RUNNING.id, "stalled")}
    assert told(book.update(RUNNING, (STALL, SLOW), at(2), source="run")) == ["straggler:node-2"]
    assert told(book.update(RUNNING, (STALL, SLOW), at(20), source="run")) == []
    assert told(book.update(RUNNING, (STALL, SLOW), at(32), source="run")) == ["stalled"]
    assert told(book.update(RUNNING, (STALL, SLOW), at(33), source="run")) == []
    assert book.snoozed(at(33)) == frozenset()


def test_who_is_woken_is_not_told_at_once() -> None:
    book = AlertTracker(ONE_O_CLOCK)
    book.update(RUNNING, (STALL,), at(1), source="run")
    book.snooze(RUNNING.id, ["stalled"], at(31))
    book.wake(RUNNING.id, ["stalled"])
    assert told(book.update(RUNNING, (STALL,), at(2), source="run")) == []


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


def test_the_memory_of_what_was_told_is_bounded() -> None:
    book = AlertTracker(ONE_O_CLOCK)
    book.update(
        RUNNING, [replace(SLOW, node=f"node-{number}") for number in range(5_100)], at(1), source="run"
    )
    assert len(book._seen) <= 5_000
