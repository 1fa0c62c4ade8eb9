"""A run is recorded while it runs, through the errors of a server, until its end."""

from __future__ import annotations

import time
from pathlib import Path

from fast_clock import FastClock

from api_client.client import TrainingClient
from api_client.recordings.reading import Recording
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job
from support.fake_runs import iso, training_log
from support.remotes import remote_of
from tui.readers.recorder import Recorder

LOSSES: list[float | str] = [3.0 - step / 200 for step in range(110)]


async def test_a_running_job_is_followed_to_its_end(tmp_path: Path) -> None:
    begin_s = time.time() - 4000
    running = job("run1", "RUNNING", created_at=iso(begin_s), updated_at=iso(begin_s))
    polls = iter(range(1_000_000))
    with FakeBaseten(fault_rate=0.1, seed=3) as baseten:
        baseten.jobs = [running]
        training_log(baseten, "run1", begin_s, LOSSES[:100])

        def ending(_asked: ReceivedRequest) -> Answer:
            if next(polls) == 5:
                training_log(baseten, "run1", begin_s, LOSSES)
                running["current_status"] = "TRAINING_JOB_FAILED"
            return Answer({"training_job": running})

        baseten.on("GET", "/v1/training_projects/proj1/jobs/run1", ending)
        async with TrainingClient(remote_of(baseten), clock=FastClock()) as client:
            recorder = Recorder(client, await client.jobs.find("run1"), tmp_path / "run.btrun")
            await recorder.run(follow=True)
    with Recording(tmp_path / "run.btrun") as recording:
        assert len(list(recording.log.entries())) == recorder.line_count == 110
        assert recording.job.current_status == "TRAINING_JOB_FAILED"
        assert recording.manifest.ended
