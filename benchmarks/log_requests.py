"""The requests and the delay of following a quiet log, in real time.

The requests per second are compared with those of the official CLI's tail, which requests lines and the job
every two seconds. The delay is the time from a line's arrival on the server until it is delivered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from harness import Figure
from pydantic import SecretStr

from api_client import LogBatch, LogLine, Remote, TrainingClient
from support.faulty import faulty_server
from support.log_server import NS_PER_S, FakeLog, JobServer, ServedLine

LINE_INTERVAL_S = 7
OFFICIAL_REQUESTS_PER_S = 1.0


async def figures(seconds: int = 20) -> AsyncIterator[Figure]:
    """Follow a log for ``seconds``; measure once all old lines have been read."""
    begin_ns = time.time_ns()
    stamps = [begin_ns + at_s * NS_PER_S for at_s in range(0, seconds, LINE_INTERVAL_S)]
    lines = [ServedLine(stamp, f"line {stamp}", arrives_ns=stamp) for stamp in stamps]
    delays_s: list[float] = []
    log = FakeLog(lines, time.time_ns, begin_ns, begin_ns + 10**15)
    with faulty_server(JobServer(log).app) as server:
        key = SecretStr(server.key)
        remote = Remote(name="here", app_url=server.url, api_url=server.url, key=key, key_origin="benchmark")
        async with TrainingClient(remote) as client:
            started_s, earlier_requests = time.monotonic(), 0
            try:
                async with asyncio.timeout(seconds):
                    async for item in client.logs.follow("proj1", "job1"):
                        if not isinstance(item, LogBatch):
                            continue
                        if item.caught_up and not item.entries:
                            started_s, earlier_requests = time.monotonic(), len(server.layer.asked)
                        new_lines = [line for line in item.entries if isinstance(line, LogLine)]
                        delays_s += [(time.time_ns() - line.timestamp_ns) / NS_PER_S for line in new_lines]
            except TimeoutError:
                pass
            requests_per_s = (len(server.layer.asked) - earlier_requests) / (time.monotonic() - started_s)
    name, other_program = "requests a second while following", "the official tail"
    yield Figure(name, requests_per_s, OFFICIAL_REQUESTS_PER_S, other_program, "/s", at_most=1)
    yield Figure("a line's first sight, worst", max(delays_s), unit="s", at_most=3)
