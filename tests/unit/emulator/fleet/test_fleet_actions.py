"""What users do to simulated jobs holds, now and after a restart."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fleet_worlds import EPOCH, MINUTE_NS, World

from api_client.clock import epoch_ns as ns
from api_client.emulator.backend import LogQuery
from api_client.models import JobStatus

LIVE = "llama-70b-sft-v3"


async def test_stop_ends_a_run_its_lines_samples_and_checkpoints(world: World) -> None:
    job = world.after(60).named(LIVE)
    saved = len(world.fleet.checkpoints(job.id))
    stopped = await world.fleet.stop(job.id)
    assert stopped.current_status == JobStatus.STOPPED
    last = world.after(600).lines(LIVE, direction="desc", limit=4)
    assert {line["message"] for line in last} == {"Received SIGTERM, exiting"}
    assert all(int(line["timestamp"]) < ns(EPOCH) + 2 * MINUTE_NS for line in last)
    assert world.after(7200).fleet.job(job.id) == await world.fleet.stop(job.id) == stopped
    assert world.fleet.events(job.id)[-1].exit_code == 143
    assert len(world.fleet.checkpoints(job.id)) == saved
    found = world.fleet.metrics(job.id, start_s=EPOCH.timestamp() - 600, end_s=None, step_s=10)
    assert found.cpu_usage[-1].timestamp <= EPOCH + timedelta(seconds=60)


async def test_what_was_done_survives_a_restart(world: World) -> None:
    stopped = await world.fleet.stop(world.named(LIVE).id)
    deleted = world.named("whisper-ft").id
    await world.fleet.delete(deleted)
    await world.fleet.recreate(world.named("qwen3-grpo-6").id, "again001")
    waiting = world.named("qwen3-grpo-8")
    spot = await world.fleet.update(waiting.id, {"availability_model": "spot"})
    assert (spot.priority, spot.availability_model) == (waiting.priority, "spot")
    changed = await world.fleet.update(waiting.id, {"priority": 9})
    before = {job.id: job for job in world.fleet.jobs()}
    world.reopen()
    assert {job.id: job for job in world.fleet.jobs()} == before
    assert world.fleet.job(stopped.id).current_status == JobStatus.STOPPED
    assert not world.fleet.owns(deleted)
    with pytest.raises(LookupError):
        world.fleet.job(deleted)
    assert world.fleet.job("again001").name == "qwen3-grpo-6"
    assert world.fleet.job(changed.id).priority == 9


async def test_a_recreated_job_lives_through_it_all_again_also_one_that_was_stopped(world: World) -> None:
    stopped = await world.fleet.recreate(world.named("llama-8b-lora-draft").id, "again003")
    again = await world.fleet.recreate(world.named("whisper-ft").id, "again002")
    assert again.current_status == JobStatus.CREATED
    assert again.created_at == world.now
    assert world.fleet.owns("again002")
    world.after(300)
    assert world.fleet.job("again002").current_status == JobStatus.RUNNING
    lines = world.fleet.logs("again002", LogQuery(0, world.now_ns, "asc", limit=10**6))
    assert lines[0]["message"].startswith("[demo data]")
    assert int(lines[0]["timestamp"]) >= ns(EPOCH)
    world.after(3600)
    assert world.fleet.job("again002").current_status == JobStatus.COMPLETED
    assert world.after(4000).fleet.job(stopped.id).current_status == JobStatus.COMPLETED
