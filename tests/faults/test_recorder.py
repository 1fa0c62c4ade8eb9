"""A run is recorded while it runs, through the errors of a server, until its end."""

from __future__ import annotations

from pathlib import Path

from api_client.client import TrainingClient
from api_client.recordings.reading import Recording
from support.faulty import FaultyServer
from support.log_server import NS_PER_S, FakeLog, FastClock, JobServer, ServedLine
from support.remotes import remote_of
from tui.readers.recorder import Recorder

FAULTS = "503;skip=2;times=1|reset@during;skip=5;times=2|html;skip=12;times=1|429;skip=20;times=1"


async def test_a_running_job_is_followed_to_its_end(faulty: FaultyServer, tmp_path: Path) -> None:
    clock = FastClock()
    now_ns = clock.server_ns()
    stamps = [now_ns + 10 * step * NS_PER_S for step in range(-100, 10)]
    lines = [ServedLine(stamp, f"step {stamp}", arrives_ns=stamp) for stamp in stamps]
    faulty.app = JobServer(FakeLog(lines, clock.server_ns, stamps[0], stamps[-1] + 1, "FAILED")).app
    faulty.set_faults(FAULTS)
    async with TrainingClient(remote_of(faulty), clock=clock) as client:
        recorder = Recorder(client, await client.jobs.find("job1"), tmp_path / "run.btrun")
        await recorder.run(follow=True)
    assert len(faulty.struck()) == 5
    with Recording(tmp_path / "run.btrun") as recording:
        assert len(list(recording.log.entries())) == recorder.line_count == len(lines)
        assert recording.job.current_status == "TRAINING_JOB_FAILED"
        assert recording.manifest.ended
