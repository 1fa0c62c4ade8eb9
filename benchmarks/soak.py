"""Ten minutes against a server that fails 30% of its requests: memory must not grow, logs must be exact.

Tests (``tests/faults``) cover single faults, and that no fault creates anything twice. In this benchmark,
all kinds of faults occur at random, and the server is down for eight seconds every minute, while the job
screen (headless) and ``bt-tui logs --follow`` read the log of a running job.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
from harness import ROOT, Figure
from pydantic import SecretStr

from api_client import LogLine, Remote
from support.faulty import FaultyServer, faulty_server
from support.log_server import NS_PER_S, FakeLog, JobServer, hostile_lines
from tui.app import BtTuiApp
from tui.screens.job.screen import JobScreen
from tui.widgets.log_view.view import LogView

FAULT_KINDS = (
    *("429", "429(retry-after=1)", "500", "502", "503", "504", "html", "empty", "truncated"),
    *("reset", "reset@during", "cut@during", "stall=2s", "slow=0.3s"),
)
FAULTS = "|".join(f"{kind};share=0.025" for kind in FAULT_KINDS)
OUTAGE_S, OUTAGE_EVERY_S = 8.0, 60.0
SKEW_S = 90
FINISHING_S = 100.0
"""Time after the last log line in which late lines arrive and both streams end."""
WARM_UP_FRACTION = 0.2
BYTES_PER_LINE = 300
MIB = 2**20


@dataclass
class Sample:
    """The resident memory of both processes, and the dashboard's numbers of tasks and log lines."""

    dashboard_bytes: int
    follow_bytes: int
    tasks: int
    lines: int


async def figures(minutes: int = 10) -> AsyncIterator[Figure]:
    """Watch a job to its end; compare memory between the halves, and both outputs with the log."""
    duration_s = max(minutes * 60 - FINISHING_S, 45.0)
    begin_ns = time.time_ns() + SKEW_S * NS_PER_S
    lines = hostile_lines(0, begin_ns, duration_s, burst=20_000)
    log = FakeLog(
        lines, lambda: time.time_ns() + SKEW_S * NS_PER_S, begin_ns, begin_ns + int(duration_s * NS_PER_S)
    )
    with tempfile.TemporaryDirectory() as folder, faulty_server(JobServer(log).app) as server:
        os.environ["HOME"] = folder
        follow_output = Path(folder, "follow.ndjson")
        follow_process = await start_follow_command(server, follow_output)
        key = SecretStr(server.key)
        remote = Remote(name="soak", app_url=server.url, api_url=server.url, key=key, key_origin="the soak")
        app = BtTuiApp(remote, job_id="job1")
        async with app.run_test(size=(100, 30)):
            await until(lambda: bool(app.screen.query(LogView)) and follow_output.stat().st_size > 0)
            server.set_faults(FAULTS)  # not earlier: a command exits if its first response is invalid
            soak = Soak(
                server, app, follow_output, psutil.Process(follow_process.pid), time.monotonic() + duration_s
            )
            await asyncio.gather(soak.sample(), soak.interrupt())
            yield Figure("logs --follow: exit code", await follow_process.wait(), at_most=0)
            await until(lambda: shown_lines(app) == log.expected(), FINISHING_S)
            for name, lines_read in (
                ("job screen", shown_lines(app)),
                ("logs --follow", printed_lines(follow_output)),
            ):
                wrong_count = (lines_read - log.expected()).total() + (log.expected() - lines_read).total()
                yield Figure(f"{name}: of {len(lines):,} lines missing or too many", wrong_count, at_most=0)
            yield Figure("job screen: still shown", isinstance(app.screen, JobScreen), at_least=1)
        for figure in soak.figures():
            yield figure


async def start_follow_command(server: FaultyServer, output: Path) -> asyncio.subprocess.Process:
    """Start ``logs --follow`` with its output in a file."""
    command = [sys.executable, "-m", "tui", "logs", "job1", "--follow", "-o", "ndjson"]
    environ = os.environ | server.environ() | {"PYTHONPATH": str(ROOT)}
    with output.open("wb") as stdout:
        return await asyncio.create_subprocess_exec(
            *command,
            env=environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=asyncio.subprocess.DEVNULL,
        )


@dataclass
class Soak:
    """Measures the dashboard and the command, and interrupts the server, until ``end_s``."""

    server: FaultyServer
    app: BtTuiApp
    follow_output: Path
    follow_process: psutil.Process
    end_s: float

    def __post_init__(self) -> None:
        self.samples: list[Sample] = []
        self.waits_s: dict[str, list[float]] = {}

    async def sample(self) -> None:
        """Record a ``Sample`` every two seconds."""
        own_process = psutil.Process()
        while time.monotonic() < self.end_s:
            sizes = own_process.memory_info().rss, self.follow_process.memory_info().rss
            lines = len(self.app.screen.query_one(LogView).store)
            self.samples.append(Sample(*sizes, len(asyncio.all_tasks()), lines))
            await asyncio.sleep(2)

    async def interrupt(self) -> None:
        """Stop the server for ``OUTAGE_S`` every minute; measure how soon all data is fresh afterwards."""
        await asyncio.sleep(OUTAGE_EVERY_S / 3)
        while time.monotonic() < self.end_s - OUTAGE_S - 15:
            begin_s = time.monotonic()
            self.server.set_faults(f"restart={OUTAGE_S}s;times=1|{FAULTS}")
            await asyncio.sleep(OUTAGE_S + 0.5)
            await self._until_fresh()
            await asyncio.sleep(max(0.0, OUTAGE_EVERY_S - (time.monotonic() - begin_s)))

    async def _until_fresh(self) -> None:
        returned_s, returned_at = time.monotonic(), time.time()
        view = self.app.screen.query_one(LogView)
        lines, size_bytes = len(view.store), self.follow_output.stat().st_size

        def is_read(name: str) -> bool:
            at = getattr(getattr(self.app.screen, "snapshot", None), name, None)
            return at is not None and at.timestamp() > returned_at

        conditions: dict[str, Callable[[], bool]] = {
            "status": lambda: is_read("seen_at"),
            "metrics": lambda: is_read("metrics_at"),
            "log": lambda: len(view.store) > lines,
            "logs --follow": lambda: self.follow_output.stat().st_size > size_bytes,
        }

        async def wait_for(name: str, is_fresh: Callable[[], bool]) -> None:
            await until(is_fresh, 30)
            self.waits_s.setdefault(name, []).append(time.monotonic() - returned_s)

        await asyncio.gather(*(wait_for(name, is_fresh) for name, is_fresh in conditions.items()))

    def figures(self) -> list[Figure]:
        """Return the figures of the outages, and those that compare the second half with the first."""
        warm_samples = self.samples[int(len(self.samples) * WARM_UP_FRACTION) :]
        halves = warm_samples[: len(warm_samples) // 2], warm_samples[len(warm_samples) // 2 :]
        lines, tasks, follow_bytes, own_bytes = (
            [median(getattr(sample, name) for sample in half) for half in halves]
            for name in ("lines", "tasks", "follow_bytes", "dashboard_bytes")
        )
        own_growth = own_bytes[1] - BYTES_PER_LINE * (lines[1] - lines[0])
        other_program = "first half"
        return [
            *(
                Figure(
                    f"{name}: fresh after an outage, worst of {len(waits)}", max(waits), unit="s", at_most=5
                )
                for name, waits in self.waits_s.items()
            ),
            Figure(
                "logs --follow: memory",
                follow_bytes[1] / MIB,
                follow_bytes[0] / MIB,
                other_program,
                "MiB",
                at_most=1.1,
            ),
            Figure(
                "dashboard: memory", own_growth / MIB, own_bytes[0] / MIB, other_program, "MiB", at_most=1.1
            ),
            Figure("dashboard: tasks more than before", tasks[1] - tasks[0], at_most=2),
        ]


def shown_lines(app: BtTuiApp) -> Counter[tuple[int, str, str | None]]:
    """Count the log lines in the job screen."""
    entries = app.screen.query_one(LogView).model.entries(filtered=False)
    return Counter(
        (line.timestamp_ns, line.message, line.replica) for line in entries if isinstance(line, LogLine)
    )


def printed_lines(output: Path) -> Counter[tuple[int, str, str | None]]:
    """Count the log lines that the command has printed."""
    records = map(json.loads, output.read_text(encoding="utf-8").splitlines())
    return Counter((int(record["timestamp"]), record["message"], record["replica"]) for record in records)


async def until(condition: Callable[[], bool], at_most_s: float = 60.0) -> None:
    """Wait until the condition holds, or for ``at_most_s``; the figures show if it did not hold in time."""
    started_s = time.monotonic()
    while not condition() and time.monotonic() - started_s < at_most_s:  # noqa: ASYNC110 – no event exists
        await asyncio.sleep(0.1)
