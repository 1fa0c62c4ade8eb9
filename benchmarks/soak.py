"""Ten minutes against a server that fails three times in ten: memory stays flat, logs stay exact.

Single faults, and that nothing is created twice under them, are tests (``tests/faults``). This is what takes
minutes: every kind of fault at random, and an outage of eight seconds every minute, while the job screen
(headless) and ``bt-tui logs --follow`` read the log of a running job.
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

KINDS = (
    *("429", "429(retry-after=1)", "500", "502", "503", "504", "html", "empty", "truncated"),
    *("reset", "reset@during", "cut@during", "stall=2s", "slow=0.3s"),
)
FAULTS = "|".join(f"{kind};share=0.025" for kind in KINDS)
OUTAGE_S, OUTAGE_EVERY_S = 8.0, 60.0
SKEW_S = 90
ENDING_S = 100.0
"""Of the minutes, what is left for stragglers and the streams' ends."""
WARM_UP_SHARE = 0.2
BYTES_A_LINE = 300
MIB = 2**20


@dataclass
class Sample:
    """The resident memory of both processes, and what the dashboard holds."""

    dashboard_bytes: int
    follow_bytes: int
    tasks: int
    lines: int


async def figures(minutes: int = 10) -> AsyncIterator[Figure]:
    """Watch the job to its end; then compare the second half with the first, and the logs with the log."""
    lasting_s = max(minutes * 60 - ENDING_S, 45.0)
    begin_ns = time.time_ns() + SKEW_S * NS_PER_S
    lines = hostile_lines(0, begin_ns, lasting_s, burst=20_000)
    log = FakeLog(
        lines, lambda: time.time_ns() + SKEW_S * NS_PER_S, begin_ns, begin_ns + int(lasting_s * NS_PER_S)
    )
    with tempfile.TemporaryDirectory() as folder, faulty_server(JobServer(log).app) as server:
        os.environ["HOME"] = folder
        followed = Path(folder, "follow.ndjson")
        follow = await following(server, followed)
        key = SecretStr(server.key)
        remote = Remote(name="soak", app_url=server.url, api_url=server.url, key=key, key_origin="the soak")
        app = BtTuiApp(remote, job_id="job1")
        async with app.run_test(size=(100, 30)):
            await until(lambda: bool(app.screen.query(LogView)) and followed.stat().st_size > 0)
            server.set_faults(FAULTS)  # not before: a command ends if its first answer makes no sense
            soak = Soak(server, app, followed, psutil.Process(follow.pid), time.monotonic() + lasting_s)
            await asyncio.gather(soak.sample(), soak.interrupt())
            yield Figure("logs --follow: exit code", await follow.wait(), at_most=0)
            await until(lambda: shown_lines(app) == log.expected(), ENDING_S)
            for name, found in (("job screen", shown_lines(app)), ("logs --follow", printed_lines(followed))):
                wrong = (found - log.expected()).total() + (log.expected() - found).total()
                yield Figure(f"{name}: of {len(lines):,} lines missing or too many", wrong, at_most=0)
            yield Figure("job screen: still shown", isinstance(app.screen, JobScreen), at_least=1)
        for figure in soak.judged():
            yield figure


async def following(server: FaultyServer, output: Path) -> asyncio.subprocess.Process:
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
    """What happens to the dashboard and the command, and what is measured of them, until ``end_s``."""

    server: FaultyServer
    app: BtTuiApp
    followed: Path
    follow: psutil.Process
    end_s: float

    def __post_init__(self) -> None:
        self.samples: list[Sample] = []
        self.waits_s: dict[str, list[float]] = {}

    async def sample(self) -> None:
        """Look at memory and tasks every two seconds."""
        own = psutil.Process()
        while time.monotonic() < self.end_s:
            sizes = own.memory_info().rss, self.follow.memory_info().rss
            lines = len(self.app.screen.query_one(LogView).store)
            self.samples.append(Sample(*sizes, len(asyncio.all_tasks()), lines))
            await asyncio.sleep(2)

    async def interrupt(self) -> None:
        """Take the server away every minute, and see how soon everything is fresh after its return."""
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
        lines, size_bytes = len(view.store), self.followed.stat().st_size

        def is_read(name: str) -> bool:
            at = getattr(getattr(self.app.screen, "snapshot", None), name, None)
            return at is not None and at.timestamp() > returned_at

        signs: dict[str, Callable[[], bool]] = {
            "status": lambda: is_read("seen_at"),
            "metrics": lambda: is_read("metrics_at"),
            "log": lambda: len(view.store) > lines,
            "logs --follow": lambda: self.followed.stat().st_size > size_bytes,
        }

        async def wait_for(name: str, is_fresh: Callable[[], bool]) -> None:
            await until(is_fresh, 30)
            self.waits_s.setdefault(name, []).append(time.monotonic() - returned_s)

        await asyncio.gather(*(wait_for(name, is_fresh) for name, is_fresh in signs.items()))

    def judged(self) -> list[Figure]:
        """Return the figures of the outages and of the samples; the second half by the first."""
        warm = self.samples[int(len(self.samples) * WARM_UP_SHARE) :]
        halves = warm[: len(warm) // 2], warm[len(warm) // 2 :]
        lines, tasks, follow, own = (
            [median(getattr(sample, name) for sample in half) for half in halves]
            for name in ("lines", "tasks", "follow_bytes", "dashboard_bytes")
        )
        own_grown = own[1] - BYTES_A_LINE * (lines[1] - lines[0])
        against = "first half"
        return [
            *(
                Figure(
                    f"{name}: fresh after an outage, worst of {len(waits)}", max(waits), unit="s", at_most=5
                )
                for name, waits in self.waits_s.items()
            ),
            Figure("logs --follow: memory", follow[1] / MIB, follow[0] / MIB, against, "MiB", at_most=1.1),
            Figure("dashboard: memory", own_grown / MIB, own[0] / MIB, against, "MiB", at_most=1.1),
            Figure("dashboard: tasks more than before", tasks[1] - tasks[0], at_most=2),
        ]


def shown_lines(app: BtTuiApp) -> Counter[tuple[int, str, str | None]]:
    """Return the lines that the job screen holds."""
    entries = app.screen.query_one(LogView).model.entries(filtered=False)
    return Counter((e.timestamp_ns, e.message, e.replica) for e in entries if isinstance(e, LogLine))


def printed_lines(output: Path) -> Counter[tuple[int, str, str | None]]:
    """Return the lines that the command has printed."""
    records = map(json.loads, output.read_text(encoding="utf-8").splitlines())
    return Counter((int(each["timestamp"]), each["message"], each["replica"]) for each in records)


async def until(condition: Callable[[], bool], at_most_s: float = 60.0) -> None:
    """Wait for it, at most so long: what is judged afterwards shows whether it came."""
    begun_s = time.monotonic()
    while not condition() and time.monotonic() - begun_s < at_most_s:  # noqa: ASYNC110 – screens have no events
        await asyncio.sleep(0.1)
