"""Axes have round ticks that fit."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.widgets.charts.ticks import default_label, duration_label, time_ticks, value_ticks

HOUR_S = 3600.0


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (0.745, 2.37, 4, (0.6, 1.2, 1.8, 2.4)),
        (0.6, 2.6, 3, (0.6, 1.6, 2.6)),
        (1, 8, 3, (1.0, 5.0, 9.0)),
        (0, 97, 6, (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)),
        (1.9e-5, 4.1e-5, 4, (1.75e-05, 3e-05, 4.25e-05)),
        (-0.027, 0.028, 2, (-0.03, 0.03)),
        (-5, 3, 3, (-5.0, 0.0, 3.0)),
    ],
)
def test_value_ticks_are_round_and_even(low: float, high: float, most: int, ticks: tuple[float, ...]) -> None:
    assert value_ticks(low, high, most) == pytest.approx(ticks)


def test_fixed_ends_are_ticks_and_kept() -> None:
    assert value_ticks(0.6, 0.97, 3, fixed_low=0.0, fixed_high=1.0) == (0.0, 0.5, 1.0)


def test_bytes_have_binary_ticks() -> None:
    gib = 2**30
    assert value_ticks(0, 61 * gib, 3, fixed_low=0.0, base=2) == (0.0, 32.0 * gib, 64.0 * gib)


@given(
    st.floats(-1e12, 1e12),
    st.floats(0, 1e12),
    st.integers(2, 9),
    st.sampled_from([2, 10]),
)
def test_any_data_lies_between_ascending_ticks(low: float, span: float, most: int, base: int) -> None:
    high = low + span
    ticks = value_ticks(low, high, most, base=base)  # type: ignore[arg-type]
    assert len(ticks) >= 2
    assert list(ticks) == sorted(set(ticks))
    slack = (ticks[-1] - ticks[0]) * 1e-6
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack


def test_labels_tell_ticks_apart() -> None:
    assert [default_label(0.25)(value) for value in (0.0, 0.25, 0.5)] == ["0.00", "0.25", "0.50"]
    assert default_label(1.0)(3.0) == "3"
    assert default_label(0.125)(0.625) == "0.625"
    assert default_label(1e-5)(2e-5) == "2e-05"


def test_relative_times_count_back_from_the_end() -> None:
    labels = [label for _, label in time_ticks(0, 1800, 100)]
    assert labels == ["-30m", "-25m", "-20m", "-15m", "-10m", "-5m", "now"]
    assert [label for _, label in time_ticks(0, 1800, 30)] == ["-30m", "-20m", "-10m", "now"]
    assert [label for _, label in time_ticks(0, 6 * HOUR_S, 20, end_label="end")][-1] == "end"


def test_clock_times_are_round_in_the_readers_zone() -> None:
    india = timezone(timedelta(hours=5, minutes=30))
    begin = 1_700_000_000.0  # 22:13:20 UTC
    assert [label for _, label in time_ticks(begin, begin + HOUR_S, 50, axis="clock", timezone=UTC)] == [
        "22:15",
        "22:30",
        "22:45",
        "23:00",
    ]
    ticks = time_ticks(begin, begin + 12 * HOUR_S, 50, axis="clock", timezone=india)
    assert [label for _, label in ticks] == ["06:00", "09:00", "12:00", "15:00"]


def test_midnight_shows_the_day() -> None:
    begin = 1_700_000_000.0
    labels = [label for _, label in time_ticks(begin, begin + 6 * HOUR_S, 40, axis="clock", timezone=UTC)]
    assert labels == ["15 Nov", "02:00", "04:00"]


def test_durations_in_their_largest_unit() -> None:
    assert [duration_label(seconds) for seconds in (30, 90, 300, 5400, 7200, 172800)] == [
        "30s",
        "1m30s",
        "5m",
        "1h30m",
        "2h",
        "2d",
    ]
