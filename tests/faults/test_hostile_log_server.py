"""Every line exactly once, from a server that makes all the trouble it can; over real sockets."""

import json
import os
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from api_client import LogEnd, LogGap, LogLine, TrainingClient
from support.log_server import NS_PER_S, FakeLog, FastClock, LogServer, hostile_lines, running_ns
from support.remotes import remote_of
from support.stranger import FAULTS

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0
LASTING_S = 40.0
BURST_LINES = 1_600
SPEED = 30.0
WORLDS = [
    {"seed": 1, "end": "exclusive", "skew_s": 120.0},
    {"seed": 2, "end": "inclusive", "skew_s": -120.0, "mirrored": False, "default_direction": "asc"},
    {"seed": 3, "end": "inclusive ms", "skew_s": 0.0, "status": "HIBERNATING"},
]


def served(clock: FastClock, *, seed: int, skew_s: float, **how: object) -> LogServer:
    begin_ns = clock.server_ns()
    lines = hostile_lines(seed, begin_ns, LASTING_S, burst=BURST_LINES)
    log = FakeLog(lines, clock.server_ns, begin_ns, begin_ns + int(LASTING_S * NS_PER_S), **how)
    return LogServer(log, fault_rate=0.3, seed=seed)


def seen(entries: list[LogLine | LogGap]) -> Counter:
    return Counter((e.timestamp_ns, e.message, e.replica) for e in entries if isinstance(e, LogLine))


@pytest.mark.parametrize("how", WORLDS, ids=lambda how: how["end"])
async def test_following_and_then_reading_it_all(how):
    clock = FastClock(how["skew_s"])
    with served(clock, **how) as server:
        async with TrainingClient(remote_of(server), clock=clock) as client:
            followed: list[LogLine | LogGap] = []
            end = None
            async for item in client.logs.follow("proj1", "job1"):
                assert end is None
                if isinstance(item, LogEnd):
                    end = item
                else:
                    followed += item.entries
            read = [
                entry
                async for batch in client.logs.history("proj1", "job1", start=_long_ago(clock))
                for entry in batch.entries
            ]
    assert end is not None
    assert seen(followed) == server.log.expected()
    assert seen(read) == server.log.expected()
    assert [entry for entry in [*followed, *read] if isinstance(entry, LogGap)] == []
    on_time = [entry.timestamp_ns for entry in followed if not entry.late]
    assert on_time == sorted(on_time)
    assert any(entry.late for entry in followed)
    stamps = [entry.timestamp_ns for entry in read]
    assert stamps == sorted(stamps)
    assert set(server.faults) == set(FAULTS)
    assert server.refusals == []


def _long_ago(clock: FastClock) -> datetime:
    return clock.now() - timedelta(days=20)


def test_the_command_follows_to_the_end_and_then_reads_it_all(clean_environ):
    """Processes, on a server whose minute lasts two seconds; every wait after a fault is a real one."""
    now_ns = running_ns(SPEED, skew_s=120.0)
    begin_ns = now_ns()
    finishes_ns = begin_ns + int(LASTING_S * NS_PER_S)
    lines = hostile_lines(5, begin_ns, LASTING_S, burst=BURST_LINES)
    log = FakeLog(lines, now_ns, begin_ns, finishes_ns, "FAILED", "inclusive")
    with LogServer(log, fault_rate=0.1, seed=5) as server:

        def logs(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-m", "tui", "logs", "job1", "-o", "ndjson", *arguments],
                cwd=ROOT,
                env=clean_environ | server.environ(),
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )

        followed = logs("--follow", "--drain", "2.5")
        read = logs()

    assert (followed.returncode, read.returncode) == (3, 0), followed.stderr + read.stderr
    assert "job job1 ended: failed, waiting for late lines" in followed.stderr
    for result in (followed, read):
        assert result.stdout.isascii()
        records = [json.loads(line) for line in result.stdout.splitlines()]
        assert not [record for record in records if "gap" in record]
        found = Counter((int(each["timestamp"]), each["message"], each["replica"]) for each in records)
        assert found == server.log.expected()
        stamps = [int(each["timestamp"]) for each in records if not each.get("late")]
        assert stamps == sorted(stamps)
    assert not any(json.loads(line).get("late") for line in read.stdout.splitlines())


@pytest.fixture
def clean_environ(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TZ": "UTC"}
