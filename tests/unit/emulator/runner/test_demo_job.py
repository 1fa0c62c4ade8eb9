"""The demo job: a real distributed training that ships with the package."""

from __future__ import annotations

import ast
from pathlib import Path
from secrets import token_hex

from local_world import local_world

from api_client.emulator.world import demo_job_spec
from api_client.models import JobStatus


async def test_two_ranks_train_together_and_every_run_gives_the_same_losses(tmp_path: Path) -> None:
    job_ids = [token_hex(4), token_hex(4)]  # The id decides on which port the nodes meet.
    losses = []
    async with local_world(tmp_path) as world:
        for job_id in job_ids:
            await world.create(job_id, demo_job_spec(steps=20, pace_s=0))
        for job_id in job_ids:
            job = await world.finished(job_id)
            assert job.current_status == JobStatus.COMPLETED, world.messages(job_id)
            leader, other = (world.messages(job_id, f"node-{rank}") for rank in (0, 1))
            entries = [ast.literal_eval(line) for line in leader if line.startswith("{'loss'")]
            losses.append(entries)
            assert any("| 20/20 [" in line for line in leader)
            assert any(line.startswith("{'eval_loss'") for line in leader)
            assert any("rank 1" in line for line in other)
        names = [checkpoint.checkpoint_id for checkpoint in world.backend.checkpoints(job_ids[0])]
        assert sorted(names) == ["checkpoint-10", "checkpoint-15", "checkpoint-20", "checkpoint-5"]
        assert {file.node_rank for file in world.backend.checkpoint_files(job_ids[0])} == {0, 1}
    assert losses[0] == losses[1]
    assert set(losses[0][0]) == {"loss", "grad_norm", "learning_rate", "epoch"}
    assert losses[0][-1]["loss"] < losses[0][0]["loss"] < 3
