"""When a request is sent again, and after how long."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_client.errors import BadRequest, InvalidAnswer, RateLimited, RequestError, ServerFault, Unreachable
from api_client.http.retry import RetryPolicy, may_repeat, parse_retry_after

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def delay(
    error: RequestError, *, attempt: int = 1, idempotent: bool = True, arrived: bool = True
) -> float | None:
    return RetryPolicy().delay_s(
        error, attempt=attempt, idempotent=idempotent, arrived=arrived, random=Random(1)
    )


@pytest.mark.parametrize(
    ("error", "idempotent", "arrived", "expected"),
    [
        (Unreachable("x"), True, True, True),
        (Unreachable("x"), False, False, True),
        (Unreachable("x"), False, True, False),
        (ServerFault("x", status=503), True, True, True),
        (ServerFault("x", status=503), False, True, False),
        (RateLimited("x", status=429), False, True, True),
        (BadRequest("x", status=400), True, True, False),
        (InvalidAnswer("x"), True, True, False),
    ],
)
def test_only_what_is_safe_and_can_help_is_repeated(
    error: RequestError, idempotent: bool, arrived: bool, expected: bool
) -> None:
    assert may_repeat(error, idempotent=idempotent, arrived=arrived) is expected


def test_gives_up_after_the_last_attempt() -> None:
    assert delay(Unreachable("x"), attempt=4) is not None
    assert delay(Unreachable("x"), attempt=5) is None


@given(attempt=st.integers(1, 10_000), seed=st.integers())
def test_the_wait_grows_to_its_cap_and_no_further(attempt: int, seed: int) -> None:
    policy = RetryPolicy(max_attempts=100_000)
    wait_s = policy.delay_s(
        Unreachable("x"), attempt=attempt, idempotent=True, arrived=True, random=Random(seed)
    )
    assert wait_s is not None
    assert 0 <= wait_s <= min(30.0, 0.5 * 2.0 ** min(attempt - 1, 20))


def test_the_wait_is_spread_over_the_whole_range() -> None:
    policy, random = RetryPolicy(max_attempts=99), Random(7)
    waits = [
        policy.delay_s(Unreachable("x"), attempt=50, idempotent=True, arrived=True, random=random) or 0.0
        for _ in range(200)
    ]
    assert min(waits) < 3
    assert max(waits) > 27


def test_retry_after_goes_first_up_to_a_cap() -> None:
    assert delay(RateLimited("x", status=429, retry_after_s=7.0)) == 7.0
    assert delay(ServerFault("x", status=503, retry_after_s=86_400.0)) == 60.0
    assert delay(ServerFault("x", status=503, retry_after_s=0.0)) == 0.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5.0),
        (" 1.5 ", 1.5),
        ("0", 0.0),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("٣", None),
        ("Thu, 99 Jan 2026 99:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str | None, seconds: float | None) -> None:
    assert parse_retry_after(text, now=NOW) == seconds


def test_an_endless_number_of_seconds_is_still_capped() -> None:
    wait_s = parse_retry_after("9" * 400, now=NOW)
    assert wait_s is not None
    assert delay(RateLimited("x", status=429, retry_after_s=wait_s)) == 60.0


@given(st.text(max_size=60))
def test_no_header_breaks_it(text: str) -> None:
    wait_s = parse_retry_after(text, now=NOW)
    assert wait_s is None or wait_s >= 0
