"""Axes have round ticks that fit."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st
from widget_text import draw

from tui.analysis.series import Series
from tui.text.units import bytes_iec, cores, number, percent
from tui.widgets.charts.spec import ChartSpec
from tui.widgets.charts.ticks import duration_label, time_ticks, value_ticks

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


@given(st.floats(-1e12, 1e12), st.floats(0, 1e12), st.integers(2, 9), st.sampled_from([2, 10]))
def test_any_data_lies_between_ascending_ticks(low: float, span: float, most: int, base: int) -> None:
    high = low + span
    ticks = value_ticks(low, high, most, base=base)  # type: ignore[arg-type]
    assert len(ticks) >= 2
    assert list(ticks) == sorted(set(ticks))
    slack = (ticks[-1] - ticks[0]) * 1e-6
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack


BEGIN_S = 1_700_000_000.0  # 22:13:20 UTC
UTC_CLOCK = {"axis": "clock", "timezone": UTC}
INDIAN_CLOCK = {"axis": "clock", "timezone": timezone(timedelta(hours=5, minutes=30))}


@pytest.mark.parametrize(
    ("start", "hours", "width", "how", "labels"),
    [
        (0, 0.5, 100, {}, "-30m -25m -20m -15m -10m -5m now"),
        (0, 0.5, 30, {}, "-30m -20m -10m now"),
        (0, 6, 20, {"end_label": "end"}, "-6h -3h end"),
        (BEGIN_S, 1, 50, UTC_CLOCK, "22:15 22:30 22:45 23:00"),
        (BEGIN_S, 12, 50, INDIAN_CLOCK, "06:00 09:00 12:00 15:00"),
        (BEGIN_S, 6, 40, UTC_CLOCK, "15 Nov 02:00 04:00"),  # midnight shows the day
        (BEGIN_S, 2, 60, {"axis": "elapsed", "origin": BEGIN_S - 600}, "20m 40m 1h 1h20m 1h40m 2h"),
        (120, 0.25, 60, {"axis": "step"}, "200 400 600 800 1,000"),
    ],
)
def test_times_have_round_ticks(start: float, hours: float, width: int, how: Any, labels: str) -> None:
    assert " ".join(label for _, label in time_ticks(start, start + hours * HOUR_S, width, **how)) == labels


def test_durations_leave_out_what_is_zero() -> None:
    labels = [duration_label(seconds) for seconds in (30, 90, 300, 5400, 7200, 172800, 9065)]
    assert labels == ["30s", "1m30s", "5m", "1h30m", "2h", "2d", "2h31m5s"]


def is_distinct(labels: list[str]) -> bool:
    return len(labels) == len(set(labels))


CLOCKS = [UTC, timezone(timedelta(hours=5, minutes=30)), ZoneInfo("America/New_York")]


@given(
    st.floats(0, 4e9),
    st.floats(-3, 9.5).map(lambda power: 10.0**power),
    st.integers(1, 400),
    st.sampled_from(["relative", "clock", "elapsed", "step"]),
    st.sampled_from(CLOCKS),
    st.floats(-1e6, 1e6),
)
def test_no_two_ticks_of_a_time_axis_have_one_label(start, span, cells, axis, clock, before) -> None:
    ticks = time_ticks(start, start + span, cells, axis=axis, timezone=clock, origin=start - before)
    assert is_distinct([label for _, label in ticks])
    assert [at for at, _ in ticks] == sorted({at for at, _ in ticks})


@given(
    st.floats(-1e15, 1e15),
    st.floats(-12, 15).map(lambda power: 10.0**power),
    st.integers(4, 40),
    st.sampled_from([None, number, percent, bytes_iec, cores]),
    st.booleans(),
)
def test_no_two_ticks_of_a_value_axis_have_one_label(low, span, height, unit, log) -> None:
    values = (low, low + span)
    chart = ChartSpec(
        "values", 0.0, 10.0, unit=unit, is_logarithmic=log, tick_base=2 if unit is bytes_iec else 10
    )
    lines = draw([Series("one", (1.0, 9.0), values)], chart, 60, height)
    labels = [text.rstrip("┤").strip() for text, role in (line[0] for line in lines[1:]) if "┤" in text]
    assert is_distinct(labels)


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.91312, 0.91318, ["0.91318", "0.91315", "0.91312"]),
        (1_234_500.0, 1_234_600.0, ["1.2346e+06", "1.23455e+06", "1.2345e+06"]),
    ],
)
def test_values_that_hardly_differ_have_labels_that_do(low, high, labels) -> None:
    chart = ChartSpec("loss", 0.0, 10.0, unit=number)
    lines = draw([Series("loss", (1.0, 9.0), (low, high))], chart, 60, 12)
    found = [text.rstrip("┤").strip() for text, role in (line[0] for line in lines[1:]) if "┤" in text]
    assert found == labels


@pytest.mark.parametrize(
    ("start", "hours", "width", "how", "labels"),
    [
        (
            0,
            0.05,
            60,
            {"axis": "elapsed", "origin": -12300},
            "3h25m 3h25m30s 3h26m 3h26m30s 3h27m 3h27m30s 3h28m",
        ),
        (BEGIN_S, 48, 50, UTC_CLOCK, "15 Nov Wed 12:00 16 Nov Thu 12:00"),
        (BEGIN_S, 24 * 365 * 2.5, 20, UTC_CLOCK, "13 Nov 2024 13 Nov 2025"),
        (4, 0.003, 50, {"axis": "step"}, "4 6 8 10 12 14"),
    ],
)
def test_labels_tell_close_and_distant_ticks_apart(start, hours, width, how, labels) -> None:
    assert " ".join(label for _, label in time_ticks(start, start + hours * HOUR_S, width, **how)) == labels
