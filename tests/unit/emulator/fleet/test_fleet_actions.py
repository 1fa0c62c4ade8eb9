"""What users do to scripted jobs holds, now and after a restart."""

from __future__ import annotations

import pytest
from fleet_worlds import EPOCH, MINUTE_NS, World, ns

from api_client.emulator.backend import LogQuery
from api_client.models import JobStatus

LIVE = "llama-70b-sft-v3"


async def test_stop_ends_a_run_and_its_lines(world: World) -> None:
    job = world.after(60).named(LIVE)
    stopped = await world.fleet.stop(job.id)
    assert stopped.current_status == JobStatus.STOPPED
    world.after(600)
    last = world.lines(LIVE, direction="desc", limit=4)
    assert {line["message"] for line in last} == {"Received SIGTERM, exiting"}
    assert all(int(line["timestamp"]) < ns(EPOCH) + 2 * MINUTE_NS for line in last)
    assert world.named(LIVE).updated_at == stopped.updated_at
    assert world.fleet.events(job.id)[-1].exit_code == 143


async def test_a_stopped_run_takes_no_further_samples_or_checkpoints(world: World) -> None:
    job = world.named(LIVE)
    saved = len(world.fleet.checkpoints(job.id))
    await world.fleet.stop(job.id)
    world.after(7200)
    assert len(world.fleet.checkpoints(job.id)) == saved
    found = world.fleet.metrics(job.id, start_s=EPOCH.timestamp() - 600, end_s=None, step_s=10)
    assert found.cpu_usage[-1].timestamp <= EPOCH


async def test_a_finished_job_cannot_be_stopped_again(world: World) -> None:
    job = world.named("llama-70b-sft-v2")
    assert await world.fleet.stop(job.id) == job


async def test_a_waiting_job_stops_without_ever_running(world: World) -> None:
    job = await world.fleet.stop(world.named("llama-8b-ablate").id)
    assert job.current_status == JobStatus.STOPPED
    world.after(3600)
    assert world.named("llama-8b-ablate").current_status == JobStatus.STOPPED
    assert world.lines("llama-8b-ablate") == []


async def test_what_was_done_survives_a_restart(world: World) -> None:
    stopped = await world.fleet.stop(world.named(LIVE).id)
    deleted = world.named("whisper-ft").id
    await world.fleet.delete(deleted)
    await world.fleet.recreate(world.named("qwen3-grpo-6").id, "again001")
    changed = await world.fleet.update(world.named("qwen3-grpo-8").id, {"priority": 9})
    before = {job.id: job for job in world.fleet.jobs()}
    world.reopen()
    assert {job.id: job for job in world.fleet.jobs()} == before
    assert world.fleet.job(stopped.id).current_status == JobStatus.STOPPED
    assert not world.fleet.owns(deleted)
    assert world.fleet.job("again001").name == "qwen3-grpo-6"
    assert world.fleet.job(changed.id).priority == 9


async def test_a_recreated_job_lives_through_it_all_again(world: World) -> None:
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


async def test_a_run_that_was_stopped_runs_to_its_end_when_recreated(world: World) -> None:
    await world.fleet.recreate(world.named("llama-8b-lora-draft").id, "again003")
    assert world.after(4000).fleet.job("again003").current_status == JobStatus.COMPLETED


async def test_an_update_changes_only_what_it_names(world: World) -> None:
    job = world.named("qwen3-grpo-8")
    changed = await world.fleet.update(job.id, {"availability_model": "spot"})
    assert (changed.priority, changed.availability_model) == (job.priority, "spot")


async def test_a_deleted_job_is_gone(world: World) -> None:
    job = world.named(LIVE)
    await world.fleet.delete(job.id)
    assert job.id not in {left.id for left in world.fleet.jobs()}
    with pytest.raises(LookupError):
        world.fleet.job(job.id)
