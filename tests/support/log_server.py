"""A log server on a real socket that causes every kind of trouble the published API permits.

It imports nothing of this project. Lines have a timestamp and an arrival time, both by the server's own
clock, which runs at any speed and may be minutes off.
"""

import json
import random
import socket
import struct
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from support.stranger import KEY, job

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
HOUR_S, DAY_S = 3600, 86_400
WEEK_MS = 7 * DAY_S * 1000
LATEST_S = 60.0
HOSTILE = (
    "\x1b[2J\x1b[31mclear\x1b]0;title\x07\x1bP1$r\x1b\\",
    "half a pair \ud83d of a smile",
    "nothing \x00 and \x9b31m and \u202e\u2066 backwards",
    "carriage\rreturn\n  and a second line",
    "",
)
FAULTS = (
    *("429", "429 at once", "429 until now", "500", "502", "503", "reset", "reset in the body"),
    *("cut", "half", "html", "empty", "stall", "slow"),
)
STALL_S = 0.1


@dataclass(frozen=True)
class ServedLine:
    """A line, and when it can be read first."""

    stamp_ns: int
    message: str
    replica: str | None = "node-0"
    level: str | None = None
    arrives_ns: int = 0

    def record(self) -> dict[str, object]:
        return {
            "timestamp": str(self.stamp_ns),
            "message": self.message,
            "replica": self.replica,
            "level": self.level,
        }


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
        add(lasting_s - 0.1, f"straggler {number}", LATEST_S * number / 5)
    return lines


@dataclass
class LogServer:
    """One job, ``job1``, and its log. Use it as a context manager.

    ``now_ns`` is the server's clock. ``end``: how the end bound is read (exclusive, inclusive to the ns or
    to the ms). ``mirrored``: the other direction turns equal stamps round, too. ``broken``: no page with a
    line of this stretch (ns) can be answered.
    """

    lines: list[ServedLine]
    now_ns: Callable[[], int]
    begin_ns: int
    finishes_ns: int
    status: str = "COMPLETED"
    end: str = "exclusive"
    default_direction: str = "desc"
    mirrored: bool = True
    fault_rate: float = 0.0
    broken: tuple[int, int] | None = None
    seed: int = 0
    key: str = KEY
    asked: Counter = field(default_factory=Counter)
    faults: Counter = field(default_factory=Counter)
    refusals: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)
        self._faults_ahead: list[str] = []
        self._lock = threading.Lock()
        self._asc = sorted(self.lines, key=lambda line: line.stamp_ns)
        self._stamps = [line.stamp_ns for line in self._asc]
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> "LogServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self.close()
        self._thread.join()

    def close(self) -> None:
        """Give up the socket; for whoever only asks for pages, and serves them in another way."""
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def environ(self) -> dict[str, str]:
        return {
            "BASETEN_API_KEY": KEY,
            "BASETEN_REMOTE_URL": self.url,
            "BASETEN_MANAGEMENT_API_URL_OVERRIDE": self.url,
        }

    def expected(self) -> Counter:
        """Every line as a client sees it: half a character cannot be had, and is one that stands for it."""
        return Counter(
            (line.stamp_ns, line.message.replace("\ud83d", "\ufffd"), line.replica) for line in self.lines
        )

    def job(self) -> dict[str, object]:
        is_over = self.now_ns() >= self.finishes_ns
        changed_ns = self.finishes_ns if is_over else self.begin_ns
        return job(
            "job1",
            self.status if is_over else "RUNNING",
            created_at=_iso(self.begin_ns - 9 * DAY_S * NS_PER_S),
            updated_at=_iso(changed_ns),
        )

    def page(self, query: dict[str, str]) -> list[dict[str, object]] | None:
        """The answer to a query, None if it is refused."""
        now_ns = self.now_ns()
        end_ms = int(query.get("end_epoch_millis", now_ns // NS_PER_MS))
        start_ms = int(query.get("start_epoch_millis", end_ms - 30 * 60 * 1000))
        limit = int(query.get("limit", 500))
        direction = query.get("direction", self.default_direction)
        is_odd = not 1 <= limit <= 1000 or direction not in ("asc", "desc") or not 0 <= start_ms <= end_ms
        if is_odd or end_ms - start_ms > WEEK_MS:
            self.refusals.append(f"{start_ms} {end_ms} {limit} {direction}")
            return None
        extra_ns = {"exclusive": 0, "inclusive": 1, "inclusive ms": NS_PER_MS}[self.end]
        first = bisect_left(self._stamps, start_ms * NS_PER_MS)
        last = bisect_left(self._stamps, end_ms * NS_PER_MS + extra_ns)
        window = self._asc[first:last]
        if direction == "desc":
            if self.mirrored:
                window.reverse()
            else:
                window.sort(key=lambda line: -line.stamp_ns)
        page = []
        for line in window:
            if line.arrives_ns <= now_ns:
                page.append(line.record())
                if len(page) == limit:
                    break
        return page

    def breaks_on(self, what: str, query: dict[str, str]) -> bool:
        """Whether the answer would hold a line that cannot be answered."""
        if self.broken is None or what != "logs":
            return False
        start_ns, end_ns = self.broken
        return any(start_ns <= int(str(record["timestamp"])) < end_ns for record in self.page(query) or ())

    def _fault(self) -> str | None:
        with self._lock:
            if self._dice.random() >= self.fault_rate:
                return None
            # As from a pack of cards, so that each kind comes up, however the requests are timed.
            if not self._faults_ahead:
                self._faults_ahead = self._dice.sample(FAULTS, len(FAULTS))
            kind = self._faults_ahead.pop()
            self.faults[kind] += 1
            return kind

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _serve(self) -> None:
                address = urlsplit(self.path)
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                query = {name: values[-1] for name, values in parse_qs(address.query).items()}
                fault = server._fault()
                what = address.path.rsplit("/", 1)[-1]
                server.asked[what] += 1
                if fault == "slow":
                    time.sleep(0.05)
                elif fault in ("reset", "stall"):
                    time.sleep(STALL_S if fault == "stall" else 0.0)
                    self._reset()
                    return
                elif fault in ("html", "empty"):
                    self._send(200, b"<html>sign in</html>" if fault == "html" else b"")
                    return
                elif fault in ("500", "502", "503"):
                    self._send(int(fault), b"<html>broken</html>")
                    return
                elif fault and fault.startswith("429"):
                    after = {"429 at once": "0", "429 until now": formatdate(usegmt=True)}.get(fault)
                    self._send(429, b'{"code": "SLOW_DOWN"}', {"Retry-After": after} if after else {})
                    return
                if server.breaks_on(what, query):
                    self._send(500, b"<html>broken</html>")
                    return
                payload = self._payload(what, query)
                if payload is None:
                    self._send(400, b'{"code": "VALIDATION_ERROR", "message": "no such window"}')
                    return
                raw = json.dumps(payload).encode()
                is_cut = fault in ("cut", "reset in the body")
                self._send(200, raw[: len(raw) // 2] if fault == "half" else raw, is_cut=is_cut)
                if fault == "reset in the body":
                    self._reset()

            def _reset(self) -> None:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True

            def _payload(self, what: str, query: dict[str, str]) -> dict[str, object] | None:
                if what == "logs":
                    page = server.page(query)
                    return None if page is None else {"logs": page or None}
                if what == "search":
                    return {"training_jobs": [server.job()]}
                return {"training_job": server.job()}

            def _send(
                self, status: int, raw: bytes, headers: dict[str, str] | None = None, *, is_cut: bool = False
            ) -> None:
                self.send_response(status)
                for name, value in ({"Content-Type": "application/json"} | (headers or {})).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw[: len(raw) // 2] if is_cut else raw)
                self.close_connection = self.close_connection or is_cut

            do_GET = do_POST = _serve

            def log_message(self, *_arguments: object) -> None:
                """Say nothing."""

        return Handler


class FastClock:
    """Time that passes when a client sleeps, and only then; the server's is ``skew_s`` ahead of it."""

    def __init__(self, skew_s: float = 0.0) -> None:
        self.begin_s = 1_760_000_000.0
        self.passed_s = 0.0
        self.skew_s = skew_s

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.begin_s + self.passed_s - self.skew_s, UTC)

    def monotonic(self) -> float:
        return self.passed_s

    async def sleep(self, seconds: float) -> None:
        import asyncio

        self.passed_s += max(seconds, 0.0)
        await asyncio.sleep(0)

    def server_ns(self) -> int:
        return int((self.begin_s + self.passed_s) * NS_PER_S)


def running_ns(speed: float, skew_s: float = 0.0) -> Callable[[], int]:
    """A server's clock that begins now and runs ``speed`` times as fast as ours."""
    began_ns, began_s = time.time_ns() + int(skew_s * NS_PER_S), time.monotonic()
    return lambda: began_ns + int((time.monotonic() - began_s) * speed * NS_PER_S)


def _iso(moment_ns: int) -> str:
    return datetime.fromtimestamp(moment_ns / NS_PER_S, UTC).isoformat()
