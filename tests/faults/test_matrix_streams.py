"""Every stream × every fault, over a real socket and on a clock that only sleeping moves.

Twice in the life of each stream a fault strikes up to four requests in a row: in the history, and
while the job runs. What may pass is got over, and nothing is lost or told twice; what will not pass is
raised as what it is.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from fault_table import ATTEMPTS
from resource_calls import parts_of
from running_job import DEPLOYMENT, MODEL, RunningJob

from api_client import (
    LogEnd,
    LogGap,
    LogLine,
    NotFound,
    RedirectRefused,
    Remote,
    RequestError,
    RetryPolicy,
    TrainingClient,
    Unauthorized,
)
from api_client.deployment import follow
from api_client.streams.logs import gap_with_lines
from support.fault_layer import parse_faults
from support.faulty import FaultyServer
from support.log_server import NS_PER_S, FastClock
from support.remotes import remote_of

IDS = ("proj1", "job1")
SILENCES_S = (0.02, 0.5, 5.0)
"""Read timeouts to try, shortest first: on a busy machine a short one also ends healthy requests."""
HANGS_S = 100.0
"""Whatever is not over by then waits for what does not come; it takes a second."""
STRAGGLERS_S = 8.0
BACK_WITHIN_S = 5.0

PASSING = (
    "408", "429", "429(retry-after=2)", "429(retry-date=3)", "500", "502(html)", "503", "504", "html",
    "malformed", "truncated", "empty", "reset@before", "reset@handled", "reset@during", "reset@after",
    "cut@before", "cut@during", "stall@handled", "stall@during", "stall=2ms", "slow=4ms", "restart=20s",
    "drift", "stall=3ms", "redirect",
)  # fmt: skip
REFUSED = {"401": Unauthorized, "403": Unauthorized, "404": NotFound, "redirect": RedirectRefused}
MOST_SKEW_S = 90
LASTING_ODDITIES = ("drift", "nulls", f"skew={MOST_SKEW_S}s", f"skew=-{MOST_SKEW_S}s", "statuses")
"""Ways of a server that stay: the whole stream is under them."""


class Follower:
    """A stream read to its end: what it gave, and whether that is all."""

    def __init__(self, client: TrainingClient, job: RunningJob) -> None:
        self.client = client
        self.job = job
        self.seen: Counter[Any] = Counter()
        self.gaps: list[LogGap] = []
        self.came_s: list[float] = []
        self.end: Any = None

    def take(self, entries: Any) -> None:
        if entries:
            self.came_s.append(self.job.clock.passed_s)
        for entry in entries:
            if isinstance(entry, LogLine):
                self.seen[entry.timestamp_ns, entry.message, entry.replica] += 1
            else:
                self.gaps.append(entry)

    @property
    def is_whole(self) -> bool:
        """Whether every line came exactly once, and no gap with them."""
        return self.seen == self.job.log.expected() and not self.gaps

    async def follow_log(self) -> None:
        async for item in self.client.logs.follow(*IDS, drain_s=STRAGGLERS_S):
            if isinstance(item, LogEnd):
                self.end = item.job
            else:
                self.take(item.entries)

    async def read_log(self) -> None:
        self.job.clock.passed_s += 60.0
        start = datetime.fromisoformat(self.job.log.job()["created_at"])
        async for batch in self.client.logs.history(*IDS, start=start):
            self.take(batch.entries)

    async def fill_a_gap(self) -> None:
        self.job.clock.passed_s += 60.0
        stamps = [stamp for stamp, _, _ in self.job.log.expected()]
        wide_ns = 2 * MOST_SKEW_S * NS_PER_S
        gap = gap_with_lines(min(stamps) - wide_ns, max(stamps) + wide_ns, "lost", [])
        self.take(await self.client.logs.fill(*IDS, gap))

    async def follow_deployment(self) -> None:
        async for update in follow(self.client, MODEL, DEPLOYMENT, clock=self.job.clock):
            self.take(update.lines)
            self.end = update

    async def follow_metrics(self) -> None:
        async for metrics in self.client.metrics.follow(*IDS):
            self.seen.update(sample.timestamp for sample in metrics.gpu_utilization.get("0", []))
            self.came_s.append(self.job.clock.passed_s)

    async def watch(self) -> None:
        async for job in self.client.jobs.watch(*IDS):
            self.end = job
            self.came_s.append(self.job.clock.passed_s)


def all_lines_by_then(follower: Follower) -> bool:
    """A deployment's last update does not wait for stragglers."""
    lines = follower.job.log.lines
    by_then = {(each.stamp_ns, each.message) for each in lines if each.arrives_ns <= follower.job.end_ns}
    seen = Counter((stamp, message) for stamp, message, _ in follower.seen.elements())
    expected = Counter((each.stamp_ns, each.message) for each in lines)
    return not follower.gaps and seen <= expected and by_then <= set(seen)


STREAMS: dict[str, tuple[Callable[[Follower], Awaitable[None]], Callable[[Follower], bool]]] = {
    "logs.follow": (Follower.follow_log, lambda f: f.is_whole and f.end.is_finished),
    "logs.history": (Follower.read_log, lambda f: f.is_whole),
    "logs.fill": (Follower.fill_a_gap, lambda f: f.is_whole),
    "metrics.follow": (Follower.follow_metrics, lambda f: set(f.seen) == f.job.sample_times),
    "jobs.watch": (Follower.watch, lambda f: f.end.is_finished),
    "deployment.follow": (
        Follower.follow_deployment,
        lambda f: all_lines_by_then(f) and f.end.is_serving,
    ),
}


LIVE = {"logs.follow": 1.0, "metrics.follow": 5.0, "jobs.watch": 5.0, "deployment.follow": 2.0}
"""Streams that go on while the job does, and the seconds between their looks at it."""


@pytest.fixture
def job(faulty: FaultyServer) -> RunningJob:
    running = RunningJob(FastClock())
    faulty.app = running.app
    faulty.layer.clock = running.clock
    return running


async def run(
    stream: str, faults: str, job: RunningJob, faulty: FaultyServer
) -> tuple[Follower, RequestError | None]:
    job.clock.passed_s = 0.0
    faulty.set_faults(faults)
    async with TrainingClient(
        remote_of(faulty), clock=job.clock, retry=RetryPolicy(max_attempts=ATTEMPTS)
    ) as client:
        follower = Follower(client, job)
        try:
            async with asyncio.timeout(HANGS_S):
                await STREAMS[stream][0](follower)
        except RequestError as error:
            return follower, error
        return follower, None


PAIRS = tuple(zip(PASSING[::2], PASSING[1::2], strict=True))


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
async def test_what_passes_is_got_over(
    pair: tuple[str, str], job: RunningJob, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_stalled = any(fault.startswith("stall@") for fault in pair)
    wrong = []
    for stream, (_, is_all) in STREAMS.items():
        # What is read in a few requests meets both at their beginning.
        later = 10 if stream in LIVE else 3
        faults = f"{pair[0]};skip=1;times=4|{pair[1]};skip={later};times=4"
        found: list[str] = []
        for silence_s in SILENCES_S if is_stalled else (None,):
            if silence_s is not None:
                monkeypatch.setattr("api_client.http.connection.READ_TIMEOUT_S", silence_s)
            follower, error = await run(stream, faults, job, faulty)
            found = []
            if error is not None or not is_all(follower):
                found.append(f"{stream}: {error!r} {len(follower.seen)} seen, gaps {follower.gaps}")
            if not faulty.struck():
                found.append(f"{stream}: no fault struck")
            if not found:
                break
        wrong += found
    assert wrong == []


@pytest.mark.parametrize("fault", REFUSED)
async def test_what_will_not_pass_is_raised(fault: str, job: RunningJob, faulty: FaultyServer) -> None:
    wrong = []
    for stream in STREAMS:
        for skip in (0, 3):
            follower, error = await run(stream, f"{fault};skip={skip}", job, faulty)
            if type(error) is not REFUSED[fault] or not set(follower.seen) <= everything(stream, job):
                wrong.append(f"{stream} after {skip}: {error!r}")
    assert wrong == []


def everything(stream: str, job: RunningJob) -> set[Any]:
    return job.sample_times if stream == "metrics.follow" else set(job.log.expected())


def test_every_stream_is_in_the_matrix() -> None:
    client = TrainingClient(Remote("x", "http://127.0.0.1", "http://127.0.0.1", key=None, key_origin=""))
    found = {
        f"{part}.{name}"
        for part, resource in parts_of(client).items()
        for name, member in inspect.getmembers(type(resource), inspect.isfunction)
        if not name.startswith("_") and member.__annotations__["return"].startswith("Async")
    }
    pages = {"checkpoints.files"}  # ends with its pages: the resources' matrix has it
    filling, elsewhere = {"logs.fill"}, {"deployment.follow"}
    assert found - pages | filling | elsewhere == set(STREAMS)


@pytest.mark.parametrize("oddity", LASTING_ODDITIES)
async def test_a_server_that_is_odd_all_the_time(oddity: str, job: RunningJob, faulty: FaultyServer) -> None:
    wrong = []
    for stream, (_, is_all) in STREAMS.items():
        follower, error = await run(stream, oddity, job, faulty)
        ahead_s = parse_faults(oddity)[0].fault.seconds or 0.0
        follower.seen = shifted(follower.seen, -ahead_s)
        if oddity == "nulls":
            is_as_told = not follower.seen and not follower.gaps
        elif oddity == "statuses":
            # An unknown status counts as an end: what had come by then is there.
            is_as_told = set(follower.seen) <= everything(stream, job)
        else:
            is_as_told = is_all(follower)
        if error is not None or not is_as_told:
            wrong.append(f"{stream}: {error!r} {len(follower.seen)} seen, gaps {follower.gaps}")
    assert wrong == []


def shifted(seen: Counter[Any], by_s: float) -> Counter[Any]:
    if not by_s:
        return seen
    return Counter(
        each + timedelta(seconds=by_s)
        if isinstance(each, datetime)
        else (each[0] + int(by_s * NS_PER_S), *each[1:])
        for each in seen.elements()
    )


@pytest.mark.parametrize("stream", sorted(LIVE))
async def test_back_within_seconds_of_the_server_s_return(
    stream: str, job: RunningJob, faulty: FaultyServer
) -> None:
    skip = 16 if stream in ("logs.follow", "deployment.follow") else 3  # once the history is read
    follower, error = await run(stream, f"restart=20s;skip={skip};times=1", job, faulty)
    assert error is None
    assert STREAMS[stream][1](follower)
    silence_s = max(later - earlier for earlier, later in pairwise(follower.came_s))
    assert 20.0 <= silence_s <= LIVE[stream] + 20.0 + BACK_WITHIN_S
