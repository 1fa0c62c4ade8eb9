"""Scripted metrics: right in shape, in bounds, and the same whenever asked."""

from __future__ import annotations

from fleet_worlds import EPOCH, World

from api_client.models import JobMetrics

HOUR_S = 3600.0
EPOCH_S = EPOCH.timestamp()


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
