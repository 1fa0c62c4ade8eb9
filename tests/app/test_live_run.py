"""The whole way by keyboard on a real emulator with a real job: Home, the job, its live view, stop."""

from __future__ import annotations

from typing import Any

from api_client import TrainingClient
from api_client.emulator.processes import EmulatorChild
from support.dashboard import text_of
from support.remotes import remote_of
from support.waiting import to_screen, until
from tui.app import BtTuiApp
from tui.screens.dialogs import StopScreen
from tui.screens.job.screen import JobScreen

TRAINING = (
    "for step in $(seq 1 600); do"
    " echo \"{'loss': $((3000 - step - 7 * BT_NODE_RANK)).5} step $step/600\"; sleep 0.2; done"
)
"""The nodes say different things: what several ranks say alike is folded into one line."""
JOB: dict[str, Any] = {
    "name": "two-nodes",
    "image": {"base_image": "python:3.11"},
    "compute": {"node_count": 2, "cpu_count": 1, "memory": "1Gi"},
    "runtime": {
        "start_commands": [
            "mkdir -p $BT_CHECKPOINT_DIR/checkpoint-5",
            "echo 1 > $BT_CHECKPOINT_DIR/checkpoint-5/model.bin",
            TRAINING,
        ],
        "checkpointing_config": {"enabled": True},
    },
}


async def test_watch_a_two_node_job_and_stop_it() -> None:
    with EmulatorChild(world="empty") as emulator:
        remote = remote_of(emulator)
        async with TrainingClient(remote) as client:
            project = await client.projects.upsert("real")
            job = await client.jobs.create(project.id, JOB)
            app = BtTuiApp(remote)
            async with app.run_test(size=(80, 24), notifications=True) as pilot:
                await until(pilot, lambda: "two-nodes" in text_of(app) and "running" in text_of(app))
                await to_screen(pilot, JobScreen, "enter")
                await until(pilot, lambda: "RUNNING" in text_of(app) and "loss 2" in text_of(app))
                await until(pilot, lambda: " n0 " in text_of(app) and " n1 " in text_of(app))
                await until(pilot, lambda: "checkpoint-5" in text_of(app))
                await pilot.press("right_square_bracket")
                await until(pilot, lambda: "Log node-0" in text_of(app))
                assert " n1 " not in text_of(app)
                await to_screen(pilot, StopScreen, "escape", "s")
                await pilot.press("y")
                await until(pilot, lambda: "STOPPED" in text_of(app))
                await until(pilot, lambda: "complete" in text_of(app))
                await pilot.press("escape")
                await until(pilot, lambda: "stopped" in text_of(app))
            assert (await client.jobs.get(project.id, job.id)).current_status == "TRAINING_JOB_STOPPED"
