"""Pages of a recorded log are those of all its lines, sorted, however its blocks overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from api_client.clock import epoch_ns
from api_client.models.logs import NS_PER_S, LogGap, LogLine, stamp_ns
from api_client.recordings import log as recorded_log
from api_client.recordings.archive import Members
from api_client.recordings.log import RecordedLog
from support.recorded import BEGIN, line, ndjson

NEVER = 2**63
START_NS = epoch_ns(BEGIN)
LEVELS = (None, "INFO", "ERROR")
ERRORS = frozenset({"ERROR"})


class Stored(Members):
    """Members in memory, which counts how often each is read."""

    def __init__(self, contents: Mapping[str, str]) -> None:
        self.contents = contents
        self.reads: Counter[str] = Counter()

    def names(self) -> Sequence[str]:
        return list(self.contents)

    def stored_bytes(self, name: str) -> int:
        return len(self.contents[name])

    def chunks(self, name: str) -> Iterator[bytes]:
        self.reads[name] += 1
        yield self.contents[name].encode()


def block_name(number: int, first_s: int, last_s: int) -> str:
    return f"logs/{number:06}_{START_NS + first_s * NS_PER_S}_{START_NS + last_s * NS_PER_S}.ndjson"


def simple_page(
    log: RecordedLog,
    start_ns: int,
    end_ns: int,
    *,
    now_ns: int,
    limit: int,
    newest_first: bool,
    levels: frozenset[str] | None,
) -> list[LogLine]:
    arrived, _ = log.arriving((0, 0), now_ns)
    lines = [entry for _, entry in arrived if not isinstance(entry, LogGap)]
    lines = [one for one in lines if levels is None or one.level in levels]
    lines = sorted((one for one in lines if start_ns <= one.timestamp_ns < end_ns), key=stamp_ns)
    return lines[::-1][:limit] if newest_first else lines[:limit]


seconds = st.integers(0, 6)
"""Few, so that many lines have the same time."""
lines_of_a_block = st.lists(st.tuples(seconds, st.sampled_from(LEVELS)), max_size=5)
queries = st.fixed_dictionaries(
    {
        "now_ns": st.sampled_from([NEVER, NEVER, START_NS + 3 * NS_PER_S]),
        "limit": st.integers(1, 5),
        "newest_first": st.booleans(),
        "levels": st.sampled_from([None, None, ERRORS]),
    }
)


@pytest.mark.parametrize("lines_ahead", [0, 7, recorded_log.MIN_CACHED_LINES])
@settings(deadline=None)
@given(
    lines=st.lists(lines_of_a_block, min_size=1, max_size=6),
    overlap=st.booleans(),
    asked=st.lists(st.tuples(seconds, seconds, queries), min_size=1, max_size=6),
)
def test_page_is_that_of_all_lines_sorted(lines_ahead: int, lines: Any, overlap: bool, asked: Any) -> None:
    """``overlap`` is False if each block has the times of its lines, as the recorder writes them."""
    stored: dict[str, str] = {}
    for number, block in enumerate(lines):
        times = [0, 6] if overlap else [second for second, _ in block] or [0]
        documents = [
            line(second, f"{number}-{index}", level=level) for index, (second, level) in enumerate(block)
        ]
        stored[block_name(number, min(times), max(times))] = ndjson(*documents)
    log = RecordedLog(Stored(stored), START_NS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded_log, "MIN_CACHED_LINES", lines_ahead)
        for first_s, last_s, query in asked:
            time_range = (START_NS + first_s * NS_PER_S, START_NS + last_s * NS_PER_S)
            assert log.select(*time_range, **query)[0] == simple_page(log, *time_range, **query)


def test_pages_of_overlapping_blocks_read_each_block_once() -> None:
    parts = [[line((7 * index + number) % 60, "one line") for index in range(10)] for number in range(60)]
    members = Stored({block_name(number, 0, 60): ndjson(*part) for number, part in enumerate(parts)})
    log = RecordedLog(members, START_NS)
    end_ns, count = NEVER, 0
    while lines := log.select(0, end_ns, now_ns=NEVER, limit=50, newest_first=True, levels=None)[0]:
        end_ns = lines[-1].timestamp_ns
        count += len(lines)
    assert count == 600
    assert set(members.reads.values()) == {1}
