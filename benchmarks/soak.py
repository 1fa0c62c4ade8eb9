"""Ten minutes against a server that fails three times in ten: ``python benchmarks/soak.py [--minutes 10]``.

The server (``soak_server.py``, a process of its own that knows nothing of ours) answers 30% of all requests
with a fault and goes away for eight seconds every minute. Meanwhile the dashboard (headless, on the log of a
running job), Home's feed, ``bt-tui logs --follow`` and now and then a ``bt-tui push`` live with it. Wanted:
the dashboard alive, both logs exact, no push that creates two jobs, everything fresh again within five
seconds of each return, memory and tasks no more in the second half than in the first. Days instead of
minutes, in a model's time, are ``soak_simulated.py``'s.

Prints a row for each wish; the exit code is 1 if one is not met.
"""

# ruff: noqa: E402, ASYNC110 (the benchmarks are no package; what the dashboard shows has no event to wait for)

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import psutil
from pydantic import SecretStr
from soak_rows import FAULT_RATE, MEMORY_RATIO, SKEW_S, Row, told
from soak_server import KEY

from api_client import LogLine, Remote
from tui.app import BtTuiApp
from tui.feeds.fleet import FleetFeed
from tui.readers.session import Session
from tui.screens.job.screen import JobScreen
from tui.widgets.log_view.view import LogView

AWAY_S = 8.0
AWAY_EVERY_S = 60.0
PUSH_EVERY_S = 45.0
SAMPLE_EVERY_S = 2.0
POLL_EVERY_S = 0.05
ENDING_S = 100.0
"""Of the minutes, what is left for stragglers and the streams' ends."""

RECOVERY_S = 5.0
WARM_UP_PART = 0.2
BYTES_PER_LINE = 300
"""What the dashboard may hold of each line, beyond what it held before."""

TASKS_MORE = 2
CONFIG = """from truss_train import Compute, Image, Runtime, TrainingJob, TrainingProject

job = TrainingJob(
    image=Image(base_image="python:3.12"), compute=Compute(), runtime=Runtime(start_commands=["true"])
)
project = TrainingProject(name="soak", job=job)
"""


@dataclass
class Sample:
    """One look at both processes; sizes in bytes."""

    dashboard_bytes: int
    follow_bytes: int
    tasks: int
    lines: int


@dataclass
class Soak:
    """One run. ``pushes`` has the exit code of each name; ``waits_s`` who was fresh again how late."""

    url: str
    folder: Path
    lasting_s: float
    pushes: dict[str, int] = field(default_factory=dict)
    waits_s: dict[str, list[float]] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    home_at: float = 0.0
    began_s: float = field(default_factory=time.monotonic)

    @property
    def environ(self) -> dict[str, str]:
        """What leads a command to the server."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "BASETEN_API_KEY": KEY,
            "BASETEN_REMOTE_URL": self.url,
            "BASETEN_MANAGEMENT_API_URL_OVERRIDE": self.url,
        }

    @property
    def remote(self) -> Remote:
        """The server, as the dashboard takes it."""
        return Remote(
            name="soak", app_url=self.url, api_url=self.url, key=SecretStr(KEY), key_origin="the soak"
        )

    def is_running(self) -> bool:
        """Whether the job still runs."""
        return time.monotonic() - self.began_s < self.lasting_s

    def control(self, query: str = "") -> Any:
        """Tell the server something, and hear what it has to tell."""
        with urllib.request.urlopen(f"{self.url}/_control?{query}") as answer:
            return json.load(answer)

    async def command(self, *arguments: str, out: Path) -> asyncio.subprocess.Process:
        """Start bt-tui; its stdout goes to a file."""
        with out.open("wb") as stdout, out.with_suffix(".err").open("wb") as stderr:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tui",
                *arguments,
                cwd=ROOT,
                env=self.environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )

    async def push_now_and_then(self) -> None:
        """Push small jobs, each of its own name, once each."""
        config = self.folder / "code" / "config.py"
        config.parent.mkdir()
        config.write_text(CONFIG)
        while self.is_running():
            name = f"pushed-{len(self.pushes)}"
            out = self.folder / f"{name}.out"
            process = await self.command(
                "push", str(config), "--job-name", name, "--skip-checks", "-y", out=out
            )
            self.pushes[name] = await process.wait()
            await asyncio.sleep(PUSH_EVERY_S)

    async def take_away(self, app: BtTuiApp, follow_file: Path) -> None:
        """Take the server away every minute, and see how soon everything is fresh after its return."""
        await asyncio.sleep(AWAY_EVERY_S / 2)
        while self.is_running() and self.lasting_s - (time.monotonic() - self.began_s) > AWAY_S + 20:
            began = time.monotonic()
            await asyncio.to_thread(self.control, f"away_s={AWAY_S}")
            await asyncio.sleep(AWAY_S)
            await self._until_fresh(app, follow_file)
            await asyncio.sleep(max(AWAY_EVERY_S - (time.monotonic() - began), 0))

    async def _until_fresh(self, app: BtTuiApp, follow_file: Path) -> None:
        returned_s, returned_at = time.monotonic(), time.time()
        lines, size_bytes = len(_view(app).store), _size_bytes(follow_file)
        signs: dict[str, Callable[[], bool]] = {
            "Home's lists": lambda: self.home_at > returned_at,
            "job's status": lambda: _is_after(app, "seen_at", returned_at),
            "job's metrics": lambda: _is_after(app, "metrics_at", returned_at),
            "log viewer": lambda: len(_view(app).store) > lines,
            "logs --follow": lambda: _size_bytes(follow_file) > size_bytes,
        }
        while signs and time.monotonic() - returned_s < AWAY_EVERY_S / 2:
            for name in [name for name, is_fresh in signs.items() if is_fresh()]:
                self.waits_s.setdefault(name, []).append(time.monotonic() - returned_s)
                del signs[name]
            await asyncio.sleep(POLL_EVERY_S)
        for name in signs:
            self.waits_s.setdefault(name, []).append(float("inf"))

    async def sample(self, app: BtTuiApp, follow_pid: int) -> None:
        """Look at memory and tasks until the job ends."""
        own, follow = psutil.Process(), psutil.Process(follow_pid)
        while self.is_running():
            tasks = len(asyncio.all_tasks())
            lines = len(_view(app).store)
            self.samples.append(Sample(own.memory_info().rss, follow.memory_info().rss, tasks, lines))
            await asyncio.sleep(SAMPLE_EVERY_S)

    async def run(self, expected: Counter[tuple[int, str, str]]) -> list[Row]:
        """The whole soak."""
        follow_file = self.folder / "follow.ndjson"
        follow = await self.command("logs", "job1", "--follow", "-o", "ndjson", out=follow_file)
        app = BtTuiApp(self.remote)
        async with app.run_test(size=(100, 30)) as pilot:
            await _until(lambda: _first_row(app))
            await pilot.press("enter")
            await _until(lambda: isinstance(app.screen, JobScreen) and bool(app.screen.query(LogView)))
            await pilot.press("2")
            session = Session(self.remote)
            home = asyncio.create_task(FleetFeed(session, self._home_published).run())
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.sample(app, follow.pid))
                tasks.create_task(self.take_away(app, follow_file))
                tasks.create_task(self.push_now_and_then())
            exit_code = await asyncio.wait_for(follow.wait(), ENDING_S * 3)
            await _until(lambda: _lines(app) == expected, at_most_s=ENDING_S)
            viewed = _lines(app)
            is_alive = app.is_running and isinstance(app.screen, JobScreen)
            home.cancel()
            await asyncio.gather(home, return_exceptions=True)
            await session.aclose()
        followed = _printed(follow_file)
        return [
            Row("dashboard alive", "yes" if is_alive else "no", is_alive),
            _exact("log viewer exact", viewed, expected),
            _exact("logs --follow exact", followed, expected),
            Row("logs --follow ends by itself", f"exit code {exit_code}", exit_code == 0),
            *self._judged_pushes(),
            *self._judged_returns(),
            *self._judged_samples(),
        ]

    def _home_published(self, _snapshot: object) -> None:
        self.home_at = time.time()

    def _judged_pushes(self) -> list[Row]:
        told = self.control()
        made = Counter(told["created"])
        done = [name for name, code in self.pushes.items() if code == 0]
        is_once = all(made[name] == 1 for name in done) and all(made[name] <= 1 for name in self.pushes)
        most = max(made.values(), default=0)
        measured = f"{len(done)} of {len(self.pushes)} said done; most jobs of one push: {most}"
        faults = sum(told["faults"].values())
        asked = sum(told["asked"].values())
        return [
            Row("a push creates one job", measured, is_once and bool(done)),
            Row("nothing off the published API", f"{len(told['refused'])} requests", not told["refused"]),
            Row("faults", f"{faults:,} of {asked:,} requests", faults > 0),
        ]

    def _judged_returns(self) -> list[Row]:
        return [
            Row(
                f"{name} fresh within {RECOVERY_S:g} s",
                f"{statistics.median(waits_s):.1f} s, at most {max(waits_s):.1f} s of {len(waits_s)}",
                max(waits_s) <= RECOVERY_S,
            )
            for name, waits_s in sorted(self.waits_s.items())
        ]

    def _judged_samples(self) -> list[Row]:
        warm = self.samples[int(len(self.samples) * WARM_UP_PART) :]
        first, second = warm[: len(warm) // 2], warm[len(warm) // 2 :]
        follow = _median(one.follow_bytes for one in second) / _median(one.follow_bytes for one in first)
        grown = _median(one.dashboard_bytes for one in second) - _median(one.dashboard_bytes for one in first)
        lines = _median(one.lines for one in second) - _median(one.lines for one in first)
        base = _median(one.dashboard_bytes for one in first)
        tasks = [_median(one.tasks for one in half) for half in (first, second)]
        is_flat = grown <= base * (MEMORY_RATIO - 1) + lines * BYTES_PER_LINE
        return [
            Row("memory of logs --follow, second half", f"{follow:.2f} of the first", follow <= MEMORY_RATIO),
            Row(
                "memory of the dashboard, second half",
                f"{(base + grown) / base:.2f} of the first ({grown / 2**20:+.1f} MiB, {lines:+,.0f} lines)",
                is_flat,
            ),
            Row(
                "tasks of the dashboard",
                f"{tasks[0]:g}, then {tasks[1]:g}",
                tasks[1] <= tasks[0] + TASKS_MORE,
            ),
        ]


def _view(app: BtTuiApp) -> LogView:
    return app.screen.query_one("#log-view", LogView)


def _first_row(app: BtTuiApp) -> bool:
    text = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
    return "soaked" in text


def _is_after(app: BtTuiApp, name: str, moment: float) -> bool:
    snapshot = app.screen.snapshot if isinstance(app.screen, JobScreen) else None
    at_moment = getattr(snapshot, name, None)
    return at_moment is not None and at_moment.timestamp() > moment


def _lines(app: BtTuiApp) -> Counter[tuple[int, str, str]]:
    entries = _view(app).model.entries(filtered=False)
    return Counter((e.timestamp_ns, e.message, e.replica or "") for e in entries if isinstance(e, LogLine))


def _printed(path: Path) -> Counter[tuple[int, str, str]]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return Counter((int(each["timestamp"]), each["message"], each["replica"]) for each in records)


def _exact(wish: str, found: Counter[tuple[int, str, str]], expected: Counter[tuple[int, str, str]]) -> Row:
    missing, more = (expected - found).total(), (found - expected).total()
    return Row(wish, f"{found.total():,} lines, {missing} missing, {more} too many", found == expected)


def _size_bytes(path: Path) -> int:
    return path.stat().st_size


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)


async def _until(condition: Callable[[], bool], at_most_s: float = 60.0) -> None:
    """Wait for it, at most so long; what is judged afterwards tells whether it came."""
    began_s = time.monotonic()
    while not condition() and time.monotonic() - began_s < at_most_s:
        await asyncio.sleep(POLL_EVERY_S * 10)


async def soak(minutes: float, seed: int) -> list[Row]:
    """The soak in real time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines_file = folder / "lines.json"
        lasting_s = max(minutes * 60 - ENDING_S, 45.0)
        options = {
            "seed": seed,
            "lasting_s": lasting_s,
            "skew_s": SKEW_S,
            "fault_rate": FAULT_RATE,
            "lines": str(lines_file),
        }
        server = await asyncio.create_subprocess_exec(
            sys.executable,
            str(ROOT / "benchmarks/soak_server.py"),
            json.dumps(options),
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert server.stdout is not None
            port = int(await server.stdout.readline())
            expected = Counter(
                (stamp, text, node) for stamp, text, node in json.loads(lines_file.read_text())
            )
            os.environ["HOME"] = name
            return await Soak(f"http://127.0.0.1:{port}", folder, lasting_s).run(expected)
        finally:
            server.terminate()
            await server.wait()


def main() -> int:
    """Soak, print what was measured, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="of real time")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    return told(asyncio.run(soak(options.minutes, options.seed)))


if __name__ == "__main__":
    sys.exit(main())
