"""Smoothing, logarithms, marks and the cursor: what is drawn of the samples, and what is read."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from widget_text import draw

from tui.analysis.series import Series, Shaper, logarithmic, smoothed
from tui.text.units import percent
from tui.widgets.charts.picture import picture
from tui.widgets.charts.spec import ChartSpec, Mark, read, value_at
from tui.widgets.charts.ticks import exact_duration, log_ticks, time_ticks

END = 1_700_000_000.0
SPAN_S = 1800.0


def line(name: str, values: list[float]) -> Series:
    step = SPAN_S / (len(values) - 1)
    return Series(name, tuple(END - SPAN_S + index * step for index in range(len(values))), tuple(values))


def spec(**options: object) -> ChartSpec:
    return ChartSpec("use", END - SPAN_S, END, unit=percent, **options)  # type: ignore[arg-type]


def text(series: list[Series], chart: ChartSpec, width: int, height: int) -> list[str]:
    return ["".join(piece for piece, _ in row) for row in draw(series, chart, width, height)]


def roles(series: list[Series], chart: ChartSpec) -> set[object]:
    return {role for row in draw(series, chart, 60, 12) for _, role in row}


def test_the_mean_is_not_pulled_to_zero_and_gaps_stay_gaps() -> None:
    assert smoothed(line("s", [5.0] * 10), 0.9).values == pytest.approx([5.0] * 10)
    mean = smoothed(Series("s", (1.0, 2.0, 3.0, 4.0), (1.0, math.nan, math.inf, 2.0)), 0.5).values
    assert mean[0] == 1.0 and math.isnan(mean[1]) and math.isinf(mean[2])
    assert mean[3] == pytest.approx((1.0 * 0.5 + 2.0) / 1.5)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_the_mean_stays_between_the_extremes(values: list[float], weight: float) -> None:
    shaped = smoothed(Series("s", tuple(map(float, range(len(values)))), tuple(values)), weight).values
    assert min(values) - 1e-6 <= min(shaped) and max(shaped) <= max(values) + 1e-6


def test_shaped_series_are_remembered_while_they_are_shown() -> None:
    shaper, series = Shaper(), line("s", [1.0, 2.0, 3.0])
    first = shaper.shape(series, smoothing=0.5)
    assert shaper.shape(series, smoothing=0.5) is first
    assert shaper.shape(series, smoothing=0.9) is not first
    assert shaper.shape(series) is series


def test_logarithms_leave_out_what_has_none() -> None:
    values = logarithmic(line("s", [100.0, 0.0, -1.0, 10.0])).values
    assert values[0] == 2.0 and math.isnan(values[1]) and math.isnan(values[2]) and values[3] == 1.0


@given(st.floats(-8, 8), st.floats(0.0, 12), st.integers(2, 9))
def test_logarithmic_ticks_enclose_the_data(low: float, span: float, most: int) -> None:
    ticks = log_ticks(low, low + span, most)
    assert ticks[0] <= low + 1e-6 and ticks[-1] >= low + span - 1e-6
    assert list(ticks) == sorted(set(ticks)) and len(ticks) <= most + 1


def test_a_logarithmic_axis_is_labelled_with_values() -> None:
    falling = line("loss", [10.0 ** (2 - index / 15) for index in range(61)])
    rows = text([falling], ChartSpec("loss", END - SPAN_S, END, log=True), 60, 14)
    labels = [row.split("┤")[0].strip() for row in rows if "┤" in row]
    assert labels[0] == "100" and labels[-1] in {"0.010", "0.0100"}
    dots = [index for index, row in enumerate(rows[1:-2]) if any("\u2800" < char < "\u2900" for char in row)]
    assert dots == list(range(11))  # an exponential fall is a straight line over all rows


def test_smoothing_is_drawn_over_the_faint_samples() -> None:
    noisy = line("s", [0.5 + 0.4 * (-1) ** index for index in range(60)])
    assert {0, "faint"} <= roles([noisy], spec(smoothing=0.9))
    assert "faint" not in roles([noisy], spec())


def test_marks_lie_on_the_axis_and_the_worst_is_seen() -> None:
    marks = (
        Mark(END - 900, "◆", "good", "checkpoint-1"),
        Mark(END - 901, "✗", "bad", "CUDA error"),
        Mark(END - 902, "↻", "caution"),
        Mark(END - 9999, "◆", "good", "long ago"),
    )
    for height in (12, 6):
        rows = text([line("s", [0.5] * 9)], spec(marks=marks), 60, height)
        assert sum(row.count("✗") for row in rows) == 1
        assert not any(sign in "".join(rows) for sign in "◆↻")
        assert all(cell_len(row) == 60 for row in rows)


def test_the_cursor_reads_every_line_and_names_the_mark_below_it() -> None:
    rising, falling = line("up", [0.0, 0.5, 1.0]), line("down", [1.0, 0.5, 0.0])
    chart = spec(cursor=END - SPAN_S + 20, x_axis="elapsed", origin=END - SPAN_S - 60, y_min=0.0, y_max=1.0)
    rows = text([rising, falling], chart, 60, 5)
    assert "up 0 %" in rows[0] and "down 100 %" in rows[0]
    assert rows[-1].split()[0] == "1m20s"
    marked = spec(cursor=END - 900, marks=(Mark(END - 900, "◆", "good", "checkpoint-7"),))
    rows = text([line("s", [0.5] * 9)], marked, 60, 12)
    assert rows[0].rstrip().endswith("◆ checkpoint-7")
    assert sum("│" in row[6:] for row in rows[1:-2]) >= 8


def test_values_are_read_at_the_nearest_sample_and_not_in_gaps() -> None:
    series = Series("s", (0.0, 10.0, 20.0, 30.0), (1.0, 2.0, math.nan, 4.0))
    assert [value_at(series, x) for x in (0, 4, 6, 14, 16, 29, 39, 45)] == [1, 1, 2, 2, None, 4, 4, None]
    assert value_at(Series("s"), 1.0) is None
    said = read(series, 0, 25, None)
    assert (said.value, said.low, said.high) == (2.0, 1.0, 2.0)


def test_a_large_chart_has_a_table_of_its_lines() -> None:
    series = [line(f"node-{index}", [0.1 * index, 0.5, 0.9]) for index in range(4)]
    rows = text(series, spec(hidden=frozenset({"node-1"}), selected="node-2"), 90, 12)
    assert rows[0].strip() == "use"
    assert rows[1].split()[-3:] == ["last", "min", "max"]
    assert rows[2].endswith("━ node-0 90 %  0 % 90 %")
    assert rows[3].endswith("· node-1 90 % 10 % 90 %")
    assert rows[4].endswith("▶ node-2 90 % 20 % 90 %")
    many = [line(f"node-{index}", [0.5, 0.5, 0.5]) for index in range(64)]
    rows = text(many, spec(selected="node-40"), 90, 12)
    assert any("▶ 40" in row for row in rows) and any("+5" in row and "more" in row for row in rows)


def test_in_a_crowd_only_what_matters_has_a_colour() -> None:
    many = [line(f"node-{index}", [index / 64, index / 64]) for index in range(64)]
    drawn = {role for row in draw(many, spec(emphasis=frozenset({"node-17"})), 60, 5) for _, role in row}
    assert {role for role in drawn if isinstance(role, int)} == {17}
    assert "faint" in drawn


def test_a_line_that_is_off_is_not_drawn_and_does_not_stretch_the_axis() -> None:
    low, high = line("low", [0.1, 0.2]), line("high", [0.9, 1.0])
    chart = spec(hidden=frozenset({"high"}))
    assert 1 not in roles([low, high], chart)
    assert "20 %┤" in "".join(text([low, high], chart, 60, 12))
    nothing = text([low, high], spec(hidden=frozenset({"low", "high"})), 60, 12)
    assert any("all series hidden" in row for row in nothing)


def test_the_raster_s_place_is_told() -> None:
    drawn = picture([line("s", [0.5] * 9)], spec(), 60, 12)
    assert drawn.left + drawn.cells == 60
    assert picture([line("s", [0.5] * 9)], spec(), 10, 2).cells == 0


def test_elapsed_and_step_axes_have_round_ticks() -> None:
    elapsed = time_ticks(END, END + 7200, 60, axis="elapsed", origin=END - 600)
    assert [label for _, label in elapsed][:2] == ["20m", "40m"]
    steps = time_ticks(120.0, 980.0, 60, axis="step")
    assert [label for _, label in steps] == ["200", "400", "600", "800"]
    assert (
        exact_duration(9065) == "2h31m05s" and exact_duration(249) == "4m09s" and exact_duration(12) == "12s"
    )
