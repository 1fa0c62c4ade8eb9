"""A model of the logs route, with its own time: what the streams are tested against.

Lines have a stamp and an arrival, both on the server's clock; the client's clock is off by ``skew_s``.
"""

import asyncio
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate, islice

from api_client.errors import (
    BadRequest,
    InvalidAnswer,
    NotFound,
    RateLimited,
    ServerFault,
    TimedOut,
    Unreachable,
)
from api_client.models import TrainingJob
from api_client.models.logs import LogBatch, LogEnd, LogEntry, LogGap, LogLine

NS = 1_000_000_000
MS_NS = 1_000_000
MAX_WINDOW_MS = 7 * 24 * 3600 * 1000
MOST_PAGES = 50_000
BEGIN_S = 1_760_000_000
"""When the client starts, on the server's clock."""


class ModelClock:
    """Time that passes when somebody sleeps, and only then."""

    def __init__(self, skew_s: float = 0.0) -> None:
        self.passed_s = 0.0
        self.skew_s = skew_s

    def now(self) -> datetime:
        return datetime.fromtimestamp(BEGIN_S + self.passed_s - self.skew_s, UTC)

    def monotonic(self) -> float:
        return self.passed_s

    async def sleep(self, seconds: float) -> None:
        self.passed_s += max(seconds, 0.0)
        await asyncio.sleep(0)

    def server_ns(self) -> int:
        return int((BEGIN_S + self.passed_s) * NS)


@dataclass(frozen=True)
class Line:
    stamp_ns: int
    message: str
    replica: str | None = "node-0"
    level: str | None = None
    delay_s: float = 0.0

    @property
    def arrives_ns(self) -> int:
        return self.stamp_ns + int(self.delay_s * NS)


def at(seconds: float, message: str = "line", *, delay_s: float = 0.0, plus_ns: int = 0, **more) -> Line:
    """A line stamped so many seconds after (or before) the client's start."""
    return Line(BEGIN_S * NS + round(seconds * NS) + plus_ns, message, delay_s=delay_s, **more)


@dataclass
class ModelApi:
    """``end``: how the server reads the end bound. ``mirrored``: desc turns equal stamps round as well.

    ``refuses_future``: windows that end after its present are a 400. ``cut``: pages have no more lines than
    that, ``cut_characters``: nor much more text.
    ``tells_complete``: pages say (``complete``) when the job has ended and no line will come any more.
    """

    lines: Sequence[Line]
    clock: ModelClock
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
    cut: int | None = None
    cut_characters: int | None = None
    seed: int = 0
    poison: tuple[int, int] | None = None
    pages: int = 0
    faults: int = 0
    looks: int = 0
    refusals: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._asc = sorted(self.lines, key=lambda line: line.stamp_ns)
        self._stamps = [line.stamp_ns for line in self._asc]
        self._last_arrival_ns = max((line.arrives_ns for line in self.lines), default=0)

    async def fetch(self, *, start_ms: int, end_ms: int, direction: str, limit: int) -> dict:
        self.pages += 1
        assert self.pages < MOST_PAGES, "it never ends"
        present_ms = self.clock.server_ns() // MS_NS
        self._refuse(self.refuses_future and end_ms > present_ms)
        self._refuse(end_ms - start_ms > MAX_WINDOW_MS)
        assert 0 <= end_ms - start_ms <= MAX_WINDOW_MS
        assert direction in ("asc", "desc")
        assert 1 <= limit <= self.max_limit
        await self.clock.sleep(self.latency_s)
        self._fail_sometimes()
        present_ns = self.clock.server_ns()
        first = bisect_left(self._stamps, start_ms * MS_NS)
        last = bisect_left(self._stamps, self._end_ns(end_ms))
        window = islice(self._asc, first, last)
        if direction == "desc":
            if self.mirrored:
                window = (self._asc[index] for index in range(last - 1, first - 1, -1))
            else:
                window = sorted(self._asc[first:last], key=lambda each: -each.stamp_ns)
        visible = (line for line in window if line.arrives_ns <= present_ns)
        page = self._cut(list(islice(visible, limit)))
        is_over = present_ns >= (BEGIN_S + self.finishes_s) * NS
        is_complete = self.tells_complete and is_over and self._last_arrival_ns <= present_ns
        if self.poison and any(self.poison[0] <= line.stamp_ns < self.poison[1] for line in page):
            raise ServerFault("this page cannot be rendered", status=500)
        if self.shuffles:
            self._random.shuffle(page)
        records = [record_of(line) for line in page]
        if self.leaks:
            records.insert(0, record_of(Line((start_ms - 5) * MS_NS, "of another window")))
            records.append(record_of(Line((end_ms + 5) * MS_NS, "of another window")))
        return {"logs": records, "complete": is_complete}

    async def fetch_job(self) -> TrainingJob:
        self.looks += 1
        await self.clock.sleep(self.latency_s)
        self._fail_sometimes()
        is_finished = self.clock.server_ns() >= (BEGIN_S + self.finishes_s) * NS
        changed_s = BEGIN_S + (self.finishes_s if is_finished else min(self.finishes_s, 0.0) - 3600)
        return TrainingJob(
            id="job",
            current_status="TRAINING_JOB_COMPLETED" if is_finished else "TRAINING_JOB_RUNNING",
            updated_at=datetime.fromtimestamp(changed_s, UTC),
        )

    def _refuse(self, is_refused: bool) -> None:
        if is_refused:
            self.refusals += 1
            raise BadRequest("no such window", status=400)

    def _cut(self, page: list[Line]) -> list[Line]:
        if self.cut_characters is not None:
            for count, characters in enumerate(accumulate(len(line.message) for line in page), 1):
                if characters > self.cut_characters:
                    page = page[:count]
        return page if self.cut is None else page[: self.cut]

    def _end_ns(self, end_ms: int) -> int:
        extra = {"exclusive": 0, "inclusive": 1, "inclusive ms": MS_NS}
        return end_ms * MS_NS + extra[self.end]

    def _fail_sometimes(self) -> None:
        if self._random.random() >= self.fault_rate:
            return
        self.faults += 1
        raise self._random.choice(
            [
                ServerFault("broken", status=503),
                TimedOut("slow"),
                Unreachable("cut"),
                RateLimited("too many", status=429, retry_after_s=1.0),
                InvalidAnswer("half a page"),
            ]
        )


async def gone(**_: object) -> list:
    raise NotFound("no such job", status=404)


def record_of(line: Line) -> dict:
    return {
        "timestamp": str(line.stamp_ns),
        "message": line.message,
        "replica": line.replica,
        "level": line.level,
    }


def world(lines: Sequence[Line]) -> Counter:
    return Counter((line.stamp_ns, line.message, line.replica, line.level) for line in lines)


def multiset(entries: Sequence[LogEntry]) -> Counter:
    return Counter(
        (entry.timestamp_ns, entry.message, entry.replica, entry.level)
        for entry in entries
        if isinstance(entry, LogLine)
    )


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


async def gather(stream, clock: ModelClock) -> Followed:
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
