"""Every line exactly once, from a server that makes all the trouble it can; over real sockets."""

from collections import Counter
from datetime import datetime, timedelta

import pytest

from api_client import LogEnd, LogGap, LogLine, TrainingClient
from api_client.clock import SystemClock
from support.cli import Result
from support.fake_baseten import FAULTS
from support.log_server import NS_PER_S, FakeLog, FastClock, LogServer, hostile_lines
from support.remotes import remote_of
from tui.cli import main

LASTING_S = 40.0
BURST_LINES = 1_600
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


def test_the_command_follows_to_the_end_and_then_reads_it_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FastClock(skew_s=120.0)
    for name in ("now", "monotonic", "sleep"):
        monkeypatch.setattr(SystemClock, name, staticmethod(getattr(clock, name)))
    with served(clock, seed=5, skew_s=120.0, end="inclusive", status="FAILED") as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)

        def logs(*arguments: str) -> Result:
            code = main(("logs", "job1", "-o", "ndjson", *arguments))
            said = capsys.readouterr()
            return Result(code, said.out, said.err)

        followed = logs("--follow", "--drain", "30")
        read = logs()
    assert (followed.code, read.code) == (3, 0), followed.err + read.err
    assert "job job1 ended: failed, waiting for late lines" in followed.err
    for result in (followed, read):
        assert result.out.isascii()
        assert not [record for record in result.ndjson if "gap" in record]
        found = Counter((int(each["timestamp"]), each["message"], each["replica"]) for each in result.ndjson)
        assert found == server.log.expected()
        stamps = [int(each["timestamp"]) for each in result.ndjson if not each.get("late")]
        assert stamps == sorted(stamps)
    assert not any(each.get("late") for each in read.ndjson)
