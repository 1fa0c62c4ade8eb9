import math

from hypothesis import given, strategies as st

from tui.analysis.ordering import ordered

VALUES = st.lists(st.none() | st.floats())


@given(VALUES, st.booleans())
def test_rows_without_a_value_come_last_in_either_direction(values, descending):
    rows = ordered(enumerate(values), lambda row: row[1], descending=descending)
    missing = [row for row in enumerate(values) if row[1] is None]
    assert sorted(position for position, _ in rows) == list(range(len(values)))
    assert rows[len(rows) - len(missing) :] == missing


@given(VALUES, st.booleans())
def test_nan_counts_as_the_largest_value(values, descending):
    known = [value for value in values if value is not None]
    sizes = [(math.isnan(value), 0.0 if math.isnan(value) else value) for value in known]
    found = [
        (math.isnan(value), 0.0 if math.isnan(value) else value)
        for value in ordered(values, lambda value: value, descending=descending)
        if value is not None
    ]
    assert found == sorted(sizes, reverse=descending)


@given(st.lists(st.none() | st.integers(0, 2)), st.booleans())
def test_equal_rows_keep_their_order(values, descending):
    rows = ordered(enumerate(values), lambda row: row[1], descending=descending)
    for value in (None, 0, 1, 2):
        positions = [position for position, other in rows if other == value]
        assert positions == sorted(positions)
