"""The braille raster keeps every extreme and every gap, also of a restless line, drawn as band and level."""

from __future__ import annotations

import math

from hypothesis import given, strategies as st

from tui.analysis.series import Series
from tui.widgets.charts import braille
from tui.widgets.charts.braille import Grid
from tui.widgets.charts.raster import dotted, smoothed_spans

COLUMNS = 24
DOT_ROWS = 40
START, END = 1000.0, 1024.0

samples = st.lists(
    st.tuples(st.floats(START - 5, END + 5), st.one_of(st.floats(-100, 100), st.just(math.nan))),
    max_size=80,
    unique_by=lambda sample: sample[0],
).map(sorted)


def make(points: list[tuple[float, float]]) -> Series:
    return Series("s", tuple(time for time, _ in points), tuple(value for _, value in points))


def rows_of(bits: int) -> list[int]:
    return [row for row in range(bits.bit_length()) if bits >> row & 1]


@given(samples)
def test_lowest_and_highest_of_every_column_are_drawn(points: list[tuple[float, float]]) -> None:
    grid = Grid.over(START, END, COLUMNS)
    bits = braille.dot_columns(braille.reduce_to_spans(make(points), grid), COLUMNS, DOT_ROWS, -100, 100)
    wanted: dict[int, list[float]] = {}
    for time, value in points:
        column = grid.column(time)
        if 0 <= column < COLUMNS and not math.isnan(value):
            wanted.setdefault(column, []).append(value)
    for column, values in wanted.items():
        drawn = rows_of(bits[column])
        low = int((min(values) + 100) / 200 * (DOT_ROWS - 1) + 0.5)
        high = int((max(values) + 100) / 200 * (DOT_ROWS - 1) + 0.5)
        assert drawn[0] <= low
        assert drawn[-1] >= high
        assert {low, high} <= set(drawn)


@given(samples)
def test_nothing_is_drawn_outside_the_raster(points: list[tuple[float, float]]) -> None:
    grid = Grid.over(START, END, COLUMNS)
    bits = braille.dot_columns(braille.reduce_to_spans(make(points), grid), COLUMNS, DOT_ROWS, -10, 10)
    assert all(0 <= column < COLUMNS and 0 < mask < 1 << DOT_ROWS for column, mask in bits.items())
    for place, character in braille.cells(bits, COLUMNS // 2, DOT_ROWS // 4).items():
        assert 0 <= place < DOT_ROWS // 4 * COLUMNS // 2
        assert 0x2800 < ord(character) < 0x2900


def test_a_missing_sample_is_bridged_but_a_gap_is_not() -> None:
    grid = Grid.over(0, 10, 10)
    far = Series("s", (1.5, 7.5), (0.2, 0.8))
    spans = braille.reduce_to_spans(far, grid)
    first = grid.column(1.5)
    assert set(braille.dot_columns(spans, 10, 8, 0, 1)) == set(range(first, first + 7))
    gap = Series("s", (1.5, 4.5, 7.5), (0.2, math.nan, 0.8))
    spots = set(braille.dot_columns(braille.reduce_to_spans(gap, grid), 10, 8, 0, 1))
    assert spots == {first, first + 1, first + 6, first + 7}, "two spots, and nothing between them"


def test_samples_keep_their_columns_while_the_window_slides() -> None:
    series = Series(
        "s", tuple(float(time) for time in range(100)), tuple(math.sin(time) for time in range(100))
    )
    first = Grid.over(10.0, 60.0, 20)
    second = Grid.over(11.3, 61.3, 20)
    shift = second.first - first.first
    before = {span[0]: span[1:3] for span in braille.reduce_to_spans(series, first) if 1 <= span[0] < 20}
    after = {span[0]: span[1:3] for span in braille.reduce_to_spans(series, second) if 1 <= span[0] < 20}
    shared = [column for column in before if 1 <= column - shift < 19 and column < 19]
    assert shared
    assert all(before[column] == after[column - shift] for column in shared)


@given(st.dictionaries(st.integers(0, 50), st.integers(1, 2**40), min_size=1))
def test_a_dotted_band_keeps_the_ends_of_every_column(bits: dict[int, int]) -> None:
    found = dotted(bits, Grid.over(0, 100, 60))
    assert found.keys() == bits.keys()
    for column, dots in found.items():
        assert dots & ~bits[column] == 0
        assert dots.bit_length() == bits[column].bit_length()
        assert dots & -dots == bits[column] & -bits[column]


def test_level_of_a_noisy_line_ignores_spikes_stops_at_gaps_and_ends_with_the_newest() -> None:
    values = [n % 2 + 0.0 for n in range(100)]
    values[50] = math.nan
    values[20], values[71] = math.inf, 900.0
    series = Series("s", tuple(n / 10 for n in range(100)), tuple(values))
    spans = smoothed_spans(braille.reduce_to_spans(series, Grid.over(0, 10, 20)), 0.0, 1000.0)
    _, *levels, newest = [low for _, low, high, _, _, _ in spans if low == high]
    assert len(levels) == len(spans) - 2 and all(0.3 <= level <= 0.7 for level in levels) and newest == 1.0
    assert [joined for *_, joined in spans].count(False) == 2


def test_level_of_samples_far_apart_and_of_a_rise_at_the_end_is_what_they_are() -> None:
    rare = [(column, column % 3, column % 3, 0.0, column % 3, True) for column in range(0, 60, 5)]
    assert [low for _, low, *_ in smoothed_spans(rare, 0.0, 9.0)] == [low for _, low, *_ in rare]
    heights = [max(0, column - 18) for column in range(23)]
    rising = [(column, high, high, 0.0, high, True) for column, high in enumerate(heights)]
    assert [low for _, low, *_ in smoothed_spans(rising, 0.0, 9.0)] == [low for _, low, *_ in rising]
