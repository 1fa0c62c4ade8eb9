"""What a repeated read brings again, and what of it is new: counted, not merged, in a single reading."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from api_client.models.logs import LogLine
from api_client.streams.deduplicator import LineDeduplicator

NOW_NS = 1_760_000_000_000_000_000


def line(message: str, at_ms: int = 0) -> LogLine:
    return LogLine(NOW_NS + at_ms * 1_000_000, message, "node-0", None)


Reads = list[tuple[int, list[tuple[int, str]]]]
"""What each read brings, (millisecond, message), and from which millisecond on it is to be remembered."""

READS = st.lists(
    st.tuples(
        st.integers(0, 2500),
        st.lists(st.tuples(st.sampled_from([0, 1, 400, 999, 1000, 1001, 2400]), st.sampled_from("ab"))),
    ),
    max_size=8,
)


@settings(max_examples=120)
@given(READS)
def test_as_many_of_each_line_are_told_as_one_read_has_brought_most(reads: Reads) -> None:
    deduplicator = LineDeduplicator()
    most: Counter[LogLine] = Counter()
    from_ms = 0
    for until_ms, brought in reads:
        lines = [line(message, at_ms) for at_ms, message in sorted(brought, key=lambda one: one[0])]
        lines = [one for one in lines if _ms(one) >= from_ms]

        fresh = deduplicator.new_lines(lines, NOW_NS // 1_000_000)

        assert Counter(fresh) == Counter(lines) - most
        left = iter(lines)
        assert all(one in left for one in fresh), "in their order"
        most |= Counter(lines)
        if until_ms > from_ms and not until_ms % 3:
            from_ms = until_ms
            deduplicator.forget_before(NOW_NS // 1_000_000 + from_ms)
            most = Counter({one: count for one, count in most.items() if _ms(one) >= from_ms})
        assert deduplicator.line_count == most.total()


def _ms(one: LogLine) -> int:
    return (one.timestamp_ns - NOW_NS) // 1_000_000
