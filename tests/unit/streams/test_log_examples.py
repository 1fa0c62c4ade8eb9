"""Known troubles of the logs route, one by one, with the API's real limits."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from functools import cache
from itertools import cycle, pairwise

import pytest
from model_api import BEGIN_S, Followed, ModelApi, at, gaps_of, gather, multiset, read_between, world

from api_client.errors import BadRequest, InvalidAnswer, NotFound, ServerFault, Unreachable
from api_client.models.logs import LogBatch, LogEntry, LogLine
from api_client.streams import follow as following, pages
from api_client.streams.follow import Follower
from api_client.streams.logs import LogIncrements, fill_gap, read_logs
from api_client.streams.pages import PageSource
from support.log_server import FastClock, ServedLine

HOUR_S = 3600
DAY_S = 24 * HOUR_S
BEGIN_MS = BEGIN_S * 1000
ENDS = ["exclusive", "inclusive", "inclusive ms"]
SETTLED_NS = (BEGIN_S + 15) * 1e9


def stream_of(api, *, from_s=-HOUR_S, **how):
    start_ms = int(BEGIN_MS + from_s * 1000)
    return Follower(api.fetch, api.fetch_job, clock=api.clock, start_ms=start_ms, **how).stream()


async def follow(api, **how) -> Followed:
    return await gather(stream_of(api, **how), api.clock)


async def catch_up(stream) -> None:
    """Follow until the live edge."""
    async with aclosing(stream) as batches:
        async for batch in batches:
            if batch.caught_up:
                break


async def read(api, from_s, until_s, **how) -> list[LogEntry]:
    return await read_between(api, int(BEGIN_MS + from_s * 1000), int(BEGIN_MS + until_s * 1000), **how)


async def both_ways(api, from_s=-100, until_s=0) -> list[LogEntry]:
    """A stretch read from the newest back; from the oldest on it gives the same lines and gaps."""
    entries = await read(api, from_s, until_s, newest_first=True)
    forward = await read(api, from_s, until_s)
    assert multiset(forward) == multiset(entries)
    assert gaps_of(forward) == gaps_of(entries)
    return entries


def api_of(lines, *, skew_s=0.0, **how):
    return ModelApi(lines, FastClock(skew_s), **how)


def steps(begin_s, end_s, apart_s=1):
    """A line every ``apart_s`` seconds."""
    return [at(second, f"line {second}") for second in range(begin_s, end_s, apart_s)]


def dense(count, apart_ns, at_s=-60.0):
    """Lines of one millisecond, unless there are too many of them."""
    return [at(at_s, f"dense {n}", plus_ns=n * apart_ns) for n in range(count)]


def of_node(name, off_s):
    """A busy node whose clock is off by so much."""
    return [at(n / 15 + off_s, f"{name} {n}", delay_s=-off_s, replica=name) for n in range(15 * 60)]


WORLDS = {
    "the server's clock is hours ahead": (
        [at(-4 * HOUR_S, "an hour before our present"), at(20, "three hours after it")], 40, 3 * HOUR_S),
    "silence of hours": ([at(-3 * HOUR_S), at(5), at(2.5 * HOUR_S)], 2.6 * HOUR_S),
    # A clock that lines prove to run slowly must not make the newest of them look old.
    "stamps almost stand still": ([at(-60 + n / 1000, f"line {n}", delay_s=60 + n) for n in range(500)], 510),
    "clocks of busy nodes differ by minutes": (
        of_node("node-0", 0) + of_node("node-1", -120) + of_node("node-2", 120), 70),
    "a line from a wrong clock": (
        [*steps(0, 400, 2), at(5 * HOUR_S, "hours ahead", delay_s=-5 * HOUR_S + 30)], 410),
    "late without a sign before": ([*steps(0, 60), at(59.9, "the last words", delay_s=60.0)], 60),
    "lines later than a minute lengthen the wait": (
        [*steps(0, 300, 3), at(100, "late", delay_s=120.0), at(299, "at the end", delay_s=125.0)], 300),
    "the full wait for late lines": (
        [*steps(0, 60, 2), at(5, "late", delay_s=20.0), at(59, "very late", delay_s=60.0)], 60),
}  # fmt: skip


@pytest.mark.parametrize("name", WORLDS)
async def test_following_gives_every_line_once(name: str) -> None:
    lines, finishes_s, *skew_s = WORLDS[name]
    api = api_of(lines, finishes_s=finishes_s, skew_s=sum(skew_s))
    followed = await follow(api, from_s=-5 * HOUR_S)
    assert (multiset(followed.entries), followed.end is not None) == (world(lines), True)


async def test_log_is_followed_if_our_clock_is_days_behind() -> None:
    api = api_of([at(-4 * HOUR_S, "before"), *steps(0, 40, 9)], finishes_s=40, skew_s=3 * DAY_S)
    followed = await gather(Follower(api.fetch, api.fetch_job, clock=api.clock).stream(), api.clock)
    assert multiset(followed.entries) == world(api.lines)


@pytest.mark.parametrize("begin_s", [-5 * DAY_S, -6.5 * DAY_S, -13.5 * DAY_S])
async def test_old_lines_need_no_tracking_however_long_ago_the_log_began(begin_s: float) -> None:
    api = api_of([*[at(begin_s + n, f"line {n}") for n in range(2000)], at(-1, "newest")])
    follower = Follower(api.fetch, api.fetch_job, clock=api.clock, start_ms=int(BEGIN_MS + begin_s * 1000))
    await catch_up(follower.stream())
    assert follower.tracked_line_count == 1


async def assert_nothing_is_missing(api: ModelApi) -> None:
    entries = await both_ways(api)
    assert (multiset(entries), gaps_of(entries)) == (world(api.lines), [])


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.proves("docs/logs.md", "The API")
async def test_a_millisecond_may_hold_more_than_a_page(end: str) -> None:
    after = [at(-60, f"next {n}", plus_ns=1_000_000 + n) for n in range(1200)]
    await assert_nothing_is_missing(api_of([at(-61), *dense(1500, 600), *after, at(-59)], end=end))


def one_shared(hidden: int) -> list[ServedLine]:
    """The oldest page may end with the same line that the newest begins with: perhaps others follow it."""
    before, after = ([at(-60, f"line {ns + n}", plus_ns=ns + n) for n in range(999)] for ns in (0, 6000))
    return [*before, *[at(-60, "tied", plus_ns=5000)] * (1 + hidden), *after]


@pytest.mark.parametrize(
    ("lines", "missing", "gap", "server"),
    [
        # A server may answer the same 1,000 lines from either end; none shows that there are no others.
        pytest.param(dense(1500, 0), 0, (0, 1), {}, id="one stamp"),
        pytest.param(dense(1500, 0), 500, (0, 1), {"mirrored": False}, id="one stamp, not mirrored"),
        pytest.param(dense(1500, 0), 500, (0, 1), {"mirrored": False, "shuffles": True}, id="shuffled"),
        pytest.param(one_shared(0), 0, (5000, 5001), {}, id="a shared line proves nothing"),
        pytest.param(one_shared(9), 9, (5000, 5001), {}, id="it hides others"),
        pytest.param(one_shared(9), 9, (5000, 5001), {"mirrored": False}, id="it hides others, not mirrored"),
        # The first page's last stamp may have been cut: no more than the gap says can be known.
        pytest.param(dense(2000, 1), 0, (999, 1000), {}, id="two pages that only touch"),
        pytest.param(dense(3000, 100), 1000, (99_900, 200_000), {}, id="three pages"),
        pytest.param(dense(300, 1), 100, (99, 200), {"cut": 100}, id="three pages of a server's own"),
    ],
)
@pytest.mark.proves("docs/logs.md", "The API")
async def test_what_one_millisecond_may_hide_is_a_gap_in_its_place(lines, missing, gap, server) -> None:
    api = api_of([at(-61), *lines, at(-59)], **server)
    entries = await both_ways(api)
    left = world(api.lines) - multiset(entries)
    assert (left.total(), multiset(entries) - world(api.lines)) == (missing, {})
    first_ns = lines[0].stamp_ns
    [found] = gaps_of(entries)
    assert (found.start_ns - first_ns, found.end_ns - first_ns) == gap
    place = entries.index(found)
    assert entries[place - 1].timestamp_ns <= found.start_ns
    assert all(found.start_ns <= stamp < found.end_ns for stamp, *_ in left)


async def test_a_flood_keeps_neither_the_job_nor_late_lines_from_being_seen() -> None:
    """Faster than it can be read: 1,500 lines a second, a page takes 0.8 s."""
    flood = [at(n / 1500, f"line {n}") for n in range(1500 * 10)]
    late = [at(second, f"late {second}", delay_s=50.0) for second in range(0, 10, 3)]
    api = api_of([at(-1), *flood, *late], finishes_s=150, latency_s=0.8)
    fetch_job, looked_s = api.fetch_job, []

    async def noting():
        looked_s.append(api.clock.passed_s)
        return await fetch_job()

    api.fetch_job = noting
    followed = await follow(api)
    assert multiset(followed.entries) == world(api.lines)
    assert max(later - earlier for earlier, later in pairwise(looked_s[:-1])) < 10


@pytest.mark.proves("docs/logs.md", "Memory")
async def test_memory_is_bounded_even_in_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    api = api_of([at(n / 1000, f"line {n}") for n in range(1000 * 20)], finishes_s=20)
    for name, most in (("GENEROUS_LINES", 1000), ("MAX_TRACKED_LINES", 2000), ("LATENESS_MS", 1000)):
        monkeypatch.setattr(following, name, most)
    follower = Follower(api.fetch, api.fetch_job, clock=api.clock, start_ms=BEGIN_MS)
    count = 0
    async for batch in follower.stream():
        count += len(batch.entries) if isinstance(batch, LogBatch) else 0
        assert follower.tracked_line_count < 5000
    assert count == len(api.lines)


@pytest.mark.proves("docs/logs.md", "How the stream works")
async def test_a_quiet_job_costs_less_than_a_request_a_second() -> None:
    for apart_s, requests in ((HOUR_S, 0.63 * 900), (7, 0.75 * 900)):
        api = api_of(steps(-5, 900, apart_s), finishes_s=900)
        await follow(api)
        assert api.pages + api.looks < requests


@pytest.mark.proves("docs/logs.md", "How the stream works")
@pytest.mark.parametrize("rate", [5, 20])
async def test_a_busy_log_without_late_lines_is_seldom_read_again(rate: int) -> None:
    api = api_of([at(n / rate, f"line {n}") for n in range(-60 * rate, 600 * rate)], finishes_s=600)
    await follow(api, drain_s=0.0)
    assert api.pages < 1.5 * 600  # a poll a second, and in the first minute 0.75 pages a second of late lines


@pytest.mark.parametrize(
    ("rate", "from_s", "late_s", "latency_s", "longest_s"),
    [
        pytest.param(1, 0, range(5, 60, 10), 0.02, {"": 3.0}, id="few lines"),
        # Late lines of a busy log need not wait for the deepest read.
        pytest.param(60, -290, range(0, 60, 7), 0.02, {"line": 3.0, "late": 5.0}, id="a busy log"),
        # Nor do new ones wait until older ones are read again.
        pytest.param(100, -200, (), 0.4, {"line": 4.0}, id="a busy log of a slow server"),
        pytest.param(100, -600, (), 1.5, {"line": 8.0}, id="nor until its history is read backwards"),
    ],
)
async def test_a_line_is_seen_within_seconds_of_its_arrival(
    rate: float, from_s: int, late_s: range, latency_s: float, longest_s: dict[str, float]
) -> None:
    lines = [at(n / rate, f"line {n / rate}") for n in range(int(from_s * rate), int(60 * rate))]
    lines += [at(second - 40, f"late {second}", delay_s=40.0) for second in late_s]
    followed = await follow(api_of(lines, finishes_s=90, latency_s=latency_s), newest_first=from_s == -600)
    assert multiset(followed.entries) == world(lines)
    settled = (line for line in lines if line.arrives_ns > SETTLED_NS)
    arrived_s = {line.message: line.arrives_ns / 1e9 - BEGIN_S for line in settled}
    for entry, seen_s in zip(followed.entries, followed.seen_s, strict=True):
        for prefix, limit_s in longest_s.items():
            if entry.message.startswith(prefix) and entry.message in arrived_s:
                assert seen_s - arrived_s[entry.message] < limit_s


async def test_the_live_edge_is_reached_though_lines_keep_coming() -> None:
    api = api_of([at(n / 200, f"line {n}") for n in range(-2000, 200 * 20)], finishes_s=20)
    await catch_up(stream_of(api))
    assert api.clock.passed_s < 1.0


@pytest.mark.parametrize("cut", [{"cut": 100}, {"cut": 25}, {"cut": 10}, {"cut_characters": 400_000}])
async def test_a_server_may_cut_its_pages_without_a_word(cut: dict[str, int]) -> None:
    """By a limit of its own, or for their size; lines keep coming, too."""
    big = [at(-100 + n / 10, "x" * 200_000 + str(n)) for n in range(20)]
    api = api_of([*[at(-500 + n / 2, f"line {n}") for n in range(700)], *big], **cut)
    assert multiset(await both_ways(api, -600)) == world(api.lines)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("per_ms", [1, 40, 100])
async def test_a_cut_page_may_begin_with_lines_of_the_next_millisecond(per_ms: int, end: str) -> None:
    """They fill it from a server that counts the end bound in, and so what was asked for seems little."""
    await assert_nothing_is_missing(api_of(dense(1000, 1_000_000 // per_ms), end=end, cut=100))


@cache
def a_day() -> list[ServedLine]:
    return [at(-DAY_S + 1.25 * n, f"line {n}") for n in range(48_000)]


def a_day_read(fetch, clock: FastClock):
    pages = PageSource(fetch, clock=clock)
    return read_logs(pages, start_ms=BEGIN_MS - 2 * DAY_S * 1000, end_ms=BEGIN_MS)


async def test_a_long_history_is_read_once() -> None:
    api = api_of(a_day(), finishes_s=20)
    followed = await follow(api, from_s=-2 * DAY_S, drain_s=0.0)
    assert multiset(followed.entries) == world(a_day())
    assert api.pages < 80
    parts = [batch.read_part for batch in followed.batches if batch.read_part is not None]
    assert parts == sorted(parts)
    assert (parts[0] < 0.6, parts[-1] > 0.95) == (True, True)


MONTHS_S = 90 * DAY_S
MONTHS_AGO = steps(-MONTHS_S, -MONTHS_S + 3 * DAY_S, 300)


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize(
    ("changed_s", "first_pages"),
    [
        pytest.param(-MONTHS_S + 3 * DAY_S, 3, id="right"),
        pytest.param(-MONTHS_S, 3, id="too early"),
        pytest.param(-20 * DAY_S, 20, id="too late"),
        pytest.param(5 * DAY_S, 20, id="in the future"),
    ],
)
async def test_log_that_ended_months_ago_is_read_from_its_end(changed_s, first_pages, newest_first) -> None:
    api = api_of(MONTHS_AGO, finishes_s=-MONTHS_S + 3 * DAY_S, changed_s=changed_s)
    entries: list[LogEntry] = []
    async for part in stream_of(api, from_s=-MONTHS_S - HOUR_S, newest_first=newest_first):
        if isinstance(part, LogBatch) and part.entries:
            assert entries or api.pages <= first_pages
            entries += part.entries
    assert multiset(entries) == world(MONTHS_AGO)


async def test_empty_log_that_ended_months_ago_is_read_once() -> None:
    api = api_of([], finishes_s=-MONTHS_S + DAY_S)
    await follow(api, from_s=-MONTHS_S, newest_first=True)
    assert len(api.requests) == len(set(api.requests)) <= 18


async def test_what_is_read_ahead_is_bounded() -> None:
    api = api_of([at(-DAY_S + n, f"line {n}") for n in range(80_000)])
    async with aclosing(a_day_read(api.fetch, api.clock)) as stream:
        await anext(stream)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert api.pages < 70


async def test_an_error_in_a_part_read_ahead_reaches_the_caller_in_its_turn() -> None:
    api = api_of(a_day())

    async def fetch(**window):
        if window["query"]["start_epoch_millis"] > BEGIN_MS - 50_000_000:
            raise NotFound("gone", status=404)
        return await api.fetch(**window)

    entries = []
    with pytest.raises(NotFound):
        async for batch in a_day_read(fetch, api.clock):
            entries += batch.entries
    assert len(entries) > 10_000
    assert multiset(entries) == world(a_day()[: len(entries)])


LONG_AGO = steps(-7200, -4700)
COMPLETE, FAULTY = {"tells_complete": True}, {"seed": 0, "fault_rate": 0.2}
# The page that says that the log is complete may be of the edge: late lines are read again before the end.
BUSY = [at(n / 400, f"line {n}", delay_s=(n % 7) * 1.2) for n in range(16_000)]
RESUMED = [*steps(0, 99), at(98, "late", delay_s=30.0)]


@pytest.mark.parametrize(
    ("lines", "finishes_s", "server", "how", "ends_within_s", "is_told_before"),
    [
        pytest.param([at(1), at(9.5)], 10, COMPLETE, {}, (10, 20), False, id="complete"),
        pytest.param([at(1), at(9.5, delay_s=30.0)], 10, COMPLETE, {}, (40, 50), True, id="complete later"),
        pytest.param([at(-60)], -30, COMPLETE, {}, (0, 1), False, id="complete long ago"),
        pytest.param(BUSY, 40, COMPLETE | FAULTY, {}, (40, 70), True, id="complete and busy"),
        pytest.param(LONG_AGO, -HOUR_S, {}, {"from_s": -3 * HOUR_S}, (0, 1), False, id="long over"),
        pytest.param([], 30, {}, {}, (30, 110), True, id="no line at all"),
        pytest.param(RESUMED, 99, {"seems_over_s": range(10, 22)}, {}, (164, 185), True, id="runs again"),
        pytest.param([at(10)], 60, {}, {"drain_s": 3.0}, (60, 72), True, id="the wait can be set"),
    ],
)
@pytest.mark.proves("docs/logs.md", "How the stream works")
async def test_when_a_log_ends(lines, finishes_s, server, how, ends_within_s, is_told_before) -> None:
    followed = await follow(api_of(lines, finishes_s=finishes_s, **server), **how)
    assert multiset(followed.entries) == world(lines)
    assert followed.end.job.current_status == "TRAINING_JOB_COMPLETED"
    assert ends_within_s[0] <= followed.end_s < ends_within_s[1]
    assert any(batch.finished_job for batch in followed.batches) == is_told_before


async def test_server_that_always_has_another_line_does_not_hold_a_log_of_an_ended_job_open() -> None:
    lines = steps(0, 1200)
    followed = await follow(api_of(lines, finishes_s=60))
    assert 60 + 300 <= followed.end_s < 60 + 330
    assert followed.end.job.is_finished


async def test_a_slow_last_reading_misses_no_straggler_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading of it all takes 18 s, so one that is over after the wait began well before its end."""
    lines = [at(-0.5 + n / 1_000, f"burst {n}") for n in range(900)]
    lines.append(at(-0.6, "straggler", delay_s=60.0))
    monkeypatch.setattr(pages, "MAX_PAGE_LINES", 100)
    followed = await follow(api_of(lines, finishes_s=0.5, latency_s=2.0), drain_s=65.0)
    assert multiset(followed.entries) == world(lines)


LINES = [at(-1000 + n, f"line {n}") for n in range(900)]


@pytest.mark.proves("docs/logs.md", "How the stream works")
async def test_a_page_that_cannot_be_had_is_a_gap_and_no_more() -> None:
    lines = steps(0, 300, 2)
    poison_ns = lines[20].stamp_ns
    api = api_of(lines, finishes_s=310, poison=(poison_ns, poison_ns + 1))
    for entries in ((await follow(api)).entries, await both_ways(api, -10, 400)):
        assert multiset(entries) == world([*lines[:20], *lines[21:]])
        [gap] = gaps_of(entries)
        assert gap.start_ns <= poison_ns < gap.end_ns == gap.start_ns + 1_000_000
        assert "cannot be rendered" in gap.reason


async def test_a_long_stretch_that_cannot_be_had_costs_few_requests() -> None:
    api = api_of(LINES, poison=(LINES[300].stamp_ns, LINES[400].stamp_ns))
    entries = await read(api, -1100, 0)
    missing = world(LINES) - multiset(entries)
    assert not missing & world(LINES[:300])
    assert 100 <= missing.total() <= 300
    gaps = gaps_of(entries)
    assert all(any(gap.start_ns <= stamp < gap.end_ns for gap in gaps) for stamp, *_ in missing)
    assert api.pages < 500


async def test_page_that_is_too_large_is_narrowed_at_once() -> None:
    lines = [at(-300 + n, "x" * 1000) for n in range(200)]
    lines[100] = at(-200, "x" * 90_000)
    api = api_of(lines, largest_characters=50_000)
    entries = await read(api, -310, 0)
    assert multiset(entries) == world([*lines[:100], *lines[101:]])
    [gap] = gaps_of(entries)
    assert gap.start_ns <= lines[100].stamp_ns < gap.end_ns == gap.start_ns + 1_000_000
    assert len(set(api.requests)) == len(api.requests)
    assert all(end_ms > BEGIN_MS - HOUR_S * 1000 for _, end_ms, *_ in api.requests)


def failing(call: Callable, clock: FastClock, *errors: Exception, from_s: float, until_s: float) -> Callable:
    left = cycle(errors)

    async def fail(**arguments):
        if from_s < clock.passed_s < until_s:
            await clock.sleep(0.1)
            raise next(left)
        return await call(**arguments)

    return fail


@pytest.mark.proves("docs/logs.md", "How the stream works")
async def test_an_outage_loses_nothing_and_makes_no_gap() -> None:
    lines = steps(0, 900, 3)
    api = api_of(lines, finishes_s=910)
    errors = ServerFault("down", status=502), Unreachable("refused"), InvalidAnswer("a proxy's page")
    api.fetch = failing(api.fetch, api.clock, *errors, from_s=100, until_s=700)
    api.fetch_job = failing(api.fetch_job, api.clock, *errors, from_s=100, until_s=600)
    followed = await follow(api)
    assert (multiset(followed.entries), gaps_of(followed.entries)) == (world(lines), [])


async def test_a_job_that_cannot_be_read_for_good_ends_the_stream() -> None:
    api = api_of([at(1)], finishes_s=10_000)
    api.fetch_job = failing(api.fetch_job, api.clock, InvalidAnswer("no job"), from_s=5, until_s=10_000)
    with pytest.raises(InvalidAnswer):
        await follow(api)
    assert 600 < api.clock.passed_s < 700


@pytest.mark.parametrize(("from_s", "ends_s"), [(-1, (0, 60)), (5, (600, 700))])
async def test_log_that_is_invalid_for_good_ends_the_stream(from_s: float, ends_s: tuple[int, int]) -> None:
    api = api_of(steps(0, 100), finishes_s=10_000)
    api.fetch = failing(api.fetch, api.clock, InvalidAnswer("no log"), from_s=from_s, until_s=10_000)
    with pytest.raises(InvalidAnswer):
        await follow(api)
    assert ends_s[0] < api.clock.passed_s < ends_s[1]


async def test_a_server_that_refuses_windows_in_its_future_is_a_clear_error() -> None:
    api = api_of([at(1)], refuses_future=True)
    for asked in (follow(api), read(api, -10, DAY_S)):
        with pytest.raises(BadRequest, match="no such window"):
            await asked


@pytest.mark.proves("docs/logs.md", "How the stream works")
async def test_a_gap_filled_later_completes_the_log() -> None:
    api = api_of(LINES, poison=(LINES[400].stamp_ns, LINES[410].stamp_ns))
    before = await read(api, -1100, 0)
    api.poison = None
    filled = [entry for gap in gaps_of(before) for entry in await fill_gap(api.fetch, gap, clock=api.clock)]
    assert gaps_of(filled) == []
    assert multiset(before) + multiset(filled) == world(LINES)


@pytest.mark.parametrize(("count", "apart_ns"), [(2100, 0), (2100, 300), (3000, 50)])
async def test_filling_a_gap_in_vain_repeats_no_line(count: int, apart_ns: int) -> None:
    api = api_of([at(-61), *dense(count, apart_ns), at(-59)])
    [gap] = gaps_of(await read(api, -100, 0))
    again = await fill_gap(api.fetch, gap, clock=api.clock)
    assert list(again) == [gap]
    assert again[0].held == gap.held


STAMPS = ("2025-10-09Z", "", "²", "9" * 5000, "9" * 19, "-1")


def messages_of(followed: Followed) -> Counter[str]:
    return Counter(entry.message for entry in followed.entries if isinstance(entry, LogLine))


def without_time(api: ModelApi, stamp: str | None, is_undated: Callable[[str], bool]) -> ModelApi:
    """Replace the timestamps of some lines by ``stamp``, or leave them out."""
    fetch = api.fetch

    async def fetch_undated(**window):
        page = await fetch(**window)
        for record in page["logs"]:
            if is_undated(record["message"]):
                record.pop("timestamp")
                record.update({} if stamp is None else {"timestamp": stamp})
        return page

    api.fetch = fetch_undated
    return api


@pytest.mark.parametrize("stamp", [*STAMPS, None])
async def test_line_without_valid_time_is_kept(stamp: str | None) -> None:
    api = without_time(api_of(LINES), stamp, lambda message: message == "line 400")
    entries = await both_ways(api, -1100)
    assert Counter(entry.message for entry in entries) == Counter(line.message for line in LINES)


async def test_lines_without_valid_time_are_followed_once_in_few_requests() -> None:
    lines = steps(-100, 60)
    api = without_time(api_of(lines, finishes_s=60.0), "x", lambda message: int(message.split()[1]) % 3 == 0)
    followed = await follow(api, from_s=-200)
    assert messages_of(followed) == Counter(line.message for line in lines)
    assert api.pages < 3 * api.clock.passed_s


@pytest.mark.parametrize("count", [5, 3000])
async def test_log_without_any_valid_time_causes_few_requests(count: int) -> None:
    lines = [at(second / 100, f"line {second}") for second in range(-count, 0)]
    api = without_time(api_of(lines, finishes_s=60.0), "", lambda _message: True)
    followed = await follow(api, from_s=-HOUR_S)
    messages = messages_of(followed)
    assert max(messages.values(), default=1) == 1
    assert len(messages) == count or gaps_of(followed.entries)
    assert api.pages < 3 * api.clock.passed_s


async def test_log_of_other_times_causes_few_requests() -> None:
    lines = [at(second / 100, f"line {second}") for second in range(-3000, 0)]
    api = without_time(api_of(lines, finishes_s=60.0), "0", lambda _message: True)
    followed = await follow(api, from_s=-HOUR_S)
    assert gaps_of(followed.entries)
    assert api.pages < 3 * api.clock.passed_s


async def test_pages_of_other_times_are_a_gap() -> None:
    """A server that ignores the bounds of the time range never says what is inside."""
    api = api_of([])

    async def fetch(**_):
        return {"logs": [line.record() for line in LINES + steps(-3000, -2900)]}

    api.fetch = fetch
    [gap] = await both_ways(api, -10)
    assert (gap.start_ns, gap.end_ns) == ((BEGIN_MS - 10_000) * 1_000_000, BEGIN_MS * 1_000_000)


async def test_polling_a_log_gives_what_is_new_once() -> None:
    lines = steps(-200, 200) + [at(20.0, f"at once {n}", plus_ns=n * 500) for n in range(1800)]
    lines += [at(second, f"late {second}", delay_s=50.0) for second in range(-150, 100, 10)]
    api = api_of([*lines, at(5 * HOUR_S, "five hours ahead", delay_s=-5 * HOUR_S)], fault_rate=0.3)
    known = [LogLine(line.stamp_ns, line.message, line.replica, line.level) for line in lines[:100]]
    log = LogIncrements(api.fetch, clock=api.clock, start_ms=BEGIN_MS - 200_000, known=known)
    entries = []
    while api.clock.passed_s < 300:
        async for new in log.poll():
            entries += new
        await api.clock.sleep(30)
    assert multiset(entries) == world(api.lines) - world(lines[:100])
