"""What following a quiet log costs, in real time: ``python benchmarks/log_requests.py``.

Prints requests a second beside the official tail's (one a second: it asks for lines and for the job every
two seconds) and how long a line was there before it was delivered. Wanted: fewer requests than that, and 3 s
at most. An argument gives the seconds to measure for.
"""

# ruff: noqa: E402 (what a benchmark prints is its product; the tests' server is no package)

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from harness import Report
from pydantic import SecretStr

from api_client import LogBatch, LogLine, Remote, TrainingClient
from support.faulty import faulty_server
from support.log_server import NS_PER_S, FakeLog, JobServer, ServedLine

LASTING_S = 60.0
A_LINE_EVERY_S = 7.0
OFFICIAL_REQUESTS_PER_S = 1.0
WANTED_SIGHT_S = 3.0


async def measure(lasting_s: float) -> tuple[float, list[float]]:
    """Requests a second once the log is read up to now, and each line's wait in seconds."""
    begin_ns = time.time_ns()
    stamps = [begin_ns + int(count * A_LINE_EVERY_S * NS_PER_S) for count in range(int(lasting_s))]
    lines = [ServedLine(stamp, f"line {stamp}", arrives_ns=stamp) for stamp in stamps]
    waits_s: list[float] = []
    log = FakeLog(lines, time.time_ns, begin_ns, begin_ns + 10**15)
    with faulty_server(JobServer(log).app) as server:
        key = SecretStr(server.key)
        remote = Remote(name="here", app_url=server.url, api_url=server.url, key=key, key_origin="benchmark")
        async with TrainingClient(remote) as client:
            began_s, asked_before = time.monotonic(), 0
            try:
                async with asyncio.timeout(lasting_s):
                    async for item in client.logs.follow("proj1", "job1"):
                        if isinstance(item, LogBatch) and item.caught_up and not item.entries:
                            began_s, asked_before = time.monotonic(), len(server.layer.asked)
                        elif isinstance(item, LogBatch):
                            seen_ns = time.time_ns()
                            found = [line for line in item.entries if isinstance(line, LogLine)]
                            waits_s += [(seen_ns - line.timestamp_ns) / NS_PER_S for line in found]
            except TimeoutError:
                pass
            return (len(server.layer.asked) - asked_before) / (time.monotonic() - began_s), waits_s


def main() -> None:
    """Measure and say what is met."""
    lasting_s = float(sys.argv[1]) if len(sys.argv) > 1 else LASTING_S
    rate, waits_s = asyncio.run(measure(lasting_s))
    report = Report("log_requests")
    report.compare(
        "requests a second while following",
        rate,
        OFFICIAL_REQUESTS_PER_S,
        against="the official tail",
        unit="/s",
        at_most=1,
    )
    report.figure("a line's first sight, worst", max(waits_s), unit="s", at_most=WANTED_SIGHT_S)
    report.close()


if __name__ == "__main__":
    main()
