"""A log that causes every kind of trouble the published API permits, an application that serves it, a clock.

Lines have a timestamp and an arrival time, both by the server's own clock, which may be minutes off.
"""

import asyncio
import json
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from support.fake_baseten import job

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
HOUR_S, DAY_S = 3600, 86_400
WEEK_MS = 7 * DAY_S * 1000
LATEST_S = 60.0
BEGIN_S = 1_760_000_000
"""When a ``FastClock`` starts, on the server's clock."""

HOSTILE = (
    "\x1b[2J\x1b[31mclear\x1b]0;title\x07\x1bP1$r\x1b\\",
    "half a pair \ud83d of a smile",
    "nothing \x00 and \x9b31m and \u202e\u2066 backwards",
    "carriage\rreturn\n  and a second line",
    "",
)


@dataclass(frozen=True)
class ServedLine:
    """A line, and when it can be read first."""

    stamp_ns: int
    message: str
    replica: str | None = "node-0"
    level: str | None = None
    arrives_ns: int = 0

    def record(self) -> dict[str, object]:
        given = {"message": self.message, "replica": self.replica, "level": self.level}
        return {"timestamp": str(self.stamp_ns), **given}


def hostile_lines(seed: int, begin_ns: int, lasting_s: float, *, burst: int = 2_500) -> list[ServedLine]:
    """A job of nine days that goes on for ``lasting_s`` after ``begin_ns``, with every kind of trouble."""
    dice = random.Random(seed)
    lines: list[ServedLine] = []

    def add(at_s: float, message: str, late_s: float = 0.0, plus_ns: int = 0, **more: str | None) -> None:
        stamp_ns = begin_ns + int(at_s * NS_PER_S) + plus_ns
        lines.append(ServedLine(stamp_ns, message, arrives_ns=stamp_ns + int(late_s * NS_PER_S), **more))

    def trouble(at_s: float) -> None:
        for number in range(dice.choice([999, 1000, 1500, 1998])):
            add(at_s, f"of one ms {number}", plus_ns=number * 400, replica=f"node-{number % 4}")
        for number in range(dice.choice([700, 999])):
            add(at_s + 1, f"of one ns {number // 3}")
        for _ in range(dice.randrange(2, 400)):
            add(at_s + 2, "the same again")
        for number, text in enumerate(HOSTILE):
            add(at_s + 3 + number, text, replica=None)
        if seed % 3 == 1 or at_s < 0:
            add(at_s + 9, "1 MB " + "x" * 1_000_000)

    for number in range(300):
        add(-9 * DAY_S + number * dice.uniform(0.1, 3), f"nine days ago {number}")
    trouble(-8 * DAY_S)
    for number in range(1_500):
        add(-2 * HOUR_S + number / 2_000, f"two hours ago {number}")
    trouble(lasting_s * 0.3)
    for number in range(burst):
        add(lasting_s * 0.5 + number / 30_000, f"burst {number}", plus_ns=dice.randrange(900))
    second = -200.0
    while second < lasting_s:
        is_late = dice.random() < 0.3
        add(second, f"step at {second:.1f}", dice.uniform(1, LATEST_S) if is_late else 0.0)
        second += dice.uniform(0.2, 3.0)
    for number in range(5):
        add(lasting_s - 0.1, f"late {number}", LATEST_S * number / 5)
    return lines


@dataclass
class FakeLog:
    """The log of one job, ``job1``, and the job.

    ``now_ns`` is the server's clock. ``end``: how the end bound is read (exclusive, inclusive to the ns or
    to the ms). ``mirrored``: the other direction turns equal stamps round, too.
    """

    lines: Sequence[ServedLine]
    now_ns: Callable[[], int]
    begin_ns: int
    finishes_ns: int
    status: str = "COMPLETED"
    end: str = "exclusive"
    default_direction: str = "desc"
    mirrored: bool = True

    def __post_init__(self) -> None:
        self._asc = sorted(self.lines, key=lambda line: line.stamp_ns)
        self._stamps = [line.stamp_ns for line in self._asc]

    def expected(self) -> Counter:
        """Every line as a client sees it: half a character cannot be had, and is one that stands for it."""
        return Counter(
            (line.stamp_ns, line.message.replace("\ud83d", "\ufffd"), line.replica) for line in self.lines
        )

    def job(self) -> dict[str, object]:
        is_over = self.now_ns() >= self.finishes_ns
        return job(
            "job1",
            self.status if is_over else "RUNNING",
            created_at=_at(self.begin_ns / NS_PER_S - 9 * DAY_S).isoformat(),
            updated_at=_at((self.finishes_ns if is_over else self.begin_ns) / NS_PER_S).isoformat(),
        )

    def page(self, query: dict[str, str]) -> list[dict[str, object]] | None:
        """The answer to a query, None if it is refused."""
        end_ms = int(query.get("end_epoch_millis", self.now_ns() // NS_PER_MS))
        start_ms = int(query.get("start_epoch_millis", end_ms - 30 * 60 * 1000))
        limit = int(query.get("limit", 500))
        direction = query.get("direction", self.default_direction)
        is_odd = not 1 <= limit <= 1000 or direction not in ("asc", "desc") or not 0 <= start_ms <= end_ms
        if is_odd or end_ms - start_ms > WEEK_MS:
            return None
        return [line.record() for line in self.window(start_ms, end_ms, direction, limit)]

    def window(self, start_ms: int, end_ms: int, direction: str, limit: int) -> list[ServedLine]:
        extra_ns = {"exclusive": 0, "inclusive": 1, "inclusive ms": NS_PER_MS}[self.end]
        first = bisect_left(self._stamps, start_ms * NS_PER_MS)
        last = bisect_left(self._stamps, end_ms * NS_PER_MS + extra_ns)
        if direction == "asc":
            found = islice(self._asc, first, last)
        elif self.mirrored:
            found = (self._asc[index] for index in range(last - 1, first - 1, -1))
        else:
            found = iter(sorted(self._asc[first:last], key=lambda line: -line.stamp_ns))
        now_ns = self.now_ns()
        return list(islice((line for line in found if line.arrives_ns <= now_ns), limit))


class JobServer:
    """An ASGI application with one job (``job1``), its log and metrics, and a deployment with the same log.

    ``broken``: no page with a line of this range (ns) can be answered.
    """

    def __init__(self, log: FakeLog) -> None:
        self.log = log
        self.broken = (0, 0)
        self.refused: list[str] = []
        self.first_sample_s, self.sample_every_s = log.begin_ns // NS_PER_S - HOUR_S, 20
        of_job, of_deployment = "/v1/training_projects/proj1/jobs/job1", "/v1/models/model1/deployments/dep1"
        self.app = Starlette(
            routes=[
                Route("/v1/training_jobs/search", self._found, methods=["POST"]),
                Route(of_job, lambda _: JSONResponse({"training_job": self.log.job()})),
                Route(f"{of_job}/metrics", self._metrics),
                Route(of_deployment, self._deployment),
                *(Route(f"{each}/logs", self._logs) for each in (of_job, of_deployment)),
            ]
        )

    def sample_times(self) -> list[datetime]:
        """When samples are taken, to the end of the job."""
        last_s = self.log.finishes_ns // NS_PER_S
        return [_at(second) for second in range(self.first_sample_s, last_s + 1, self.sample_every_s)]

    async def _found(self, _request: Request) -> JSONResponse:
        return JSONResponse({"training_jobs": [self.log.job()]})

    async def _logs(self, request: Request) -> Response:
        page = self.log.page(dict(request.query_params))
        if page is None:
            self.refused.append(str(request.url))
            return JSONResponse({"code": "VALIDATION_ERROR", "message": "no such window"}, 400)
        if any(self.broken[0] <= int(str(line["timestamp"])) < self.broken[1] for line in page):
            return JSONResponse({}, 500)
        escaped = json.dumps({"logs": page or None})  # half a character cannot be sent as UTF-8
        return Response(escaped, media_type="application/json")

    async def _metrics(self, request: Request) -> JSONResponse:
        start = _at(int(request.query_params.get("start_epoch_millis", 0)) / 1000)
        now = _at(self.log.now_ns() / NS_PER_S)
        taken = [each.isoformat() for each in self.sample_times() if start <= each <= now]
        samples = [{"timestamp": each, "value": 0.5} for each in taken]
        return JSONResponse({"gpu_utilization": {"0": samples}, "training_job": self.log.job()})

    async def _deployment(self, _request: Request) -> JSONResponse:
        status = "ACTIVE" if self.log.now_ns() >= self.log.finishes_ns else "DEPLOYING"
        created_at = _at(self.first_sample_s).isoformat()
        return JSONResponse({"id": "dep1", "model_id": "model1", "status": status, "created_at": created_at})


class FastClock:
    """Time that passes when a client sleeps, and only then; the server's is ``skew_s`` ahead of it.

    ``pause_s``: real time for others; what reports its progress in a loop would fill the processor otherwise.
    """

    def __init__(self, skew_s: float = 0.0, begin_s: float = BEGIN_S, pause_s: float = 0.0) -> None:
        self.begin_s, self.pause_s = begin_s, pause_s
        self.passed_s = 0.0
        self.skew_s = skew_s
        self.slept_s: list[float] = []

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.begin_s + self.passed_s - self.skew_s, UTC)

    def monotonic(self) -> float:
        return self.passed_s

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.passed_s += max(seconds, 0.0)
        await asyncio.sleep(self.pause_s)

    @property
    def moment(self) -> datetime:
        return self.now()

    @moment.setter
    def moment(self, moment: datetime) -> None:
        self.passed_s = moment.timestamp() + self.skew_s - self.begin_s

    def server_ns(self) -> int:
        return int((self.begin_s + self.passed_s) * NS_PER_S)


def _at(epoch_s: float) -> datetime:
    return datetime.fromtimestamp(epoch_s, UTC)
