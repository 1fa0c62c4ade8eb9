"""The demo world: who is in it, that it goes on by itself, and its metrics."""

from __future__ import annotations

from fleet_worlds import EPOCH, World

from api_client.emulator.backend import LogQuery
from api_client.models import JobMetrics, JobStatus, LogRecord

HOUR_S = 3600.0
EPOCH_S = EPOCH.timestamp()


def test_every_status_is_there_and_home_is_alive_within_half_an_hour(world: World) -> None:
    before = {job.id: job.current_status for job in world.fleet.jobs()}
    assert set(before.values()) == set(JobStatus) - {JobStatus.EXPIRED}  # why a job expires is not published
    queued = ((0, JobStatus.PENDING), (300, JobStatus.DEPLOYING), (420, JobStatus.RUNNING))
    for seconds, status in queued:
        assert world.after(seconds).named("llama-8b-ablate").current_status == status
    after = {job.id: job.current_status for job in world.after(1800).fleet.jobs()}
    moved = [(before[job_id], after[job_id]) for job_id in before if before[job_id] != after[job_id]]
    assert len(moved) >= 7
    for ended in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.PREEMPTED):
        assert (JobStatus.RUNNING, ended) in moved


def test_status_histories_are_in_order_and_end_with_the_status_and_its_reason(world: World) -> None:
    for moment_s in (0, 700, 4000, 40_000):
        world.after(moment_s)
        for job in world.fleet.jobs():
            events = world.fleet.events(job.id)
            created = [event.created for event in events if event.created is not None]
            assert created == sorted(created)
            assert created[-1] <= world.now
            assert (created[0], created[-1]) == (job.created_at, job.updated_at)
            assert (len(created), events[-1].status) == (len(events), job.current_status)
            if job.current_status == JobStatus.FAILED:
                assert str(events[-1].exit_code or "none") in str(job.error_message)
            if job.current_status == JobStatus.COMPLETED:
                assert (events[-1].exit_code, job.error_message) == (0, None)


def test_a_log_said_to_be_complete_gets_no_line_afterwards(world: World) -> None:
    """Jobs that have ended say so, within seconds; a week later no line was added to what they had."""
    had = {}
    for seconds in range(0, 7200, 600):
        world.after(seconds)
        for job in world.fleet.jobs():
            if job.id not in had and world.fleet.log_is_complete(job.id):
                assert job.is_finished
                had[job.id] = newest_lines(world, job.id)
    ended = {job.id for job in world.fleet.jobs() if job.is_finished}
    assert ended == set(had)
    world.after(7 * 86_400)
    assert {job_id: newest_lines(world, job_id) for job_id in had} == had


def newest_lines(world: World, job_id: str) -> list[LogRecord]:
    return world.fleet.logs(job_id, LogQuery(0, 2**62, "desc", limit=50))


def metrics(world: World, name: str, start_s: float | None = None) -> JobMetrics:
    """By the server's own choice, or in steps of five seconds from a moment."""
    job_id, end_s, step_s = world.named(name).id, None, None
    if start_s is not None:
        end_s, step_s = EPOCH_S, 5
    return world.fleet.metrics(job_id, start_s=start_s, end_s=end_s, step_s=step_s)


def test_without_a_range_a_running_job_shows_its_last_hour_and_a_finished_one_all(world: World) -> None:
    nodes = [node.metrics for node in metrics(world, "llama-70b-sft-v3").per_node_metrics]
    for samples in [*(node.cpu_usage for node in nodes), *(node.gpu_utilization["0"] for node in nodes)]:
        stamps = [sample.timestamp for sample in samples]
        assert stamps == sorted(stamps)
        assert stamps[-1] <= world.now
        assert 200 <= len(stamps) <= 300
        assert 3500 <= (stamps[-1] - stamps[0]).total_seconds() <= 3600
    ended = world.after(5 * HOUR_S).named("llama-70b-sft-v2")
    samples = metrics(world, "llama-70b-sft-v2").cpu_usage
    assert ended.updated_at is not None
    assert samples[-1].timestamp <= ended.updated_at
    assert (samples[-1].timestamp - samples[0].timestamp).total_seconds() > 13 * HOUR_S


def test_the_same_moment_has_the_same_value_in_every_answer(world: World) -> None:
    wide = metrics(world, "whisper-ft", EPOCH_S - 900)
    narrow = metrics(world.after(300), "whisper-ft", EPOCH_S - 450)
    known = {sample.timestamp: sample.value for sample in wide.gpu_utilization["0"]}
    assert len(narrow.gpu_utilization["0"]) == 90
    for sample in narrow.gpu_utilization["0"]:
        assert known[sample.timestamp] == sample.value
