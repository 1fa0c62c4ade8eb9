"""A demo world as large as one wants it: every job of it can be opened like any other."""

from __future__ import annotations

from itertools import pairwise

from fleet_worlds import EPOCH, World

from api_client.emulator.backend import LogQuery
from api_client.emulator.fleet import FleetBackend, SimClock
from api_client.emulator.world_size import WorldSize
from api_client.models import JobStatus

NS_PER_S = 1_000_000_000


def _large(world: World, size: WorldSize) -> FleetBackend:
    return FleetBackend(world.database, sim_clock=SimClock(EPOCH, 1.0), now=lambda: world.now, size=size)


def test_further_jobs_lie_in_further_projects_and_have_logs(world: World) -> None:
    usual = len(world.fleet.jobs())
    fleet = _large(world, WorldSize(jobs=600, projects=40))
    jobs = fleet.jobs()
    assert len(jobs) == usual + 600
    assert len({job.id for job in jobs}) == len(jobs)
    projects = {project.id: project.name for project in fleet.demo_projects()}
    assert len(projects) == 47
    assert {job.project_id for job in jobs} == projects.keys()
    further = [job for job in jobs if (job.name or "")[-5:].isdigit()]
    assert len(further) == 600
    assert 1 <= sum(job.current_status == JobStatus.RUNNING for job in further) <= 6
    ended = next(job for job in further if job.current_status == JobStatus.COMPLETED)
    assert fleet.job(ended.id) == ended
    begun = ended.created_at
    assert begun is not None
    start_ns = int(begun.timestamp() * NS_PER_S)
    assert fleet.logs(ended.id, LogQuery(start_ns, start_ns + 600 * NS_PER_S, "asc", limit=5))


def test_a_talkative_job_logs_as_many_lines_a_second_as_were_asked_for(world: World) -> None:
    fleet = _large(world, WorldSize(log_lines_per_s=500))
    job = next(job for job in fleet.jobs() if job.name == "titan-500-lines")
    end_ns = int(world.now.timestamp() * NS_PER_S)
    lines = fleet.logs(job.id, LogQuery(end_ns - 2 * NS_PER_S, end_ns, "asc", limit=5000))
    assert 950 <= len(lines) <= 1050
    assert all(int(one["timestamp"]) <= int(two["timestamp"]) for one, two in pairwise(lines))
    assert len({line["replica"] for line in lines}) == 64


async def test_a_job_that_saves_often_has_every_checkpoint_and_an_ended_one_is_told_anew_once_deleted(
    world: World,
) -> None:
    fleet = _large(world, WorldSize(checkpoints=300))
    job = next(job for job in fleet.jobs() if job.name == "titan-300-saves")
    assert len({checkpoint.checkpoint_id for checkpoint in fleet.checkpoints(job.id)}) == 300
    files = fleet.checkpoint_files(job.id)
    assert len(files) == 3000
    assert fleet.checkpoint_files(job.id) == files
    await fleet.delete(job.id)
    assert job.id not in {one.id for one in fleet.jobs()}
