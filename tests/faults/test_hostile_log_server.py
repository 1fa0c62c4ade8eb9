"""Every line exactly once, from a server that makes all the trouble it can; over real sockets."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from api_client import TrainingClient
from api_client.clock import SystemClock
from api_client.recordings.reading import Recording
from support.cli import Result
from support.faulty import FaultyServer
from support.log_server import NS_PER_S, FakeLog, FastClock, JobServer, ServedLine, hostile_lines
from support.remotes import remote_of
from tui.cli import main
from tui.readers.recorder import Recorder

LASTING_S, BURST_LINES = 40.0, 1_600
DRAIN_S = 120.0
"""Concurrent sleepers move the clock on while a request is under way, so wait for long."""
FAULTS = (
    "429", "429(retry-after=0)", "429(retry-date=0)", "500", "502(html)", "503", "reset@before",
    "reset@during", "cut@during", "truncated", "html", "empty", "stall=5ms", "slow=5ms",
)  # fmt: skip
EVERY = "|".join(f"{fault};skip={3 * number};times=1" for number, fault in enumerate(FAULTS * 8))
"""Every third request meets a fault."""


@contextmanager
def served(faulty: FaultyServer, clock: FastClock, *, seed: int, **how: Any) -> Iterator[FakeLog]:
    begin_ns = clock.server_ns()
    lines = hostile_lines(seed, begin_ns, LASTING_S, burst=BURST_LINES)
    log = FakeLog(lines, clock.server_ns, begin_ns, begin_ns + int(LASTING_S * NS_PER_S), **how)
    server = JobServer(log)
    faulty.app = server.app
    faulty.set_faults(EVERY)
    yield log
    assert len({*faulty.struck()}) == len(FAULTS)
    assert server.refused == []


@pytest.mark.proves("docs/logs.md", "Logs: every line exactly once")
def test_the_command_follows_to_the_end_and_then_reads_it_all(
    faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FastClock(skew_s=120.0)
    for name in ("now", "monotonic", "sleep"):
        monkeypatch.setattr(SystemClock, name, staticmethod(getattr(clock, name)))
    for name, value in faulty.environ().items():
        monkeypatch.setenv(name, value)

    def logs(*arguments: str) -> Result:
        code = main(("logs", "job1", "-o", "ndjson", *arguments))
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    odd = {"end": "inclusive", "mirrored": False, "default_direction": "asc"}
    with served(faulty, clock, seed=5, status="FAILED", **odd) as log:
        followed, read = logs("--follow", "--drain", f"{DRAIN_S:.0f}"), logs()
    assert (followed.code, read.code) == (3, 0), followed.err + read.err
    assert "job job1 ended: failed, waiting for late lines" in followed.err
    assert "returned HTML, not JSON (check the API URL); retrying" in followed.err
    for result in (followed, read):
        assert result.out.isascii()
        assert not [record for record in result.ndjson if "gap" in record]
        found = Counter((int(each["timestamp"]), each["message"], each["replica"]) for each in result.ndjson)
        assert found == log.expected()
        stamps = [int(each["timestamp"]) for each in result.ndjson if not each.get("late")]
        assert stamps == sorted(stamps)
    assert any(each.get("late") for each in followed.ndjson)
    assert not any(each.get("late") for each in read.ndjson)


@pytest.mark.proves("docs/recordings.md", "Recordings")
async def test_a_running_job_is_recorded_to_its_end(faulty: FaultyServer, tmp_path: Path) -> None:
    clock = FastClock()
    now_ns = clock.server_ns()
    stamps = [now_ns + 10 * step * NS_PER_S for step in range(-100, 10)]
    lines = [ServedLine(stamp, f"step {stamp}", arrives_ns=stamp) for stamp in stamps]
    faulty.app = JobServer(FakeLog(lines, clock.server_ns, stamps[0], stamps[-1] + 1, "FAILED")).app
    faulty.set_faults(
        "503;skip=2;times=1|reset@during;skip=5;times=2|html;skip=12;times=1|429;skip=20;times=1"
        "|redirect;paths=/checkpoints;skip=3;times=1|reset@before;paths=/queue_context;skip=1;times=9"
    )
    async with TrainingClient(remote_of(faulty), clock=clock) as client:
        recorder = Recorder(client, await client.jobs.find("job1"), tmp_path / "run.btrun")
        await recorder.run(follow=True)
    assert len(faulty.struck()) == 15
    with Recording(tmp_path / "run.btrun") as recording:
        assert len(list(recording.log.entries())) == recorder.line_count == len(lines)
        assert recording.job.current_status == "TRAINING_JOB_FAILED"
        assert recording.manifest.ended
