"""The logs route without a socket, with its own time: what the streams are tested against.

Lines have a stamp and an arrival, both on the server's clock; the client's clock is off by ``skew_s``.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate

from api_client.errors import (
    AnswerTooLarge,
    BadRequest,
    InvalidAnswer,
    RateLimited,
    ServerFault,
    TimedOut,
    Unreachable,
)
from api_client.models import TrainingJob
from api_client.models.logs import LogBatch, LogEnd, LogEntry, LogGap, LogLine
from api_client.streams.logs import read_logs
from api_client.streams.pages import LogQuery, PageSource
from support.log_server import BEGIN_S, FakeLog, FastClock, ServedLine

NS = 1_000_000_000
MS_NS = 1_000_000
MAX_WINDOW_MS = 7 * 24 * 3600 * 1000
MOST_PAGES = 50_000
FAULTS = (
    lambda: ServerFault("broken", status=503),
    lambda: TimedOut("slow"),
    lambda: Unreachable("cut"),
    lambda: RateLimited("too many", status=429, retry_after_s=1.0),
    lambda: InvalidAnswer("half a page"),
)


def at(seconds: float, message="line", *, delay_s=0.0, plus_ns=0, **more) -> ServedLine:
    """A line stamped so many seconds after (or before) the client's start."""
    stamp_ns = BEGIN_S * NS + round(seconds * NS) + plus_ns
    return ServedLine(stamp_ns, message, arrives_ns=stamp_ns + int(delay_s * NS), **more)


@dataclass
class ModelApi:
    """``end``, ``mirrored``: as in ``FakeLog``. ``cut``: pages have no more lines than that,
    ``cut_characters``: nor much more text. ``refuses_future``: windows that end after its present are a 400.
    ``largest_characters``: pages with more text are too large.
    ``tells_complete``: pages say (``complete``) when the job has ended and no line will come any more.
    ``seems_over_s``: when the job looks finished though it runs on. ``changed_s``: when the server says the
    ended job changed last, right or wrong; by default, when it ended.
    """

    lines: Sequence[ServedLine]
    clock: FastClock
    finishes_s: float = 0.0
    end: str = "exclusive"
    mirrored: bool = True
    max_limit: int = 1000
    latency_s: float = 0.02
    fault_rate: float = 0.0
    shuffles: bool = False
    leaks: bool = False
    refuses_future: bool = False
    tells_complete: bool = False
    seems_over_s: range = range(0)
    changed_s: float | None = None
    cut: int | None = None
    cut_characters: int | None = None
    largest_characters: int | None = None
    seed: int = 0
    poison: tuple[int, int] | None = None
    pages: int = 0
    looks: int = 0
    requests: list[tuple[int, int, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        end_ns = int((BEGIN_S + self.finishes_s) * NS)
        self._log = FakeLog(self.lines, self.clock.server_ns, 0, end_ns, end=self.end, mirrored=self.mirrored)
        self._last_arrival_ns = max((line.arrives_ns for line in self.lines), default=0)

    async def fetch(self, *, query: LogQuery) -> dict:
        start_ms, end_ms = query["start_epoch_millis"], query["end_epoch_millis"]
        direction, limit = query["direction"], query["limit"]
        self.pages += 1
        self.requests.append((start_ms, end_ms, direction, limit))
        assert self.pages < MOST_PAGES, "it never ends"
        is_future = end_ms > self.clock.server_ns() // MS_NS
        if (self.refuses_future and is_future) or end_ms - start_ms > MAX_WINDOW_MS:
            raise BadRequest("no such window", status=400)
        assert end_ms >= start_ms and direction in ("asc", "desc") and 1 <= limit <= self.max_limit
        await self.clock.sleep(self.latency_s)
        self._fail_sometimes()
        page = self._cut(self._log.window(start_ms, end_ms, direction, limit))
        now_ns = self.clock.server_ns()
        is_complete = self.tells_complete and max(self._log.finishes_ns, self._last_arrival_ns) <= now_ns
        if self.poison and any(self.poison[0] <= line.stamp_ns < self.poison[1] for line in page):
            raise ServerFault("this page cannot be rendered", status=500)
        if self.largest_characters and sum(len(line.message) for line in page) > self.largest_characters:
            raise AnswerTooLarge("it returned too many bytes")
        if self.shuffles:
            self._random.shuffle(page)
        if self.leaks:
            page += [ServedLine(ms * MS_NS, "of another window") for ms in (start_ms - 5, end_ms + 5)]
        return {"logs": [line.record() for line in page], "complete": is_complete}

    async def fetch_job(self) -> TrainingJob:
        self.looks += 1
        await self.clock.sleep(self.latency_s)
        self._fail_sometimes()
        seems_over = int(self.clock.passed_s) in self.seems_over_s
        is_finished = seems_over or self.clock.server_ns() >= self._log.finishes_ns
        ended_s = self.finishes_s if self.changed_s is None else self.changed_s
        changed_s = BEGIN_S + (ended_s if is_finished else min(self.finishes_s, 0.0) - 3600)
        return TrainingJob(
            id="job",
            current_status="TRAINING_JOB_COMPLETED" if is_finished else "TRAINING_JOB_RUNNING",
            updated_at=datetime.fromtimestamp(changed_s, UTC),
        )

    def _cut(self, page: list[ServedLine]) -> list[ServedLine]:
        if self.cut_characters is not None:
            sizes = enumerate(accumulate(len(line.message) for line in page), 1)
            page = page[: next((count for count, size in sizes if size > self.cut_characters), None)]
        return page[: self.cut]

    def _fail_sometimes(self) -> None:
        if self._random.random() < self.fault_rate:
            raise self._random.choice(FAULTS)()


def world(lines: Sequence[ServedLine]) -> Counter:
    return Counter((line.stamp_ns, line.message, line.replica, line.level) for line in lines)


def multiset(entries: Sequence[LogEntry]) -> Counter:
    lines = (entry for entry in entries if isinstance(entry, LogLine))
    return Counter((line.timestamp_ns, line.message, line.replica, line.level) for line in lines)


def gaps_of(entries: Sequence[LogEntry]) -> list[LogGap]:
    return [entry for entry in entries if isinstance(entry, LogGap)]


@dataclass
class Followed:
    """What a follow gave; ``seen_s`` is when each of the entries came."""

    entries: list[LogEntry] = field(default_factory=list)
    seen_s: list[float] = field(default_factory=list)
    batches: list[LogBatch] = field(default_factory=list)
    end: LogEnd | None = None
    end_s: float = 0.0


async def gather(stream, clock: FastClock) -> Followed:
    """Everything a stream gives."""
    followed = Followed()
    async for item in stream:
        assert followed.end is None
        if isinstance(item, LogEnd):
            followed.end, followed.end_s = item, clock.passed_s
            continue
        stamps = [e.timestamp_ns if isinstance(e, LogLine) else e.start_ns for e in item.entries]
        assert stamps == sorted(stamps)
        followed.batches.append(item)
        followed.entries += item.entries
        followed.seen_s += [clock.passed_s] * len(item.entries)
    return followed


async def read_between(api: ModelApi, start_ms: int, end_ms: int, newest_first=False) -> list[LogEntry]:
    bounds = {"start_ms": start_ms, "end_ms": end_ms}
    pages = PageSource(api.fetch, clock=api.clock)
    stream = read_logs(pages, **bounds, newest_first=newest_first)
    batches = [batch.entries async for batch in stream]
    return [entry for batch in (reversed(batches) if newest_first else batches) for entry in batch]
