"""Random worlds: every line exactly once, in order, whatever the server does."""

import asyncio
import random
from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from model_api import BEGIN_S, ModelApi, at, gaps_of, gather, multiset, read_between, world

from api_client.models.logs import MS_PER_S, NS_PER_MS, NS_PER_S, LogLine
from api_client.streams import follow, pages
from api_client.streams.deduplicator import LINE_BYTES, LineDeduplicator
from api_client.streams.follow import Follower
from support.log_server import FastClock, ServedLine

LIMIT = 20
DAY_S = 86_400
HISTORY_S = 9 * DAY_S
LIVE_S = 150.0


@pytest.fixture(autouse=True, scope="module")
def small_pages():
    with patch.object(pages, "MAX_PAGE_LINES", LIMIT), patch.object(follow, "DEEP_POLL_BYTES", 1_300):
        yield


COMMON = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


Segment = tuple[float, int, str, int]
KINDS = st.sampled_from(["one ms", "burst", "identical", "steady", "one ns"])


def segments(lasting_s: float) -> st.SearchStrategy[list[Segment]]:
    """Where, how many, what kind, which seed."""
    where, count = st.floats(0.0, lasting_s, allow_nan=False), st.integers(1, 2 * LIMIT - 2)
    each = st.tuples(where, count, KINDS, st.integers(0, 2**16))
    return st.lists(each, max_size=8, unique_by=lambda segment: int(segment[0]))


def lines_of(segment: Segment, from_s: float, max_delay_s: float) -> list[ServedLine]:
    offset_s, count, kind, seed = segment
    dice = random.Random(seed)
    base = (BEGIN_S + int(from_s)) * 1000 + int(offset_s * 1000)  # ms
    lines = []
    for number in range(count):
        delay_s = dice.uniform(0.0, max_delay_s) if dice.random() < 0.3 else 0.0
        replica = f"node-{dice.randrange(3)}"
        if kind == "one ms":
            stamp, text = base * 1_000_000 + number * 997, f"dense {seed} {number % 7}"
        elif kind == "burst":
            stamp, text = base * 1_000_000 + dice.randrange(30_000_000), f"burst {number}"
        elif kind == "identical":
            stamp, text, replica = (base + number // 6) * 1_000_000 + 17, "the same", "node-0"
        elif kind == "one ns":
            stamp, text = (base + number // (LIMIT - 4)) * 1_000_000, f"tie {number % 3}"
        else:
            stamp, text = (base + number * 700) * 1_000_000 + number, f"step {number}"
        lines.append(ServedLine(stamp, text, replica, None, stamp + int(delay_s * 1e9)))
    return lines


def live_lines(live: list[Segment], max_delay_s: float) -> list[ServedLine]:
    """The lines of a running job: none is stamped after its end."""
    lines = [line for segment in live for line in lines_of(segment, 0, max_delay_s)]
    return [line for line in lines if line.stamp_ns < (BEGIN_S + LIVE_S) * 1e9]


def without_too_dense(lines: list[ServedLine]) -> list[ServedLine]:
    """Worlds whose milliseconds can be fetched: no more than twice a page."""
    held: Counter[int] = Counter()
    kept = []
    for line in lines:
        held[line.stamp_ns // NS_PER_MS] += 1
        if held[line.stamp_ns // NS_PER_MS] <= 2 * LIMIT - 2:
            kept.append(line)
    return kept


servers = st.fixed_dictionaries(
    {
        "end": st.sampled_from(["exclusive", "inclusive", "inclusive ms"]),
        "mirrored": st.booleans(),
        "shuffles": st.booleans(),
        "leaks": st.booleans(),
        "fault_rate": st.sampled_from([0.0, 0.3]),
        "latency_s": st.sampled_from([0.001, 0.05, 0.4]),
        "seed": st.integers(0, 2**16),
    }
)
STRETCH = {"old": segments(HISTORY_S - 1000), "server": servers, "newest_first": st.booleans()}
RUN = STRETCH | {"live": segments(LIVE_S - 2), "skew_s": st.sampled_from([-120.0, 0.0, 120.0])}


@COMMON
@given(**RUN, is_late_world=st.booleans(), generous_lines=st.sampled_from([0, 100, 100_000]))
@pytest.mark.proves("docs/logs.md", "Logs: every line exactly once")
@pytest.mark.proves("README.md", "What happened?")
async def test_following_gives_every_line_once(
    old, live, server, skew_s, is_late_world, generous_lines, newest_first
):
    lines = [line for segment in old for line in lines_of(segment, -HISTORY_S, 60.0)]
    lines += live_lines(live, 60.0 if is_late_world else 0.0)
    if is_late_world:
        lines += [at(second, "heartbeat") for second in range(-60, int(LIVE_S), 5)]
    lines = without_too_dense(lines)
    clock = FastClock(skew_s)
    api = ModelApi(lines, clock, finishes_s=LIVE_S, max_limit=LIMIT, **server)
    start_ms = int((BEGIN_S - HISTORY_S) * 1000)

    with patch.object(follow, "GENEROUS_LINES", generous_lines):
        how = {"clock": clock, "start_ms": start_ms, "newest_first": newest_first}
        followed = await gather(Follower(api.fetch, api.fetch_job, **how).stream(), clock)

    assert multiset(followed.entries) == world(lines)
    assert gaps_of(followed.entries) == []
    assert followed.end.job.is_finished
    batches = followed.batches
    if newest_first:
        history = [batch for batch in batches if not batch.caught_up]
        batches = [*reversed(history), *(batch for batch in batches if batch.caught_up)]
    on_time = [entry.timestamp_ns for batch in batches for entry in batch.entries if not entry.late]
    assert on_time == sorted(on_time)
    newest = 0
    for batch in batches:
        assert all(entry.late == (entry.timestamp_ns < newest) for entry in batch.entries)
        newest = max([newest, *(entry.timestamp_ns for entry in batch.entries)])
    empty = [batch for batch in followed.batches if not batch.entries]
    assert [batch.finished_job is not None for batch in empty] == [False, True]


@COMMON
@given(**STRETCH, from_part=st.floats(0.0, 1.0), until_part=st.floats(0.0, 1.0))
async def test_reading_a_stretch_gives_every_line_once(old, server, newest_first, from_part, until_part):
    lines = without_too_dense([line for segment in old for line in lines_of(segment, -HISTORY_S, 0.0)])
    clock = FastClock()
    api = ModelApi(lines, clock, max_limit=LIMIT, **server)
    begin_ms = int((BEGIN_S - HISTORY_S) * 1000)
    stamps = sorted(line.stamp_ns // 1_000_000 for line in lines) or [begin_ms]
    # Bounds that fall onto lines are the ones that hurt.
    start_ms = stamps[int(from_part * (len(stamps) - 1))]
    end_ms = stamps[int(until_part * (len(stamps) - 1))]

    async def read(start, end):
        entries = await read_between(api, start, end, newest_first=newest_first)
        assert all(isinstance(entry, LogLine) for entry in entries)
        found = [entry.timestamp_ns for entry in entries]
        assert found == sorted(found)
        return multiset(entries)

    inside = [line for line in lines if start_ms <= line.stamp_ns / 1_000_000 < end_ms]
    assert await read(start_ms, end_ms) == world(inside)
    end_of_all_ms = BEGIN_S * 1000
    parts = await read(begin_ms, start_ms) + await read(start_ms, end_of_all_ms)
    assert parts == world(lines)


@COMMON
@given(**RUN)
@pytest.mark.proves("docs/logs.md", "How the stream works")
async def test_history_and_following_at_once_meet_exactly(old, live, server, skew_s, newest_first):
    """As the dashboard reads: from a seam ten minutes back both ways, at the same time."""
    lines = [line for segment in old for line in lines_of(segment, -HISTORY_S, 60.0)]
    lines += live_lines(live, 60.0)
    lines = without_too_dense([*lines, *(at(second, "around the seam") for second in range(-620, -580))])
    clock = FastClock(skew_s)
    api = ModelApi(lines, clock, finishes_s=LIVE_S, max_limit=LIMIT, **server)
    seam_ms = int((clock.now().timestamp() - 600) * 1000)
    begin_ms = int((BEGIN_S - HISTORY_S) * 1000)
    follower = Follower(api.fetch, api.fetch_job, clock=clock, start_ms=seam_ms, newest_first=newest_first)
    reading = read_between(api, begin_ms, seam_ms, newest_first=newest_first)
    followed, older = await asyncio.gather(gather(follower.stream(), clock), reading)

    assert multiset(older) + multiset(followed.entries) == world(lines)
    assert gaps_of(older) == gaps_of(followed.entries) == []


READS = st.lists(
    st.tuples(
        st.integers(0, 2500),
        st.lists(st.tuples(st.sampled_from([0, 1, 400, 999, 1000, 1001, 2400]), st.sampled_from("ab"))),
    ),
    max_size=8,
)
"""What each read brings, (millisecond, message), and from which millisecond on it is to be remembered."""


@settings(max_examples=120)
@given(READS)
@pytest.mark.proves("docs/logs.md", "How the stream works")
def test_as_many_of_each_line_are_told_as_one_read_has_brought_most(reads):
    """What a repeated read brings again is counted, not merged, in a single reading."""
    deduplicator = LineDeduplicator()
    most: Counter[LogLine] = Counter()
    from_ms = 0
    for until_ms, brought in reads:
        kept = sorted((one for one in brought if one[0] >= from_ms), key=lambda one: one[0])
        lines = [LogLine(at_ms * NS_PER_MS, message, "node-0", None) for at_ms, message in kept]

        fresh = deduplicator.new_lines(lines)

        assert Counter(fresh) == Counter(lines) - most
        left = iter(lines)
        assert all(one in left for one in fresh), "in their order"
        most |= Counter(lines)
        if until_ms > from_ms and not until_ms % 3:
            from_ms = until_ms
            deduplicator.forget_before(from_ms)
            kept_ns = from_ms // MS_PER_S * NS_PER_S
            most = Counter({one: most[one] for one in most if one.timestamp_ns >= kept_ns})
        assert deduplicator.line_count == most.total()
        assert deduplicator.size_bytes == sum(len(one.message) + LINE_BYTES for one in most.elements())
