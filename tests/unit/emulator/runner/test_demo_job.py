"""The demo job: a real distributed training that ships with the package."""

from __future__ import annotations

import ast
from secrets import token_hex

from local_world import LocalWorld

from api_client.emulator.world import demo_job_spec
from api_client.models import JobStatus


async def test_two_ranks_train_together(world: LocalWorld) -> None:
    job_id = token_hex(4)  # it decides on which port the nodes meet
    job = await world.run(job_id, demo_job_spec(steps=20, pace_s=0))
    assert job.current_status == JobStatus.COMPLETED, world.messages(job_id)
    leader, other = (world.messages(job_id, f"node-{rank}") for rank in (0, 1))
    losses = [ast.literal_eval(line) for line in leader if line.startswith("{'loss'")]
    assert set(losses[0]) == {"loss", "grad_norm", "learning_rate", "epoch"}
    assert losses[-1]["loss"] < losses[0]["loss"] < 3
    assert any("| 20/20 [" in line for line in leader)
    assert any(line.startswith("{'eval_loss'") for line in leader)
    assert any("rank 1" in line for line in other)
    names = {checkpoint.checkpoint_id for checkpoint in world.backend.checkpoints(job_id)}
    assert names == {"checkpoint-5", "checkpoint-10", "checkpoint-15", "checkpoint-20"}
    assert {file.node_rank for file in world.backend.checkpoint_files(job_id)} == {0, 1}
