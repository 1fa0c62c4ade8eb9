"""Every stream × every fault, over a real socket and on a clock that only sleeping moves."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from fault_table import ATTEMPTS, SILENCES_S

from api_client import LogEnd, LogGap, LogLine, RetryPolicy, TrainingClient, errors
from api_client.deployment import follow
from api_client.streams.logs import gap_with_lines
from support.fault_layer import parse_faults
from support.faulty import FaultyServer
from support.log_server import HOUR_S, NS_PER_S, FakeLog, FastClock, JobServer, ServedLine
from support.remotes import remote_of
from support.resource_calls import parts_of

IDS = ("proj1", "job1")
HANGS_S = 100.0
"""Whatever is not over by then waits for what does not come; it takes a second."""
LASTING_S = 24
LATE_S = 8.0
BACK_WITHIN_S = 5.0

PASSING = (
    "408", "429", "429(retry-after=2)", "429(retry-date=3)", "500", "502(html)", "503", "504", "html",
    "malformed", "truncated", "empty", "reset@before", "reset@handled", "reset@during", "reset@after",
    "cut@before", "cut@during", "stall@handled", "stall@during", "stall=2ms", "slow=4ms", "restart=20s",
    "drift", "stall=3ms", "redirect",
)  # fmt: skip
PAIRS = tuple(zip(PASSING[::2], PASSING[1::2], strict=True))
REFUSED = {
    "401": errors.Unauthorized,
    "403": errors.Unauthorized,
    "404": errors.NotFound,
    "redirect": errors.RedirectRefused,
}
MOST_SKEW_S = 90
LASTING_ODDITIES = ("drift", "nulls", f"skew={MOST_SKEW_S}s", f"skew=-{MOST_SKEW_S}s", "statuses")
"""Ways of a server that stay: the whole stream is under them."""


def lines_of_a_run(begin_ns: int) -> list[ServedLine]:
    """1,010 in one millisecond an hour ago, then a line each second: some equal, some late, to the end."""

    def at(seconds: float, message: str, late_s: float = 0.0, plus_ns: int = 0) -> ServedLine:
        stamp_ns = begin_ns + int(seconds * NS_PER_S) + plus_ns
        return ServedLine(stamp_ns, message, arrives_ns=stamp_ns + int(late_s * NS_PER_S))

    lines = [at(-HOUR_S, f"at once {number}", plus_ns=number * 700) for number in range(1_010)]
    lines += [at(-1800, "the same") for _ in range(5)]
    for second in range(-60, LASTING_S):
        lines.append(at(second, f"step {second}", 7.0 if second % 9 == 0 else 0.0))
        lines += [at(second, "equal") for _ in range(second % 3)]
    return lines


class Follower:
    """Read a stream to its end: ``seen`` is what it gave, ``came_s`` when it gave something."""

    def __init__(self, client: TrainingClient, job: JobServer, clock: FastClock) -> None:
        self.client, self.log, self.clock = client, job.log, clock
        self.sample_times = {*job.sample_times()}
        self.seen: Counter[Any] = Counter()
        self.gaps: list[LogGap] = []
        self.came_s: list[float] = []
        self.end: Any = None

    def take(self, entries: Any) -> None:
        if entries:
            self.came_s.append(self.clock.passed_s)
        for entry in entries:
            if isinstance(entry, LogLine):
                self.seen[entry.timestamp_ns, entry.message, entry.replica] += 1
            else:
                self.gaps.append(entry)

    async def follow_log(self) -> None:
        async for item in self.client.logs.follow(*IDS, drain_s=LATE_S):
            if isinstance(item, LogEnd):
                self.end = item.job
            else:
                self.take(item.entries)

    async def read_log(self) -> None:
        self.clock.passed_s += 60.0
        start = datetime.fromisoformat(str(self.log.job()["created_at"]))
        async for batch in self.client.logs.history(*IDS, start=start):
            self.take(batch.entries)

    async def fill_a_gap(self) -> None:
        self.clock.passed_s += 60.0
        stamps = [stamp for stamp, _, _ in self.log.expected()]
        wide_ns = 2 * MOST_SKEW_S * NS_PER_S
        gap = gap_with_lines(min(stamps) - wide_ns, max(stamps) + wide_ns, "lost", [])
        self.take(await self.client.logs.fill(*IDS, gap))

    async def follow_deployment(self) -> None:
        async for update in follow(self.client, "model1", "dep1"):
            self.take(update.lines)
            self.end = update

    async def follow_metrics(self) -> None:
        async for metrics in self.client.metrics.follow(*IDS):
            self.seen.update(sample.timestamp for sample in metrics.gpu_utilization.get("0", []))
            self.came_s.append(self.clock.passed_s)

    async def watch(self) -> None:
        async for job in self.client.jobs.watch(*IDS):
            self.end = job
            self.came_s.append(self.clock.passed_s)

    def is_whole(self) -> bool:
        """True if every line came exactly once, without gaps."""
        return self.seen == self.log.expected() and not self.gaps

    def is_whole_by_its_end(self) -> bool:
        """True if no line came twice and none is missing, but late ones: a deployment does not wait."""
        lines = self.log.lines
        by_then = {(each.stamp_ns, each.message) for each in lines if each.arrives_ns <= self.log.finishes_ns}
        seen = Counter((stamp, message) for stamp, message, _ in self.seen.elements())
        expected = Counter((each.stamp_ns, each.message) for each in lines)
        return self.end.is_serving and not self.gaps and seen <= expected and by_then <= set(seen)


STREAMS: dict[str, tuple[Callable[[Follower], Awaitable[object]], Callable[[Follower], bool]]] = {
    "logs.follow": (Follower.follow_log, lambda f: f.is_whole() and f.end.is_finished),
    "logs.history": (Follower.read_log, Follower.is_whole),
    "logs.fill": (Follower.fill_a_gap, Follower.is_whole),
    "metrics.follow": (Follower.follow_metrics, lambda f: set(f.seen) == f.sample_times),
    "jobs.watch": (Follower.watch, lambda f: f.end.is_finished),
    "deployment.follow": (Follower.follow_deployment, Follower.is_whole_by_its_end),
}
"""How each is read, and what must be true of it in the end."""
LIVE = {"logs.follow": 1.0, "metrics.follow": 5.0, "jobs.watch": 5.0, "deployment.follow": 2.0}
"""Streams that last as long as the job, and the seconds between their polls."""


async def run(stream: str, faults: str, faulty: FaultyServer) -> tuple[Follower, errors.RequestError | None]:
    clock = FastClock()
    begin_ns = clock.server_ns()
    lines = lines_of_a_run(begin_ns)
    job = JobServer(FakeLog(lines, clock.server_ns, begin_ns, begin_ns + LASTING_S * NS_PER_S))
    faulty.app, faulty.layer.clock = job.app, clock
    faulty.set_faults(faults)
    async with TrainingClient(
        remote_of(faulty), clock=clock, retry=RetryPolicy(max_attempts=ATTEMPTS)
    ) as client:
        follower = Follower(client, job, clock)
        try:
            async with asyncio.timeout(HANGS_S):
                await STREAMS[stream][0](follower)
        except errors.RequestError as error:
            return follower, error
        return follower, None


def everything(stream: str, follower: Follower) -> set[Any]:
    return follower.sample_times if stream == "metrics.follow" else set(follower.log.expected())


def problem(stream: str, follower: Follower, error: errors.RequestError | None) -> str:
    return f"{stream}: {error!r} {len(follower.seen)} seen, gaps {follower.gaps}"


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
@pytest.mark.proves("docs/library.md", "The client library")
async def test_transient_faults_are_retried(
    pair: tuple[str, str], faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_stalled = any(fault.startswith("stall@") for fault in pair)
    wrong = []
    for stream, (_, is_all) in STREAMS.items():
        # What is read in a few requests meets both at their beginning.
        later = 10 if stream in LIVE else 3
        found = ""
        for silence_s in SILENCES_S if is_stalled else (None,):
            if silence_s is not None:
                monkeypatch.setattr("api_client.http.connection.READ_TIMEOUT_S", silence_s)
            faults = f"{pair[0]};skip=1;times=4|{pair[1]};skip={later};times=4"
            follower, error = await run(stream, faults, faulty)
            is_good = error is None and is_all(follower) and faulty.struck()
            found = "" if is_good else problem(stream, follower, error)
            if is_good:
                break
        wrong += [found] if found else []
    assert wrong == []


@pytest.mark.parametrize("fault", REFUSED)
async def test_lasting_faults_are_raised(fault: str, faulty: FaultyServer) -> None:
    wrong = []
    for stream in STREAMS:
        for skip in (0, 3):
            follower, error = await run(stream, f"{fault};skip={skip}", faulty)
            if type(error) is not REFUSED[fault] or not set(follower.seen) <= everything(stream, follower):
                wrong.append(f"after {skip}: {problem(stream, follower, error)}")
    assert wrong == []


def test_every_stream_is_in_the_matrix(faulty: FaultyServer) -> None:
    found = {
        f"{part}.{name}"
        for part, resource in parts_of(TrainingClient(remote_of(faulty))).items()
        for name, member in inspect.getmembers(type(resource), inspect.isfunction)
        if not name.startswith("_") and member.__annotations__["return"].startswith("Async")
    }
    others = {"checkpoints.files", "objects.open"}  # pages and bytes, which end, are in matrices of their own
    assert found - others | {"logs.fill", "deployment.follow"} == set(STREAMS)


@pytest.mark.parametrize("oddity", LASTING_ODDITIES)
async def test_a_server_that_is_odd_all_the_time(oddity: str, faulty: FaultyServer) -> None:
    wrong = []
    for stream, (_, is_all) in STREAMS.items():
        follower, error = await run(stream, oddity, faulty)
        ahead_s = parse_faults(oddity)[0].fault.seconds or 0.0
        follower.seen = shifted(follower.seen, -ahead_s)
        if oddity == "nulls":
            is_right = not follower.seen and not follower.gaps
        elif oddity == "statuses":
            # An unknown status counts as an end: what had come by then is there.
            is_right = set(follower.seen) <= everything(stream, follower)
        else:
            is_right = is_all(follower)
        if error is not None or not is_right:
            wrong.append(problem(stream, follower, error))
    assert wrong == []


def shifted(seen: Counter[Any], by_s: float) -> Counter[Any]:
    return Counter(
        each + timedelta(seconds=by_s)
        if isinstance(each, datetime)
        else (each[0] + int(by_s * NS_PER_S), *each[1:])
        for each in seen.elements()
    )


@pytest.mark.parametrize("stream", sorted(LIVE))
async def test_back_within_seconds_of_the_server_s_return(stream: str, faulty: FaultyServer) -> None:
    skip = 16 if stream in ("logs.follow", "deployment.follow") else 3  # once the history is read
    follower, error = await run(stream, f"restart=20s;skip={skip};times=1", faulty)
    assert error is None
    assert STREAMS[stream][1](follower)
    silence_s = max(later - earlier for earlier, later in pairwise(follower.came_s))
    assert 20.0 <= silence_s <= LIVE[stream] + 20.0 + BACK_WITHIN_S
