"""Home where a part of a run cannot be read: what the other parts tell is told."""

import time

import pytest
from test_stranger import remote_of

from support.dashboard import text_of
from support.stranger import Answer, FakeBaseten, job
from support.stranger_runs import iso, training_log
from support.waiting import until
from tui.app import BtTuiApp


@pytest.mark.parametrize(
    "answer",
    [Answer(403, {"code": "NO", "message": "not for you"}), Answer(200, {"cpu_usage": "soon"})],
    ids=["refused", "garbage"],
)
async def test_home_tells_of_a_broken_loss_though_metrics_and_checkpoints_cannot_be_read(
    answer: Answer,
) -> None:
    with FakeBaseten() as server:
        now = time.time()
        server.jobs = [job("live", "RUNNING", name="their-run", created_at=iso(now - 700), node_count=1)]
        training_log(server, "live", now - 600, [*[1.0] * 40, *["nan"] * 20])
        server.on("GET", r".*/jobs/live/(metrics|checkpoints)", answer)
        app = BtTuiApp(remote_of(server))
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "loss is NaN" in text_of(app))
