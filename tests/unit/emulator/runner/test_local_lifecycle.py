"""A local job from its creation to its end, and the demo's: a real distributed training of the package."""

from __future__ import annotations

import ast
from pathlib import Path
from secrets import token_hex

import pytest
from local_world import PROJECT, LocalWorld, job_spec, local_world

from api_client.emulator.demo_job import upload_demo_job
from api_client.models import JobStatus


async def test_a_job_completes_runs_again_and_is_gone_once_deleted(tmp_path: Path, world: LocalWorld) -> None:
    created = await world.create("job1", job_spec("echo $BT_TRAINING_JOB_ID"))
    assert (created.name, created.node_count, created.project_id) == ("a-job", 1, PROJECT.id)
    assert (await world.finished("job1")).error_message is None
    assert (
        " ".join(world.statuses("job1")).replace("TRAINING_JOB_", "") == "CREATED DEPLOYING RUNNING COMPLETED"
    )
    assert world.backend.events("job1")[-1].exit_code == 0
    assert (await world.backend.recreate("job1", "job2")).id == "job2"
    assert (await world.finished("job2")).current_status == JobStatus.COMPLETED
    assert [world.messages(job_id) for job_id in ("job1", "job2")] == [["job1"], ["job2"]]
    await world.create("job3", job_spec("echo here; sleep 1000"))
    await world.said("job3", "here")
    for job_id in ("job1", "job2", "job3"):
        await world.backend.delete(job_id)
        assert not world.backend.owns(job_id)
        assert world.records(job_id) == []
        assert not (tmp_path / "jobs" / job_id).exists()
    assert world.backend.jobs() == []


async def test_commands_run_in_order_in_one_shell_until_one_fails(world: LocalWorld) -> None:
    failing_node = 'if [ "$BT_NODE_RANK" = 1 ]; then exit 7; fi; exec sleep 1000'
    jobs = {
        ("mkdir sub && cd sub", "export WORD=kept", "echo ${PWD##*/} $WORD", "exit 3"): "exit code 3",
        ("set -e\nfalse\necho never",): "exit code 1",
        ("no-such-command-here",): "exit code 127",
        ("kill -9 $$",): "exit code 137 (SIGKILL)",
    }
    for number, commands in enumerate(jobs):
        await world.create(f"job{number}", job_spec(*commands, "echo never"))
    await world.create("nodes", job_spec(failing_node, nodes=3))
    for number, expected in enumerate(jobs.values()):
        job = await world.finished(f"job{number}")
        assert (job.current_status, job.error_message) == (JobStatus.FAILED, f"node-0: {expected}")
        assert "never" not in world.messages(job.id)
    assert world.backend.events("job0")[-1].exit_code == 3
    assert world.messages("job0") == ["sub kept"]
    assert (await world.finished("nodes")).error_message == "node-1: exit code 7"  # and the others end


@pytest.mark.proves("docs/emulator.md", "How a job's environment differs")
async def test_a_waiting_job_survives_a_restart(tmp_path: Path) -> None:
    async with local_world(tmp_path, max_running_nodes=1) as world:
        await world.create("running", job_spec("sleep 1000"))
        await world.create("waiting", job_spec("echo my turn"))
    async with local_world(tmp_path, max_running_nodes=1) as world:
        assert (await world.finished("waiting")).current_status == JobStatus.COMPLETED
        assert world.messages("waiting") == ["my turn"]
        assert world.backend.job("running").current_status == JobStatus.FAILED


@pytest.mark.proves("README.md", "Try it")
@pytest.mark.proves("docs/emulator.md", "Several nodes")
async def test_two_ranks_train_together(world: LocalWorld) -> None:
    job_id = token_hex(4)  # it decides on which port the nodes meet
    job = await world.run(job_id, upload_demo_job(world.stores.blobs, STEPS="20", PACE_S="0"))
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
    resumed = upload_demo_job(world.stores.blobs, STEPS="30", PACE_S="0")
    source = {"typ": "baseten_named_checkpoint", "checkpoint_name": "checkpoint-20", "job_id": job_id}
    resumed["runtime"]["load_checkpoint_config"] = {"enabled": True, "checkpoints": [source]}
    again = await world.run(f"{job_id}r", resumed)
    assert again.current_status == JobStatus.COMPLETED, world.messages(again.id)
    leader = world.messages(again.id, "node-0")
    assert "INFO resuming from checkpoint-20" in leader
    (loss,) = [ast.literal_eval(line)["loss"] for line in leader if line.startswith("{'loss'")]
    assert loss < losses[-1]["loss"]
