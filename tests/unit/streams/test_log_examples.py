"""Known troubles of the logs route, one by one, with the API's real limits."""

import asyncio
import random
from contextlib import aclosing
from itertools import pairwise

import pytest
from model_api import BEGIN_S, ModelApi, ModelClock, at, gaps_of, gather, gone, multiset, record_of, world

from api_client.errors import BadRequest, InvalidAnswer, NotFound, ServerFault, Unauthorized, Unreachable
from api_client.models.logs import LogBatch, LogGap, LogLine
from api_client.streams import follow as following
from api_client.streams import pages
from api_client.streams.follow import Follower
from api_client.streams.logs import LogIncrements, fill_gap, read_logs

HOUR_S = 3600
DAY_S = 24 * HOUR_S
BEGIN_MS = BEGIN_S * 1000
ENDS = ["exclusive", "inclusive", "inclusive ms"]


def stream_of(api, *, from_s=-HOUR_S, drain_s=None):
    start_ms = int(BEGIN_MS + from_s * 1000)
    return Follower(api.fetch, api.fetch_job, clock=api.clock, start_ms=start_ms, drain_s=drain_s).stream()


async def follow(api, **how):
    return await gather(stream_of(api, **how), api.clock)


async def read(api, from_s, until_s, *, newest_first=False):
    start_ms, end_ms = int(BEGIN_MS + from_s * 1000), int(BEGIN_MS + until_s * 1000)
    entries = []
    stream = read_logs(
        api.fetch, start_ms=start_ms, end_ms=end_ms, clock=api.clock, newest_first=newest_first
    )
    async for batch in stream:
        entries = [*batch.entries, *entries] if newest_first else [*entries, *batch.entries]
    return entries


def api_of(lines, **how):
    skew_s = how.pop("skew_s", 0.0)
    return ModelApi(lines, ModelClock(skew_s), **how)


def steps(begin_s, end_s, apart_s, message="line", **more):
    """A line every ``apart_s`` seconds."""
    return [at(second, f"{message} {second}", **more) for second in range(begin_s, end_s, apart_s)]


def of_node(name, off_s):
    """A busy node whose clock is off by so much."""
    return [at(n / 15 + off_s, f"{name} {n}", delay_s=-off_s, replica=name) for n in range(15 * 60)]


@pytest.mark.parametrize(
    ("lines", "finishes_s"),
    [
        pytest.param([at(-60, "same")] * 3 + [at(30, "same")] * 2, 60, id="identical lines are counted"),
        pytest.param(
            [at(30, "same"), *[at(30, "same", delay_s=20)] * 3], 90, id="each late one of identical lines"
        ),
        pytest.param([at(-3 * HOUR_S), at(5), at(2.5 * HOUR_S)], 2.6 * HOUR_S, id="silence of hours"),
        # A clock that lines prove to run slowly must not make the newest of them look old.
        pytest.param(
            [at(-60 + n / 1000, f"line {n}", delay_s=60 + n) for n in range(500)],
            510,
            id="stamps almost stand still",
        ),
        pytest.param(
            steps(-60, 100, 3) + steps(-200, -55, 9, "behind", delay_s=150.0, replica="node-1"),
            110,
            id="a node's clock is minutes behind",
        ),
        pytest.param(
            of_node("node-0", 0) + of_node("node-1", -120) + of_node("node-2", 120),
            70,
            id="clocks of busy nodes differ by minutes",
        ),
        pytest.param(
            [*steps(0, 400, 2), at(5 * HOUR_S, "hours ahead", delay_s=-5 * HOUR_S + 30)],
            410,
            id="a line from a wrong clock",
        ),
        pytest.param(
            [*steps(0, 60, 1), at(59.9, "the last words", delay_s=60.0)],
            60,
            id="late without a sign before",
        ),
        pytest.param(
            [
                *steps(0, 300, 3),
                at(100, "two minutes late", delay_s=120.0),
                at(299, "so at the end", delay_s=125.0),
            ],
            300,
            id="lines later than a minute lengthen the wait",
        ),
        pytest.param(
            [*steps(0, 60, 2), at(5, "late", delay_s=20.0), at(59, "very late", delay_s=60.0)],
            60,
            id="the full wait for late lines",
        ),
    ],
)
async def test_following_gives_every_line_once(lines, finishes_s):
    followed = await follow(api_of(lines, finishes_s=finishes_s), from_s=-4 * HOUR_S)

    assert multiset(followed.entries) == world(lines)


async def test_the_servers_clock_may_be_hours_ahead():
    lines = [at(-4 * HOUR_S, "an hour before our present"), at(20, "three hours after it")]
    api = api_of(lines, skew_s=3 * HOUR_S, finishes_s=40)

    followed = await follow(api, from_s=-5 * HOUR_S)

    assert multiset(followed.entries) == world(lines)


# Dense moments


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("end", ENDS)
async def test_a_millisecond_may_hold_more_than_a_page(end, newest_first):
    dense = [at(-60, f"line {n}", plus_ns=n * 600) for n in range(1500)]
    after = [at(-60, f"next {n}", plus_ns=1_000_000 + n) for n in range(1200)]
    api = api_of([at(-61), *dense, *after, at(-59)], end=end)

    entries = await read(api, -100, 0, newest_first=newest_first)

    assert multiset(entries) == world(api.lines)
    assert gaps_of(entries) == []


@pytest.mark.parametrize(
    ("server", "known"),
    [({}, 1500), ({"mirrored": False}, 1000), ({"mirrored": False, "shuffles": True}, 1000)],
)
async def test_more_lines_of_one_stamp_than_a_page_are_told_with_a_gap(server, known):
    """A server may answer the same 1,000 lines from either end; none shows that there are no others."""
    api = api_of([at(-60, f"line {n}") for n in range(1500)], **server)

    entries = await read(api, -100, 0)

    assert sum(multiset(entries).values()) == known
    assert [(gap.start_ns, gap.end_ns) for gap in gaps_of(entries)] == [
        (api.lines[0].stamp_ns, api.lines[0].stamp_ns + 1)
    ]


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("count", [999, 1000, 1001, 1998])
async def test_up_to_two_pages_of_one_millisecond_are_no_gap(count, mirrored, newest_first):
    dense = [at(-60, f"line {n}", plus_ns=n * 400) for n in range(count)]
    api = api_of([at(-61), *dense, at(-59)], mirrored=mirrored)

    entries = await read(api, -100, 0, newest_first=newest_first)

    assert multiset(entries) == world(api.lines)
    assert gaps_of(entries) == []


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("hidden", [0, 1, 9])
async def test_a_single_shared_line_does_not_prove_that_nothing_is_hidden(hidden, mirrored):
    """The oldest page may end with the same line that the newest begins with: perhaps others follow it."""
    before = [at(-60, f"before {n}", plus_ns=n) for n in range(999)]
    tied = [at(-60, "tied", plus_ns=5000)] * (1 + hidden)
    after = [at(-60, f"after {n}", plus_ns=6000 + n) for n in range(999)]
    api = api_of([*before, *tied, *after], mirrored=mirrored)

    entries = await read(api, -100, 0)

    assert multiset(entries) == world([*before, tied[0], *after])
    assert [(gap.start_ns, gap.end_ns) for gap in gaps_of(entries)] == [
        (tied[0].stamp_ns, tied[0].stamp_ns + 1)
    ]


async def test_two_whole_pages_that_only_touch_do_not_prove_that_nothing_is_between():
    """The first page's last stamp may have been cut: no more than the gap says can be known."""
    lines = [at(-60, f"line {n}", plus_ns=n) for n in range(2000)]
    api = api_of(lines)

    entries = await read(api, -100, 0)

    assert multiset(entries) == world(lines)
    assert [(gap.start_ns, gap.end_ns) for gap in gaps_of(entries)] == [
        (lines[999].stamp_ns, lines[1000].stamp_ns)
    ]


async def test_too_many_lines_in_a_millisecond_leave_a_gap_where_they_are_missing():
    dense = [at(-60, f"line {n}", plus_ns=n * 100) for n in range(3000)]
    api = api_of([at(-61), *dense, at(-59)])

    entries = await read(api, -100, 0)

    assert multiset(entries) == world([at(-61), *dense[:1000], *dense[2000:], at(-59)])
    [gap] = gaps_of(entries)
    assert (gap.start_ns, gap.end_ns) == (dense[999].stamp_ns, dense[2000].stamp_ns)
    position = entries.index(gap)
    assert entries[position - 1].message == "line 999"
    assert entries[position + 1].message == "line 2000"


async def test_following_announces_such_a_gap_once():
    dense = [at(20, f"line {n}", plus_ns=n * 100) for n in range(3000)]
    api = api_of([at(1), *dense, at(25), at(90)], finishes_s=100)

    followed = await follow(api)

    assert len(gaps_of(followed.entries)) == 1
    assert multiset(followed.entries) == world([at(1), *dense[:1000], *dense[2000:], at(25), at(90)])


async def test_a_burst_between_two_polls_is_read_wholly():
    burst = [at(30 + n / 12_000, f"line {n}") for n in range(12_000)]
    api = api_of([at(1), *burst, at(40)], finishes_s=60, latency_s=0.005)

    followed = await follow(api)

    assert multiset(followed.entries) == world(api.lines)
    assert not any(entry.late for entry in followed.entries)


# Time


async def test_a_flood_keeps_neither_the_job_nor_late_lines_from_being_seen():
    """Faster than it can be read: 1,500 lines a second, a page takes 0.8 s."""
    flood = [at(n / 1500, f"line {n}") for n in range(1500 * 25)]
    late = [at(second, f"late {second}", delay_s=50.0) for second in range(0, 20, 3)]
    api = api_of([at(-1), *flood, *late], finishes_s=300, latency_s=0.8)
    fetch_job = api.fetch_job
    looked_s = []

    async def fetch_job_noting_when():
        looked_s.append(api.clock.passed_s)
        return await fetch_job()

    api.fetch_job = fetch_job_noting_when
    followed = await follow(api)

    assert multiset(followed.entries) == world(api.lines)
    assert max(later - earlier for earlier, later in pairwise(looked_s[:-1])) < 10


async def test_memory_is_bounded_even_in_a_flood(monkeypatch):
    flood = [at(n / 1000, f"line {n}") for n in range(1000 * 100)]
    api = api_of(flood, finishes_s=100)
    monkeypatch.setattr(following, "GENEROUS_LINES", 1000)
    monkeypatch.setattr(following, "DEDUPLICATED_LINES", 2000)
    monkeypatch.setattr(following, "LATENESS_MS", 1000)
    follower = Follower(api.fetch, api.fetch_job, clock=api.clock, start_ms=BEGIN_MS)
    count = 0
    async for batch in follower.stream():
        count += len(batch.entries) if isinstance(batch, LogBatch) else 0
        assert follower.tracked_line_count < 5000

    assert count == len(flood)


@pytest.mark.parametrize(("apart_s", "requests_per_s"), [(HOUR_S, 0.62), (7, 0.75)])
async def test_a_quiet_job_costs_less_than_a_request_a_second(apart_s, requests_per_s):
    api = api_of([at(second) for second in range(-5, HOUR_S, apart_s)], finishes_s=HOUR_S)

    await follow(api)

    assert (api.pages + api.looks) / HOUR_S < requests_per_s


@pytest.mark.parametrize("rate", [0.2, 5, 60])
async def test_a_line_is_seen_within_three_seconds_of_its_arrival(rate):
    dice = random.Random(1)
    lines = [at(n / rate, f"line {n}") for n in range(int(40 * rate))]
    lines += [at(second, f"late {second}", delay_s=dice.uniform(5, 55)) for second in range(-50, 40, 10)]
    api = api_of(lines, finishes_s=100)

    followed = await follow(api)

    assert multiset(followed.entries) == world(lines)
    arrived_s = {line.message: line.arrives_ns / 1e9 - BEGIN_S for line in lines}
    waits_s = [
        seen_s - arrived_s[entry.message]
        for entry, seen_s in zip(followed.entries, followed.seen_s, strict=True)
        if arrived_s[entry.message] > 5 and (rate < 50 or not entry.message.startswith("late"))
    ]
    assert max(waits_s) < 3.0


def waits_of(followed, prefix, *, after_s=10.0):
    """How long the lines of that prefix were there before they were seen, in seconds."""
    return [
        seen_s - float(entry.message.split()[-1])
        for entry, seen_s in zip(followed.entries, followed.seen_s, strict=True)
        if entry.message.startswith(prefix) and float(entry.message.split()[-1]) > after_s
    ]


async def test_late_lines_of_a_busy_log_need_not_wait_for_the_deepest_read():
    lines = [at(n / 60, f"line {n / 60}") for n in range(-60 * 290, 60 * 60)]
    lines += [at(second - 40, f"late {second}", delay_s=40.0) for second in range(0, 60, 7)]
    api = api_of(lines, finishes_s=90)

    followed = await follow(api)

    assert multiset(followed.entries) == world(lines)
    assert max(waits_of(followed, "late")) < 5.0


async def test_a_busy_log_in_which_nothing_is_late_is_read_again_more_seldom_until_something_is():
    busy = [at(n / 100, f"line {n / 100}") for n in range(-100 * 100, 100 * 110)]
    late = [at(second - 40, f"late {second}", delay_s=40.0) for second in (60, 72, 84)]
    api = api_of([*busy, *late], finishes_s=110)
    fetch, asked_s = api.fetch, []

    async def fetch_noting_when(**window):
        asked_s.append(api.clock.passed_s)
        return await fetch(**window)

    api.fetch = fetch_noting_when
    followed = await follow(api)

    assert multiset(followed.entries) == world(api.lines)
    calm, hurried = (sum(begin <= one < begin + 40 for one in asked_s) for begin in (15, 70))
    assert calm < 0.75 * hurried
    first_s, *other_s = waits_of(followed, "late")
    assert first_s < 10.0
    assert max(other_s) < 6.0
    assert max(waits_of(followed, "line")) < 1.5


async def test_re_reading_older_lines_does_not_keep_new_ones_waiting():
    lines = [at(n / 100, f"line {n / 100}") for n in range(-100 * 200, 100 * 60)]
    api = api_of(lines, finishes_s=60, latency_s=0.4)

    followed = await follow(api)

    assert multiset(followed.entries) == world(lines)
    assert max(waits_of(followed, "line", after_s=15.0)) < 4.0


async def test_the_live_edge_is_reached_though_lines_keep_coming():
    lines = [at(n / 200, f"line {n}") for n in range(-2000, 200 * 20)]
    api = api_of(lines, finishes_s=20)
    seen_s = []

    stream = stream_of(api)
    async for batch in stream:
        if batch.caught_up:
            seen_s.append(api.clock.passed_s)
            break
    entries = await read(api, -HOUR_S, HOUR_S)

    assert seen_s[0] < 1.0
    assert api.clock.passed_s < 2.0
    assert len(entries) >= 2000


async def test_a_server_may_cut_its_pages_without_a_word():
    """By a limit of its own, or for their size; lines keep coming, too."""
    lines = [at(-500 + n / 10, f"line {n}") for n in range(3000)]
    big = [at(-100 + n / 10, "x" * 200_000 + str(n)) for n in range(20)]
    for cut in (100, 64, 25, 10, 3):
        api = api_of([*lines, *big], cut=cut if cut > 3 else None, cut_characters=400_000)

        assert multiset(await read(api, -600, 0)) == world(api.lines)
        assert multiset(await read(api, -600, 0, newest_first=True)) == world(api.lines)


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("per_ms", [1, 40, 100])
async def test_a_cut_page_may_begin_with_lines_of_the_next_millisecond(per_ms, end, newest_first):
    """They fill it from a server that counts the end bound in, and so what was asked for seems little."""
    lines = [at(-60, f"line {n}", plus_ns=n * (1_000_000 // per_ms)) for n in range(1000)]
    api = api_of(lines, end=end, cut=100)

    entries = await read(api, -100, 0, newest_first=newest_first)

    assert multiset(entries) == world(lines)
    assert gaps_of(entries) == []


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("cut", [250, 100])
async def test_a_page_of_one_millisecond_that_a_server_cut_hides_nothing(cut, newest_first):
    """What is left of it is a gap, and what comes before and after it is read all the same."""
    dense = [at(-60, f"line {n}", plus_ns=n) for n in range(3 * cut)]
    around = [at(-61), at(-59), at(-40)]
    api = api_of([*around, *dense], cut=cut)

    entries = await read(api, -100, 0, newest_first=newest_first)

    assert multiset(entries) == world([*around, *dense[:cut], *dense[-cut:]])
    assert [(gap.start_ns, gap.end_ns) for gap in gaps_of(entries)] == [
        (dense[cut - 1].stamp_ns, dense[-cut].stamp_ns)
    ]


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("newest_first", [False, True])
async def test_a_whole_page_of_one_stamp_is_no_gap(newest_first, mirrored):
    api = api_of([at(-61), *[at(-60, f"line {n % 90}") for n in range(300)], at(-59)], mirrored=mirrored)

    entries = await read(api, -100, 0, newest_first=newest_first)

    assert multiset(entries) == world(api.lines)
    assert gaps_of(entries) == []


@pytest.mark.parametrize("newest_first", [False, True])
async def test_a_job_may_last_longer_than_a_window(newest_first):
    lines = [at(-30 * DAY_S + n * 1.7 * DAY_S, f"line {n}") for n in range(17)]
    api = api_of(lines)

    entries = await read(api, -31 * DAY_S, 600, newest_first=newest_first)

    assert multiset(entries) == world(lines)


@pytest.mark.parametrize("skew_s", [-120.0, 120.0])
@pytest.mark.parametrize("end", ENDS)
async def test_the_servers_clock_may_be_off(skew_s, end):
    lines = [at(second, f"line {second}") for second in range(-100, 100, 7)]
    api = api_of(lines, skew_s=skew_s, end=end, finishes_s=110)

    followed = await follow(api)

    assert multiset(followed.entries) == world(lines)
    assert not any(entry.late for entry in followed.entries)


async def test_a_long_history_is_read_once():
    lines = [at(-DAY_S + n, f"line {n}") for n in range(60_000)]
    api = api_of(lines, finishes_s=20)

    followed = await follow(api, from_s=-2 * DAY_S, drain_s=0.0)

    assert multiset(followed.entries) == world(lines)
    assert api.pages < 100
    parts = [batch.read_part for batch in followed.batches if batch.read_part is not None]
    assert parts == sorted(parts)
    assert (parts[0] < 0.6, parts[-1] > 0.95) == (True, True)


async def test_a_long_history_is_read_in_parts_at_once():
    """Each page takes a turn of the event loop: the fewer turns, the more of them were under way at once."""
    lines = [at(-DAY_S + n, f"line {n}") for n in range(60_000)]
    most = [0, 0]

    for position, in_flight in enumerate((1, 3)):
        api = api_of(lines)
        under_way = set()

        async def fetch(api=api, under_way=under_way, position=position, **window):
            under_way.add(window["start_ms"])
            most[position] = max(most[position], len(under_way))
            await asyncio.sleep(0)
            page = await ModelApi.fetch(api, **window)
            under_way.discard(window["start_ms"])
            return page

        entries = []
        stream = read_logs(
            fetch, start_ms=BEGIN_MS - 2 * DAY_S * 1000, end_ms=BEGIN_MS, clock=api.clock, in_flight=in_flight
        )
        async for batch in stream:
            entries += batch.entries
        assert multiset(entries) == world(lines)

    assert most == [1, 3]


async def test_what_is_read_ahead_is_bounded():
    lines = [at(-DAY_S + n / 10, f"line {n}") for n in range(200_000)]
    api = api_of(lines)
    stream = read_logs(
        api.fetch, start_ms=BEGIN_MS - 2 * DAY_S * 1000, end_ms=BEGIN_MS, clock=api.clock, in_flight=3
    )

    async with aclosing(stream):
        for _ in range(10):
            await anext(stream)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert api.pages < 150


async def test_an_error_in_a_part_read_ahead_reaches_the_caller_in_its_turn():
    lines = [at(-DAY_S + n, f"line {n}") for n in range(60_000)]
    api = api_of(lines)

    async def fetch(**window):
        if window["start_ms"] > BEGIN_MS - 50_000_000:
            raise NotFound("gone", status=404)
        return await api.fetch(**window)

    entries = []
    with pytest.raises(NotFound):
        async for batch in read_logs(
            fetch, start_ms=BEGIN_MS - 2 * DAY_S * 1000, end_ms=BEGIN_MS, clock=api.clock, in_flight=3
        ):
            entries += batch.entries

    assert len(entries) > 20_000
    assert multiset(entries) == world(lines[: len(entries)])


# Late lines and the end


async def test_late_lines_of_a_busy_log_are_found_and_marked():
    steady = [at(n / 20, f"line {n}") for n in range(20 * 100)]
    late = [at(second, f"late {second}", delay_s=59.0) for second in range(0, 90, 10)]
    api = api_of([*steady, *late], finishes_s=200)

    followed = await follow(api)

    assert multiset(followed.entries) == world(api.lines)
    assert {entry.message for entry in followed.entries if entry.late} == {line.message for line in late}


async def test_the_end_of_the_job_is_told_before_the_wait_for_stragglers():
    api = api_of([at(10), at(55, "straggler", delay_s=40.0)], finishes_s=60)
    told_s = []

    followed = stream_of(api, from_s=0)
    async for item in followed:
        if isinstance(item, LogBatch) and item.finished_job is not None:
            told_s.append(api.clock.passed_s)
            assert item.entries == ()
            assert item.finished_job.is_finished

    assert [60 < each_s < 70 for each_s in told_s] == [True]
    assert api.clock.passed_s < 60 + 75


@pytest.mark.parametrize("straggler_s", [0.0, 30.0])
async def test_a_server_that_says_when_the_log_is_complete_is_not_waited_for(straggler_s):
    last = at(9.5, "last words", delay_s=straggler_s)
    api = api_of([at(1), last], finishes_s=10.0, tells_complete=True)

    followed = await follow(api)

    assert multiset(followed.entries) == world(api.lines)
    complete_s = 10.0 + straggler_s
    assert complete_s <= followed.end_s < complete_s + 10
    assert any(batch.finished_job for batch in followed.batches) == bool(straggler_s)


async def test_a_busy_log_that_is_complete_is_read_wholly_before_the_end():
    """Its late lines are read again before that: the page that says so may have been one of the edge."""
    lines = [at(n / 400, f"line {n}", delay_s=(n % 7) * 1.2) for n in range(16_000)]
    api = api_of(lines, finishes_s=40.0, tells_complete=True, seed=3, fault_rate=0.2)

    followed = await follow(api)

    assert multiset(followed.entries) == world(lines)
    assert followed.end is not None
    assert followed.end_s < 40 + 30


async def test_a_log_complete_long_ago_ends_at_once():
    api = api_of([at(-60)], finishes_s=-30.0, tells_complete=True)

    followed = await follow(api)

    assert followed.end_s < 1


async def test_how_long_stragglers_are_waited_for_can_be_said():
    api = api_of([at(10), at(59, "straggler", delay_s=40.0)], finishes_s=60)

    followed = await follow(api, drain_s=3.0)

    assert [entry.message for entry in followed.entries] == ["line"]
    assert followed.end_s < 60 + 12


async def test_a_slow_last_reading_misses_no_straggler_behind_its_back(monkeypatch):
    """Each reading of it all takes 18 s, so one that is over after the wait began well before its end."""
    lines = [at(-0.5 + n / 1_000, f"burst {n}") for n in range(900)]
    lines.append(at(-0.6, "straggler", delay_s=60.0))
    api = api_of(lines, finishes_s=0.5, latency_s=2.0)

    monkeypatch.setattr(pages, "MAX_PAGE_LINES", 100)
    followed = await follow(api, drain_s=65.0)

    assert multiset(followed.entries) == world(lines)


async def test_stragglers_after_the_end_are_waited_for():
    api = api_of(
        [at(10), at(11, "straggler", delay_s=12.0), at(14, "and another", delay_s=18.0)], finishes_s=15
    )

    followed = await follow(api)

    assert multiset(followed.entries) == world(api.lines)
    assert followed.end.job.current_status == "TRAINING_JOB_COMPLETED"


async def test_a_job_long_over_is_read_without_waiting():
    api = api_of([at(-2 * HOUR_S + n, f"line {n}") for n in range(2500)], finishes_s=-HOUR_S)

    followed = await follow(api, from_s=-3 * HOUR_S)

    assert multiset(followed.entries) == world(api.lines)
    assert followed.end is not None
    assert followed.end_s < 1.0


async def test_a_job_without_any_line_ends_all_the_same():
    api = api_of([], finishes_s=30)

    followed = await follow(api)

    assert followed.entries == []
    assert followed.end is not None
    assert followed.batches[0].caught_up


async def test_history_and_follow_meet_exactly():
    lines = [at(n / 500, f"line {n}", plus_ns=n % 3) for n in range(-2000, 2000)]
    api = api_of(lines, finishes_s=20)

    before = await read(api, -100, -1.5)
    after = await follow(api, from_s=-1.5)

    assert multiset(before) + multiset(after.entries) == world(lines)


# Faults


async def test_a_page_that_cannot_be_had_is_a_gap_and_no_more():
    lines = [at(-1000 + n, f"line {n}") for n in range(900)]
    poison_ns = lines[400].stamp_ns
    api = api_of(lines, poison=(poison_ns, poison_ns + 1))

    for newest_first in (False, True):
        entries = await read(api, -1100, 0, newest_first=newest_first)

        assert multiset(entries) == world([*lines[:400], *lines[401:]])
        [gap] = gaps_of(entries)
        assert gap.start_ns <= poison_ns < gap.end_ns
        assert gap.end_ns - gap.start_ns == 1_000_000
        assert "cannot be rendered" in gap.reason


async def test_a_long_stretch_that_cannot_be_had_costs_few_requests():
    lines = [at(-1000 + n, f"line {n}") for n in range(900)]
    api = api_of(lines, poison=(lines[300].stamp_ns, lines[400].stamp_ns))

    entries = await read(api, -1100, 0)

    assert set(world(lines[:300])) <= set(multiset(entries))
    assert len(gaps_of(entries)) >= 1
    missing = world(lines) - multiset(entries)
    assert 100 <= sum(missing.values()) <= 300
    stamps = [stamp for stamp, *_ in missing]
    assert all(any(gap.start_ns <= stamp < gap.end_ns for gap in gaps_of(entries)) for stamp in stamps)
    assert api.pages < 500


async def test_following_goes_on_past_a_page_that_cannot_be_had():
    lines = [at(second, f"line {second}") for second in range(0, 300, 2)]
    poison_ns = lines[20].stamp_ns
    api = api_of(lines, finishes_s=310, poison=(poison_ns, poison_ns + 1))

    followed = await follow(api)

    assert multiset(followed.entries) == world([*lines[:20], *lines[21:]])
    assert len(gaps_of(followed.entries)) == 1


async def test_an_outage_loses_nothing_and_makes_no_gap():
    lines = [at(second, f"line {second}") for second in range(0, 900, 3)]
    api = api_of(lines, finishes_s=910)
    fetch, fetch_job = api.fetch, api.fetch_job

    async def fetch_with_outage(**window):
        if 100 < api.clock.passed_s < 700:
            await api.clock.sleep(0.1)
            raise random.Random(api.pages).choice(
                [ServerFault("down", status=502), Unreachable("refused"), InvalidAnswer("a proxy's page")]
            )
        return await fetch(**window)

    async def fetch_job_with_outage():
        if 100 < api.clock.passed_s < 600:
            raise InvalidAnswer("a page that announces repairs")
        return await fetch_job()

    api.fetch, api.fetch_job = fetch_with_outage, fetch_job_with_outage
    followed = await follow(api)

    assert multiset(followed.entries) == world(lines)
    assert gaps_of(followed.entries) == []


async def test_a_job_that_cannot_be_read_for_good_ends_the_stream():
    api = api_of([at(1)], finishes_s=10_000)
    fetch_job = api.fetch_job

    async def fetch_job_once():
        if api.clock.passed_s > 5:
            raise InvalidAnswer("no job")
        return await fetch_job()

    api.fetch_job = fetch_job_once
    with pytest.raises(InvalidAnswer):
        await follow(api)
    assert 600 < api.clock.passed_s < 700


@pytest.mark.parametrize(
    "error", [NotFound("gone", status=404), Unauthorized("who?", status=401), BadRequest("no", status=400)]
)
async def test_errors_that_will_not_pass_reach_the_caller(error):
    api = api_of([at(1)], finishes_s=1000)

    async def fetch(**_):
        raise error

    api.fetch = fetch
    with pytest.raises(type(error)):
        await follow(api)
    with pytest.raises(type(error)):
        await read(api, -10, 0)


async def test_a_job_deleted_meanwhile_ends_with_not_found():
    api = api_of([at(1)], finishes_s=1000)
    fetch = api.fetch

    async def fetch_until_deleted(**window):
        return await (gone() if api.clock.passed_s > 60 else fetch(**window))

    api.fetch = fetch_until_deleted
    with pytest.raises(NotFound):
        await follow(api)


# Bounds that a server may refuse


async def test_a_server_that_refuses_windows_in_its_future_is_a_clear_error():
    api = api_of([at(1)], refuses_future=True)

    with pytest.raises(BadRequest, match="no such window"):
        await follow(api)
    with pytest.raises(BadRequest, match="no such window"):
        await read(api, -10, DAY_S)


async def test_a_server_that_refuses_everything_is_not_taken_for_an_empty_one():
    async def fetch(**_):
        raise BadRequest("no", status=400)

    api = api_of([])
    api.fetch = fetch
    with pytest.raises(BadRequest):
        await read(api, -10, DAY_S)


# Gaps, tried again


async def test_a_gap_filled_later_completes_the_log():
    lines = [at(-1000 + n, f"line {n}") for n in range(900)]
    api = api_of(lines, poison=(lines[400].stamp_ns, lines[410].stamp_ns))
    before = await read(api, -1100, 0)
    gaps = gaps_of(before)
    api.poison = None

    filled = [entry for gap in gaps for entry in await fill_gap(api.fetch, gap, clock=api.clock)]

    assert gaps
    assert gaps_of(filled) == []
    assert multiset(before) + multiset(filled) == world(lines)


@pytest.mark.parametrize("count", [2100, 3000])
@pytest.mark.parametrize("apart_ns", [0, 50, 300])
async def test_filling_a_gap_in_vain_repeats_no_line(count, apart_ns):
    dense = [at(-60, f"line {n}", plus_ns=n * apart_ns) for n in range(count)]
    api = api_of([at(-61), *dense, at(-59)])
    [gap] = gaps_of(await read(api, -100, 0))

    again = await fill_gap(api.fetch, gap, clock=api.clock)

    assert list(again) == [gap]
    assert again[0].held == gap.held


# Odd answers


async def test_a_page_cut_short_loses_nothing():
    lines = [at(-500 + n / 10, f"line {n}") for n in range(3000)]
    api = api_of(lines)
    fetch = api.fetch

    async def cut(**window):
        return {"logs": (await fetch(**window))["logs"][:300]}

    api.fetch = cut
    for newest_first in (False, True):
        assert multiset(await read(api, -600, 0, newest_first=newest_first)) == world(lines)


@pytest.mark.parametrize("stamp", ["yesterday", "", "2025-10-09T08:53:20Z", "²", "9" * 5000, None])
@pytest.mark.parametrize("newest_first", [False, True])
async def test_a_stamp_that_is_no_number_leaves_a_visible_gap(stamp, newest_first):
    """The API promises nanoseconds; a line without any cannot be placed."""
    lines = [at(-1000 + n, f"line {n}") for n in range(900)]
    api = api_of(lines)
    fetch = api.fetch

    async def fetch_with_odd_stamp(**window):
        page = await fetch(**window)
        for record in page["logs"]:
            if record["message"] == "line 400":
                record["timestamp"] = stamp
                if stamp is None:
                    del record["timestamp"]
        return page

    api.fetch = fetch_with_odd_stamp
    entries = await read(api, -1100, 0, newest_first=newest_first)

    assert multiset(entries) == world([*lines[:400], *lines[401:]])
    [gap] = gaps_of(entries)
    assert gap.start_ns <= lines[400].stamp_ns < gap.end_ns
    assert "no valid timestamp" in gap.reason


async def test_polling_a_log_gives_what_is_new_once():
    lines = [at(second, f"line {second}") for second in range(-200, 200)]
    lines += [at(second, f"late {second}", delay_s=50.0) for second in range(-150, 100, 10)]
    lines += [at(20.0, f"at once {n}", plus_ns=n * 500) for n in range(1800)]
    api = api_of([*lines, at(5 * HOUR_S, "five hours ahead", delay_s=-5 * HOUR_S)], fault_rate=0.3)
    known = [LogLine(line.stamp_ns, line.message, line.replica, line.level) for line in lines[:100]]
    log = LogIncrements(api.fetch, clock=api.clock, start_ms=BEGIN_MS - 200_000, known=known)
    entries = []

    while api.clock.passed_s < 300:
        async for new in log.poll():
            entries += new
        await api.clock.sleep(30)

    assert multiset(entries) == world(api.lines) - world(lines[:100])


@pytest.mark.parametrize("newest_first", [False, True])
async def test_pages_of_other_times_are_a_gap(newest_first):
    """A server that ignores the bounds of the time range never says what is inside."""
    api = api_of([])

    async def fetch(**_):
        return {"logs": [record_of(at(-DAY_S + n, f"line {n}")) for n in range(1000)]}

    api.fetch = fetch
    entries = await read(api, -10, 0, newest_first=newest_first)

    assert [(gap.start_ns, gap.end_ns) for gap in entries] == [
        ((BEGIN_MS - 10_000) * 1_000_000, BEGIN_MS * 1_000_000)
    ]


def test_entries_can_be_told_apart():
    line = LogLine(1, "text", None, None)
    assert line == LogLine(1, "text", None, None, None, False)
    assert line != LogGap(1, 2, "lost")
