"""When a request is sent again, and after how long."""

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given, strategies as st

from api_client.errors import AnswerTooLarge, BadRequest, InvalidAnswer, ServerFault, Unreachable
from api_client.http.retry import ENDLESS, LASTING, RetryPolicy, parse_retry_after

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@given(attempt=st.integers(1, 10_000), seed=st.integers())
def test_the_wait_grows_to_its_cap_and_no_further(attempt: int, seed: int) -> None:
    policy = RetryPolicy(max_attempts=100_000)
    wait_s = policy.delay_s(Unreachable("x"), attempt=attempt, random=Random(seed))
    assert wait_s is not None
    assert 0 <= wait_s <= min(30.0, 0.5 * 2.0 ** min(attempt - 1, 20))


def test_retry_after_goes_first_up_to_a_cap() -> None:
    endless_s = parse_retry_after("9" * 400, now=NOW)
    for given_s, waited_s in ((7.0, 7.0), (86_400.0, 60.0), (0.0, 0.0), (endless_s, 60.0)):
        error = ServerFault("x", status=503, retry_after_s=given_s)
        assert RetryPolicy().delay_s(error, attempt=1, random=Random(1)) == waited_s


def test_what_the_server_refuses_is_final_except_for_what_a_screen_shows() -> None:
    refusal = BadRequest("x", status=400)
    assert RetryPolicy().delay_s(refusal, attempt=1) is None
    assert LASTING.delay_s(refusal, attempt=1) == 10.0


def test_answer_that_is_too_large_is_not_requested_again() -> None:
    assert ENDLESS.delay_s(InvalidAnswer("html"), attempt=1) is not None
    assert ENDLESS.delay_s(AnswerTooLarge("over 9 bytes"), attempt=1) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5.0),
        (" 1.5 ", 1.5),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        *((odd, None) for odd in ("", "soon", "-5", "nan", "٣", "Thu, 99 Jan 2026 99:00:00 GMT")),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str | None, seconds: float | None) -> None:
    assert parse_retry_after(text, now=NOW) == seconds
    assert parse_retry_after(text, date="1 Jan 2026 12:00 GMT", now=NOW.replace(year=2025)) == seconds


@given(st.text(max_size=60))
def test_no_header_breaks_it(text: str) -> None:
    assert (parse_retry_after(text, date=text, now=NOW) or 0.0) >= 0
