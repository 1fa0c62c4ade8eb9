import math

from hypothesis import given, strategies as st

from tui.analysis.ordering import ordered

VALUES = st.lists(st.none() | st.just(math.nan) | st.floats() | st.integers(0, 2))


@given(VALUES, st.booleans())
def test_rows_are_sorted_stably_nan_as_the_largest_and_those_without_a_value_last(values, descending):
    rows = list(enumerate(values))
    known = [row for row in rows if row[1] is not None]
    known.sort(key=lambda row: (math.isnan(row[1]), 0 if math.isnan(row[1]) else row[1]), reverse=descending)
    expected = [*known, *(row for row in rows if row[1] is None)]
    assert ordered(rows, lambda row: row[1], descending=descending) == expected
