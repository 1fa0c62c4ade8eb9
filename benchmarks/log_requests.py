"""What following a quiet log costs, in real time.

Requests a second beside the official tail's (one a second: it asks for lines and for the job every two
seconds) and how long a line was there before it was delivered.
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

LINE_EVERY_S = 7
OFFICIAL_REQUESTS_PER_S = 1.0


async def figures(seconds: int = 20) -> AsyncIterator[Figure]:
    """Measure once the log is read up to now."""
    begin_ns = time.time_ns()
    stamps = [begin_ns + at_s * NS_PER_S for at_s in range(0, seconds, LINE_EVERY_S)]
    lines = [ServedLine(stamp, f"line {stamp}", arrives_ns=stamp) for stamp in stamps]
    waits_s: list[float] = []
    log = FakeLog(lines, time.time_ns, begin_ns, begin_ns + 10**15)
    with faulty_server(JobServer(log).app) as server:
        key = SecretStr(server.key)
        remote = Remote(name="here", app_url=server.url, api_url=server.url, key=key, key_origin="benchmark")
        async with TrainingClient(remote) as client:
            began_s, asked_before = time.monotonic(), 0
            try:
                async with asyncio.timeout(seconds):
                    async for item in client.logs.follow("proj1", "job1"):
                        if not isinstance(item, LogBatch):
                            continue
                        if item.caught_up and not item.entries:
                            began_s, asked_before = time.monotonic(), len(server.layer.asked)
                        found = [line for line in item.entries if isinstance(line, LogLine)]
                        waits_s += [(time.time_ns() - line.timestamp_ns) / NS_PER_S for line in found]
            except TimeoutError:
                pass
            rate = (len(server.layer.asked) - asked_before) / (time.monotonic() - began_s)
    name, against = "requests a second while following", "the official tail"
    yield Figure(name, rate, OFFICIAL_REQUESTS_PER_S, against, "/s", at_most=1)
    yield Figure("a line's first sight, worst", max(waits_s), unit="s", at_most=3)
