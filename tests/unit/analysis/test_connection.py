from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api_client.events import RequestEvent
from tui.analysis.connection import FORGOTTEN_S, ROUTE_GRACE_S, Connection, ConnectionState, StaleResource

LIVE, LOST = ConnectionState.LIVE, ConnectionState.LOST
RETRYING, UNAUTHORIZED = ConnectionState.RETRYING, ConnectionState.UNAUTHORIZED
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LISTED = "/v1/training_projects"
JOB, OTHER_JOB = f"{LISTED}/p/jobs/j", f"{LISTED}/p/jobs/other"


def event(
    kind: Any, *, after_s: float = 0.0, path: str = LISTED, attempt: int = 1, **fields: Any
) -> RequestEvent:
    return RequestEvent(kind, "GET", path, attempt, NOON + timedelta(seconds=after_s), **fields)


def fold(*events: RequestEvent) -> Connection:
    connection = Connection()
    for one in events:
        connection = connection.after(one)
    return connection


def test_waiting_says_when_it_tries_again_and_keeps_the_first_failure_and_the_last_answer() -> None:
    connection = fold(
        event("answered", status=200),
        event("waiting", after_s=5, delay_s=1.0, reason="connection refused"),
        event("waiting", after_s=7, delay_s=4.0, reason="connection refused", attempt=2),
    )
    assert (connection.link, connection.answered_at) == (RETRYING, NOON)
    assert connection.failing_since == NOON + timedelta(seconds=5)
    assert connection.retry_at == NOON + timedelta(seconds=11)


FAILURES = {
    401: (UNAUTHORIZED, UNAUTHORIZED),
    403: (UNAUTHORIZED, LIVE),  # one forbidden route is no trouble
    404: (LIVE, LIVE),
    429: (LOST, LIVE),  # not yet
    503: (LOST, LIVE),
    200: (LOST, LOST),  # an answer that is no answer
}


@pytest.mark.parametrize("status", FAILURES)
def test_what_a_failed_request_tells_of_the_server_at_first_and_after_an_answer(status: int) -> None:
    failed = event("failed", after_s=60, status=status, reason="why")
    after = fold(event("answered", status=200), failed)
    assert (fold(failed).link, after.link) == FAILURES[status]
    assert after.answered_at == NOON


def test_what_is_refused_is_told_since_its_first_time_until_it_is_granted() -> None:
    later = NOON + timedelta(seconds=9)
    connection = fold(event("answered", status=200))
    for what, why, since in (("the log", "404", NOON), ("the log", "403", later), ("metrics", "400", later)):
        connection = connection.with_stale_resource(StaleResource(what, why, since))
    log, metrics = StaleResource("the log", "403", NOON), StaleResource("metrics", "400", later)
    assert connection.stale_resources == (log, metrics)
    assert connection.with_fresh_resource("the log").stale_resources == (metrics,)
    for outcome in (
        event("answered", status=200),
        event("failed", status=503),
        event("waiting", delay_s=1.0),
    ):
        connection = connection.after(outcome)
        assert connection.stale_resources == (log, metrics)


def failing(path: str, *, after_s: float, status: int | None = 503, job: str = JOB) -> RequestEvent:
    return event("waiting", after_s=after_s, path=f"{job}/{path}", status=status, delay_s=1.0, reason="503")


def answered(path: str, *, after_s: float) -> RequestEvent:
    return event("answered", after_s=after_s, path=f"{JOB}/{path}", status=200)


METRICS_FAIL = failing("metrics", after_s=1), failing("metrics", after_s=9)
REFUSED = event("waiting", after_s=1.3, attempt=2, delay_s=1.0, reason="connection refused")
EVENTS: dict[str, tuple[tuple[RequestEvent, ...], ConnectionState, list[str]]] = {
    "one failure that passes": ((failing("metrics", after_s=1),), LIVE, []),
    "no answer": ((failing("metrics", after_s=1, status=None),), LIVE, []),
    "a second failure to get through": ((failing("logs", after_s=1, status=None), REFUSED), RETRYING, []),
    "two routes without an answer between": (
        (failing("logs", after_s=1), failing("metrics", after_s=2)), RETRYING, []),
    "the logs of two jobs": (
        (failing("logs", after_s=1), failing("logs", after_s=2, job=OTHER_JOB)), LIVE, []),
    "the log of one more job, long after the first": ((failing("logs", after_s=1),
        answered("metrics", after_s=8), failing("logs", after_s=9, job=OTHER_JOB),
        failing("logs", after_s=13, job=OTHER_JOB)), LIVE, ["the log"]),
    "one route while nothing else is asked": (
        (failing("logs", after_s=1), failing("logs", after_s=1 + ROUTE_GRACE_S)), RETRYING, []),
    "one route, and no other for long": ((failing("metrics", after_s=0.5), answered("logs", after_s=0.9),
        *(failing("metrics", after_s=after_s) for after_s in (1, 20, 1 + FORGOTTEN_S))), RETRYING, []),
    "until it is answered": ((*METRICS_FAIL, answered("metrics", after_s=10)), LIVE, []),
    "or asked for no more": ((*METRICS_FAIL, answered("logs", after_s=10 + FORGOTTEN_S)), LIVE, []),
}  # fmt: skip


@pytest.mark.parametrize("name", EVENTS)
def test_what_events_after_an_answer_tell(name: str) -> None:
    events, link, stale = EVENTS[name]
    connection = fold(answered("logs", after_s=0), *events)
    assert connection.link is link
    assert [one.name for one in connection.stale if link is LIVE] == stale
    assert link is LIVE or connection.failing_since == NOON + timedelta(seconds=1)


def test_a_route_that_fails_alone_is_named_and_the_server_is_there_all_the_while() -> None:
    connection = fold(answered("logs", after_s=0))
    for second in range(1, 30, 2):
        for one in (failing("checkpoints", after_s=second), answered("logs", after_s=second + 1)):
            connection = connection.after(one)
            assert (connection.link, bool(connection.stale)) == (LIVE, second > ROUTE_GRACE_S)
    assert connection.stale == (StaleResource("the checkpoints", "503", NOON + timedelta(seconds=1)),)
    assert connection.after(answered("checkpoints", after_s=31)).stale == ()


def test_a_screen_hears_only_of_what_it_shows() -> None:
    refusal = StaleResource("the log", "404", NOON)
    connection = fold(answered("logs", after_s=0), *METRICS_FAIL).with_stale_resource(refusal)
    assert connection.limited_to(frozenset({"the log"})).stale == (refusal,)
    assert [one.name for one in connection.limited_to(frozenset({"the metrics"})).stale] == ["the metrics"]
    assert (
        connection.limited_to(frozenset()).stale == connection.without_resource("the metrics").stale[1:] == ()
    )
    assert connection.limited_to(frozenset({"the log", "the metrics"})) is connection


def test_job_screen_shows_nothing_of_another_jobs_log() -> None:
    failures = (failing("logs", after_s=after_s, job=OTHER_JOB) for after_s in (1, 9))
    connection = fold(
        answered("metrics", after_s=0), next(failures), answered("metrics", after_s=8), *failures
    )
    shown = frozenset({"the log"})
    assert connection.limited_to(shown, "j").stale == ()
    assert [one.name for one in connection.limited_to(shown, "other").stale] == ["the log"]


def test_what_is_lost_stays_lost_through_further_rounds_of_tries_until_an_answer() -> None:
    connection = fold(event("waiting", delay_s=1.0))
    for kind, after_s in (("failed", 9), ("waiting", 12), ("failed", 15), ("waiting", 20), ("failed", 23)):
        connection = connection.after(event(kind, after_s=after_s, delay_s=1.0))
        assert connection.link is LOST
    assert connection.after(event("answered", after_s=30, status=200)).link is LIVE


@pytest.mark.parametrize(("days", "is_off"), [(400, True), (-1, True), (0.003, False)])
def test_clock_that_spoils_what_is_shown_is_noted(days: float, is_off: bool) -> None:
    ahead = timedelta(days=days)
    first = event("answered", status=200, server_time=NOON - ahead)
    failed = event("waiting", after_s=1, reason="connection refused")
    for connection in (fold(first), fold(first, failed)):
        assert connection.clock_ahead_s == (ahead.total_seconds() if is_off else 0)
    assert fold(first, event("answered", status=200, server_time=NOON)).clock_ahead_s == 0
