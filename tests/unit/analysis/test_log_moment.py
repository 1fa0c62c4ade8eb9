import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from tui.text.times import LogTimes, local_stamp, parse_time


def at(hour: int, minute: int = 30, *, day: int = 21) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


TIMES = LogTimes(oldest=at(6), newest=at(12), current=at(11), timezone=UTC)


MOMENTS = {
    "12:00": at(12, 0), "13:00": at(13, 0, day=20),  # the last such time before the end
    "2026-11-20": at(0, 0, day=20), "2026-11-20 3:04": at(3, 4, day=20), "11-20 3:04": at(3, 4, day=20),
    "2026-11-20T03:04:00Z": at(3, 4, day=20), "2026-11-20T03:04:00+01:00": at(2, 4, day=20),
    "-15m": at(11, 15), "+1h": at(12), "1h20m": at(7, 50), "15m ago": at(12, 15), " now ": at(12), "start": at(6),
}  # fmt: skip


def test_a_moment_as_people_type_it_in_their_zone():
    assert {typed: parse_time(typed, TIMES) for typed in MOMENTS} == MOMENTS
    east = LogTimes(TIMES.oldest, TIMES.newest, TIMES.current, timezone(timedelta(hours=2)))
    assert parse_time("14:00", east) == parse_time("12:00Z", east) == at(12, 0)


NEW_YEARS_EVE = datetime(2026, 12, 31, 23, 50, tzinfo=UTC)
ENDS_AND_DATES = {
    ("2027-01-01T00:20Z", "12-31 23:50"): NEW_YEARS_EVE,
    ("2027-01-01T00:20Z", "12-31 23:50Z"): NEW_YEARS_EVE,
    ("2027-01-01T00:20Z", "12-31"): datetime(2026, 12, 31, tzinfo=UTC),
    ("2027-01-01T00:20Z", "01-01"): datetime(2027, 1, 1, tzinfo=UTC),
    ("2027-01-01T00:20Z", "01-01 00:21"): datetime(2026, 1, 1, 0, 21, tzinfo=UTC),
    ("2026-12-31T23:50Z", "12-31 23:50"): NEW_YEARS_EVE,
    ("2027-03-01T00:00Z", "02-29"): datetime(2024, 2, 29, tzinfo=UTC),
    ("2104-02-28T00:00Z", "2-29 12:00"): datetime(2096, 2, 29, 12, tzinfo=UTC),
}


@pytest.mark.parametrize(("newest", "typed"), ENDS_AND_DATES)
def test_date_without_year_is_the_last_one_before_the_end(newest: str, typed: str) -> None:
    end = datetime.fromisoformat(newest)
    times = LogTimes(oldest=end, newest=end, current=end, timezone=UTC)
    assert parse_time(typed, times) == ENDS_AND_DATES[newest, typed]


def test_date_without_year_uses_the_year_of_its_own_zone() -> None:
    end = datetime(2027, 1, 1, 0, 20, tzinfo=UTC)
    times = LogTimes(oldest=end, newest=end, current=end, timezone=timezone(timedelta(hours=-5)))
    assert parse_time("01-01 00:10Z", times) == datetime(2027, 1, 1, 0, 10, tzinfo=UTC)
    assert parse_time("12-31 19:10", times) == datetime(2027, 1, 1, 0, 10, tzinfo=UTC)


@given(
    st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    st.dates().map("{:%m-%d}".format),
    st.just("") | st.times().map(" {:%H:%M:%S}".format),
    st.sampled_from(["", "Z"]),
    st.integers(-12, 14),
)
def test_date_without_year_is_never_in_the_future(
    end: datetime, day: str, clock: str, suffix: str, offset: int
) -> None:
    times = LogTimes(oldest=end, newest=end, current=end, timezone=timezone(timedelta(hours=offset)))
    moment = parse_time(f"{day}{clock}{clock and suffix}", times)
    years = 8 if day == "02-29" else 1
    assert timedelta(0) <= end - moment <= timedelta(days=366 * years)


@pytest.mark.parametrize(
    "typed", ["", "02-30", "25:00", "2026-13-01", "foo", "-", "+9", "-999999w", "2026-11-20 x"]
)
def test_what_is_no_time_says_so(typed):
    with pytest.raises(ValueError, match=r"\w"):
        parse_time(typed, TIMES)


@given(st.text("0123456789:-+ hmsdwZTago.", max_size=20))
def test_any_text_is_a_moment_or_a_problem(typed):
    try:
        assert parse_time(typed, TIMES).tzinfo is not None
    except ValueError as error:
        assert str(error)


STAMPS = {
    "2026-03-01T12:30:59.123456789": "2026-03-01 07:30:59",
    "2026-07-01T12:30:59+02:00": "2026-07-01 06:30:59",
    "9999-12-31T23:59:59Z": "9999-12-31 18:59:59",
    "2026-13-01T12:30:59Z": "2026-13-01T12:30:59Z",
    "": "",
}


def test_a_stamp_is_shown_in_local_time_or_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert {stamp: local_stamp(stamp) for stamp in STAMPS} == STAMPS
    finally:
        monkeypatch.undo()
        time.tzset()
