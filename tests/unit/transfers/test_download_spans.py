"""Missing spans of a file against a plain set of numbers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from api_client.transfers.part_file import Span, gaps

EDGE = st.integers(0, 40)
SPANS = st.lists(st.tuples(EDGE, EDGE).map(lambda pair: (min(pair), max(pair))), max_size=20)


@given(SPANS, EDGE)
def test_gaps_are_what_is_missing(spans: list[Span], size_bytes: int) -> None:
    there = {number for start, end in spans for number in range(start, end)}
    found = list(gaps(spans, size_bytes))
    missing = [number for start, end in found for number in range(start, end)]
    assert missing == sorted(set(range(size_bytes)) - there)
    assert all(start < end for start, end in found)
    assert all(before[1] < after[0] for before, after in pairwise(found))
