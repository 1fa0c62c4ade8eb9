"""Spans of bytes against a plain set of numbers."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from api_client.transfers.part_file import Spans

EDGE = st.integers(0, 40)
PAIRS = st.lists(st.tuples(EDGE, EDGE), max_size=20)


@given(PAIRS)
def test_spans_are_a_set_of_bytes(pairs: list[tuple[int, int]]) -> None:
    spans, numbers = Spans(), set[int]()
    for start, end in pairs:
        news = set(range(start, end)) - numbers
        assert spans.add(start, end) == len(news)
        numbers |= news
    assert {number for start, end in spans for number in range(start, end)} == numbers
    assert spans.size_bytes == len(numbers)
    assert spans.end == max(numbers, default=-1) + 1
    listed = list(spans)
    assert all(before[1] < after[0] for before, after in pairwise(listed))


@given(PAIRS, EDGE, EDGE)
def test_gaps_are_what_is_missing(pairs: list[tuple[int, int]], start: int, end: int) -> None:
    spans = Spans(pairs)
    there = {number for low, high in spans for number in range(low, high)}
    missing = [number for low, high in spans.gaps(start, end) for number in range(low, high)]
    assert missing == sorted(set(range(start, end)) - there)


@given(PAIRS, EDGE)
def test_a_cut_takes_away_all_from_there_on(pairs: list[tuple[int, int]], end: int) -> None:
    spans = Spans(pairs)
    kept = {number for low, high in spans for number in range(low, high) if number < end}
    spans.cut(end)
    assert {number for low, high in spans for number in range(low, high)} == kept
    assert spans.size_bytes == len(kept)
    assert spans.end <= end
