"""The server of the soak: one job's log, the lists and the push routes, with faults; nothing of ours.

``python benchmarks/soak_server.py OPTIONS`` with a JSON object of ``seed``, ``lasting_s``, ``skew_s``,
``fault_rate`` and ``lines`` (a file that gets the whole log as JSON). Prints its port, then serves until it
is ended. ``/_control?away_s=8`` takes the server away for so long: connections are reset, new ones refused.
"""

# ruff: noqa: T201 (what it prints is its answer; its dice guard nothing)

from __future__ import annotations

import asyncio
import bisect
import json
import random
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

KEY = "soak-key"
NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
HISTORY_S = 3600.0
LATEST_S = 58.0
LONGEST_STALL_S = 2.0
WEEK_MS = 7 * 86_400 * 1000
FAULTS = [
    *("429", "429-after", "500", "502", "503", "504"),
    *("reset", "reset-in-body", "cut-body", "half-json", "html", "empty", "stall", "slow-body"),
]
OBJECT_FAULTS = ["500", "503", "reset"]
"""Also of what a push reads first: an answer that makes no sense ends a command, and half of the pushes
should get through.
"""
READ_BY_PUSHES = ("/v1/teams", "/v1/blobs/credentials/train")


@dataclass(frozen=True, slots=True)
class Line:
    """A line and when it can be read first, both in epoch ns on the server's clock."""

    stamp_ns: int
    arrives_ns: int
    message: str
    replica: str


def lines_of(seed: int, begin_ns: int, lasting_s: float) -> list[Line]:
    """An hour of history, then ``lasting_s`` of steady lines, bursts, ties, late lines and a silence."""
    dice = random.Random(seed)
    lines: list[Line] = []

    def add(at_s: float, message: str, *, late_s: float = 0.0, plus_ns: int = 0) -> None:
        stamp_ns = begin_ns + int(at_s * NS_PER_S) + plus_ns
        arrives_ns = stamp_ns + int(late_s * NS_PER_S)
        lines.append(Line(stamp_ns, arrives_ns, message, f"node-{len(lines) % 8}"))

    second = -HISTORY_S
    while second < lasting_s:
        late_s = dice.uniform(0.5, LATEST_S) if dice.random() < 0.1 else 0.0
        add(second, f"{{'loss': {dice.random():.4f}}} at {second:.1f}", late_s=late_s)
        second += dice.uniform(0.02, 0.4) if second > 0 else dice.uniform(0.2, 3.0)
    for minute in range(int(lasting_s // 60) + 1):
        at_s = minute * 60.0 + dice.uniform(1, 50)
        if at_s < lasting_s - 3:
            for number in range(10_000):
                add(at_s + number / 25_000, f"burst {number}")
            for number in range(dice.choice([1000, 1500, 1998])):
                add(int(at_s) + 2, f"of one ms {number}", plus_ns=number * 400)
            for _ in range(dice.randrange(2, 500)):
                add(int(at_s) + 2.5, "the same again")
    for number in range(10):
        add(lasting_s - 0.1, f"straggler {number}", late_s=LATEST_S * number / 10)
    return sorted(lines, key=lambda line: line.stamp_ns)


class World:
    """What the server knows. ``created`` holds the names of the jobs that pushes made."""

    def __init__(self, *, seed: int, lasting_s: float, skew_s: float, fault_rate: float, lines: str) -> None:
        self.dice = random.Random(seed + 1)
        self.fault_rate = fault_rate
        self.lasting_s = lasting_s
        self.began_s = time.monotonic()
        self.begin_ns = time.time_ns() + int(skew_s * NS_PER_S)
        self.lines = lines_of(seed, self.begin_ns, lasting_s)
        self.stamps = [line.stamp_ns for line in self.lines]
        self.records = [_record(line) for line in self.lines]
        self.asked: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.refused: list[str] = []
        self.created: list[str] = []
        Path(lines).write_text(
            json.dumps([(line.stamp_ns, line.message, line.replica) for line in self.lines])
        )

    def now_ns(self) -> int:
        """The server's clock, in epoch ns."""
        return self.begin_ns + int((time.monotonic() - self.began_s) * NS_PER_S)

    def job(self, job_id: str = "job1") -> dict[str, Any]:
        """The watched job, or one that a push made."""
        end_ns = self.begin_ns + int(self.lasting_s * NS_PER_S)
        is_over = self.now_ns() >= end_ns
        created_ns = self.begin_ns - int(HISTORY_S * NS_PER_S)
        return {
            "id": job_id,
            "name": "soaked" if job_id == "job1" else "pushed",
            "created_at": _iso(created_ns),
            "updated_at": _iso(end_ns if is_over else created_ns),
            "current_status": f"TRAINING_JOB_{'COMPLETED' if is_over or job_id != 'job1' else 'RUNNING'}",
            "training_project_id": "proj1",
            "training_project": {"id": "proj1", "name": "soak"},
            "instance_type": {
                "id": "cpu",
                "name": "CPU",
                "memory_limit_mib": 1024,
                "millicpu_limit": 1000,
                "gpu_count": 0,
            },
        }

    def metrics(self) -> dict[str, Any]:
        """A sample a second of the last minute."""
        now_ns = self.now_ns()
        samples = [{"value": 0.5, "timestamp": _iso(now_ns - back * NS_PER_S)} for back in range(60, 0, -1)]
        return {
            "gpu_memory_usage_bytes": {},
            "gpu_utilization": {},
            "cpu_usage": samples,
            "cpu_memory_usage_bytes": samples,
            "ephemeral_storage": {"usage_bytes": [], "utilization": []},
            "cache": None,
            "training_job": self.job(),
            "per_node_metrics": [],
        }

    def page(self, query: dict[str, str]) -> bytes | None:
        """A page of the log as JSON, None for a query that the published API does not take."""
        now_ns = self.now_ns()
        end_ms = int(query.get("end_epoch_millis", now_ns // NS_PER_MS))
        start_ms = int(query.get("start_epoch_millis", end_ms - 30 * 60 * 1000))
        limit, direction = int(query.get("limit", 500)), query.get("direction", "desc")
        is_odd = not 1 <= limit <= 1000 or direction not in ("asc", "desc")
        if is_odd or not 0 <= start_ms <= end_ms or end_ms - start_ms > WEEK_MS:
            self.refused.append(str(query))
            return None
        first = bisect.bisect_left(self.stamps, start_ms * NS_PER_MS)
        last = bisect.bisect_left(self.stamps, end_ms * NS_PER_MS)
        found: list[bytes] = []
        for index in range(first, last) if direction == "asc" else range(last - 1, first - 1, -1):
            if self.lines[index].arrives_ns <= now_ns:
                found.append(self.records[index])
                if len(found) == limit:
                    break
        return b'{"logs": [' + b", ".join(found) + b"]}"

    def fault(self, kinds: list[str]) -> str | None:
        """What goes wrong with a request, if anything."""
        if self.dice.random() >= self.fault_rate:
            return None
        kind = self.dice.choice(kinds)
        self.faults[kind] += 1
        return kind

    def told(self) -> bytes:
        """What the soak wants to know in the end."""
        told = {"created": self.created, "refused": self.refused, "asked": self.asked, "faults": self.faults}
        return json.dumps(told).encode()

    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """The published answer."""
        parts = path.strip("/").split("/")
        match method, parts:
            case "GET", [*_, "logs"]:
                page = self.page(query)
                return (400, b'{"code": "VALIDATION_ERROR"}') if page is None else (200, page)
            case "PUT", ["bucket", *_]:
                return 200, b""
            case "GET", ["v1", "blobs", "credentials", "train"]:
                return 200, b""  # filled in by the one who knows the port
            case "POST", ["v1", "training_projects", _, "jobs"]:
                name = str(json.loads(body)["training_job"].get("name"))
                self.created.append(name)
                return 200, _json({"training_job": self.job(f"pushed{len(self.created)}")})
            case _, ["v1", *names]:
                return self._listed(method, names)
        return 404, b'{"code": "NOT_FOUND", "message": "no such route"}'

    def _listed(self, method: str, names: list[str]) -> tuple[int, bytes]:
        project = {
            "id": "proj1",
            "name": "soak",
            "created_at": _iso(self.begin_ns),
            "updated_at": _iso(self.begin_ns),
            "latest_job": None,
        }
        match method, names:
            case "GET", ["training_projects"]:
                return 200, _json({"training_projects": [project]})
            case "POST", ["training_projects"]:
                return 200, _json({"training_project": project})
            case "GET", ["teams"]:
                return 200, _json({"teams": []})
            case "POST", ["training_jobs", "search"]:
                return 200, _json({"training_jobs": [self.job()]})
            case "GET", [*_, "metrics"]:
                return 200, _json(self.metrics())
            case "GET", [*_, "checkpoints"]:
                return 200, _json({"training_job": self.job(), "checkpoints": []})
            case "GET", ["training_projects", _, "jobs", job_id]:
                return 200, _json({"training_project": project, "training_job": self.job(job_id)})
        return 404, b'{"code": "NOT_FOUND", "message": "no such route"}'


class Server:
    """Serves a world on one port, except while it is away."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._leave: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Listen, on the same port every time."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _away(self, seconds: float) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            _reset(writer)
        await asyncio.sleep(seconds)
        await self.open()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, OSError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; false when the connection ends with it."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in head[1:])}
        body = await _body(reader, headers)
        address = urlsplit(target)
        query = dict(parse_qsl(address.query, keep_blank_values=True))
        send = _sender(writer)
        if address.path == "/_control":
            if "away_s" in query:
                self._leave = asyncio.create_task(self._away(float(query["away_s"])))
            await send(200, self.world.told())
            return False
        is_object = address.path.startswith("/bucket/")
        if not is_object and headers.get("authorization") != f"Bearer {KEY}":
            self.world.refused.append(f"{method} {address.path} without the key")
            await send(401, b"{}")
            return True
        self.world.asked[f"{method} {address.path.rsplit('/', 1)[-1]}"] += 1
        fault = self.world.fault(OBJECT_FAULTS if is_object or address.path in READ_BY_PUSHES else FAULTS)
        if fault is not None and await self._fail(fault, writer, send):
            return fault not in ("reset", "stall")
        status, raw = self.world.answer(method, address.path, query, body)
        if address.path == "/v1/blobs/credentials/train":
            raw = _json(_credentials(self.port))
        return await _deliver(writer, send, status, raw, fault, '"e"' if is_object else "")

    async def _fail(
        self, fault: str, writer: asyncio.StreamWriter, send: Callable[..., Awaitable[None]]
    ) -> bool:
        """Answer without the world; false if the fault is one of the answer's delivery."""
        if fault == "reset":
            _reset(writer)
        elif fault == "stall":
            await asyncio.sleep(self.world.dice.uniform(0.2, LONGEST_STALL_S))
            _reset(writer)
        elif fault.startswith("429"):
            await send(429, b'{"code": "SLOW_DOWN"}', b"Retry-After: 1\r\n" if "after" in fault else b"")
        elif fault.isdigit():
            await send(int(fault), b"<html>broken</html>")
        elif fault in ("html", "empty"):
            await send(200, b"<html>sign in</html>" if fault == "html" else b"")
        else:
            return False
        return True


async def _deliver(
    writer: asyncio.StreamWriter,
    send: Callable[..., Awaitable[None]],
    status: int,
    raw: bytes,
    fault: str | None,
    etag: str,
) -> bool:
    if fault in ("reset-in-body", "cut-body"):
        await send(status, raw, part=len(raw) // 2)
        if fault == "reset-in-body":
            _reset(writer)
        return False
    if fault == "slow-body":
        await send(status, raw, part=len(raw) // 2)
        await asyncio.sleep(0.3)
        writer.write(raw[len(raw) // 2 :])
        await writer.drain()
        return True
    extra = f"ETag: {etag}\r\n".encode() if etag else b""
    await send(status, raw[: len(raw) // 2] if fault == "half-json" else raw, extra)
    return True


def _sender(writer: asyncio.StreamWriter) -> Callable[..., Awaitable[None]]:
    async def send(status: int, raw: bytes, extra: bytes = b"", *, part: int | None = None) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n"
        writer.write(head.encode() + extra + b"\r\n" + (raw if part is None else raw[:part]))
        await writer.drain()

    return send


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return body


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _credentials(port: int) -> dict[str, Any]:
    return {
        "s3_bucket": "bucket",
        "s3_key": "archive.tgz",
        "creds": {
            "aws_access_key_id": "id",
            "aws_secret_access_key": "secret",
            "aws_session_token": "token",
            "endpoint_url": f"http://127.0.0.1:{port}",
            "region_name": "us-east-1",
        },
    }


def _record(line: Line) -> bytes:
    record = {
        "timestamp": str(line.stamp_ns),
        "message": line.message,
        "replica": line.replica,
        "level": None,
    }
    return _json(record)


def _iso(moment_ns: int) -> str:
    return datetime.fromtimestamp(moment_ns / NS_PER_S, UTC).isoformat()


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


async def main() -> None:
    """Serve until ended."""
    server = Server(World(**json.loads(sys.argv[1])))
    await server.open()
    print(server.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
