"""Scripted metrics: right in shape, in bounds, and the same whenever asked."""

from __future__ import annotations

from fleet_worlds import EPOCH, World

from api_client.models import JobMetrics, MetricSample, TrainingJob

HOUR_S = 3600.0
EPOCH_S = EPOCH.timestamp()
GIB = 1024**3


def metrics(
    world: World,
    name: str,
    start_s: float | None = None,
    end_s: float | None = None,
    step_s: int | None = None,
) -> JobMetrics:
    return world.fleet.metrics(world.named(name).id, start_s=start_s, end_s=end_s, step_s=step_s)


def all_series(found: JobMetrics) -> list[list[MetricSample]]:
    series = []
    for node in found.per_node_metrics:
        shown = node.metrics
        series += [shown.cpu_usage, shown.cpu_memory_usage_bytes]
        series += [*shown.gpu_utilization.values(), *shown.gpu_memory_usage_bytes.values()]
        if shown.ephemeral_storage:
            series += [shown.ephemeral_storage.usage_bytes, shown.ephemeral_storage.utilization]
    return series


def mean(samples: list[MetricSample]) -> float:
    return sum(sample.value or 0.0 for sample in samples) / len(samples)


def node_busy(found: JobMetrics) -> dict[str, float]:
    return {
        node.node_id: mean([sample for gpu in node.metrics.gpu_utilization.values() for sample in gpu])
        for node in found.per_node_metrics
    }


def test_every_node_and_gpu_is_there_and_the_leader_is_on_top(world: World) -> None:
    found = metrics(world, "llama-70b-sft-v3")
    assert [node.node_id for node in found.per_node_metrics] == ["node-0", "node-1", "node-2", "node-3"]
    for node in found.per_node_metrics:
        assert list(node.metrics.gpu_utilization) == [str(gpu) for gpu in range(8)]
    assert found.gpu_utilization == found.per_node_metrics[0].metrics.gpu_utilization
    assert found.cache is not None
    assert isinstance(found.training_job, TrainingJob)


def test_without_a_range_a_running_job_tells_its_last_hour(world: World) -> None:
    found = metrics(world, "llama-70b-sft-v3")
    for samples in all_series(found):
        stamps = [sample.timestamp for sample in samples]
        assert stamps == sorted(stamps)
        assert stamps[-1] <= world.now
        assert 200 <= len(stamps) <= 300
        assert 3500 <= (stamps[-1] - stamps[0]).total_seconds() <= 3600


def test_without_a_range_a_finished_job_tells_all_of_its_run(world: World) -> None:
    world.after(5 * HOUR_S)
    job = world.named("llama-70b-sft-v2")
    samples = metrics(world, "llama-70b-sft-v2").cpu_usage
    assert job.updated_at is not None
    assert samples[-1].timestamp <= job.updated_at
    assert (samples[-1].timestamp - samples[0].timestamp).total_seconds() > 13 * HOUR_S


def test_values_stay_within_what_the_machine_has(world: World) -> None:
    for job in world.fleet.jobs():
        found = world.fleet.metrics(job.id, start_s=None, end_s=None, step_s=None)
        machine = job.instance_type
        for node in found.per_node_metrics:
            shown = node.metrics
            for samples in shown.gpu_utilization.values():
                assert all(0 <= (sample.value or 0) <= 1 for sample in samples)
            whole = (machine.gpu_memory_limit_mib or 0) * 1024**2
            for samples in shown.gpu_memory_usage_bytes.values():
                assert all(0 <= (sample.value or 0) <= whole for sample in samples)
            assert all(
                0 <= (sample.value or 0) <= machine.millicpu_limit / 1000 for sample in shown.cpu_usage
            )


def test_the_same_moment_has_the_same_value_in_every_answer(world: World) -> None:
    wide = metrics(world, "whisper-ft", EPOCH_S - 900, EPOCH_S, 5)
    narrow = metrics(world.after(300), "whisper-ft", EPOCH_S - 450, EPOCH_S, 5)
    known = {sample.timestamp: sample.value for sample in wide.gpu_utilization["0"]}
    assert len(narrow.gpu_utilization["0"]) == 90
    for sample in narrow.gpu_utilization["0"]:
        assert known[sample.timestamp] == sample.value


def test_a_window_before_the_run_is_empty(world: World) -> None:
    found = metrics(world, "whisper-ft", EPOCH_S - 80_000, EPOCH_S - 70_000)
    assert all(samples == [] for samples in all_series(found))


def test_a_step_too_fine_is_coarsened(world: World) -> None:
    found = metrics(world, "nemotron-8b-cpt", EPOCH_S - 80_000, EPOCH_S, 1)
    assert 1000 < len(found.cpu_usage) <= 2001


def test_jobs_that_do_not_run_have_no_nodes(world: World) -> None:
    for name in ("qwen3-grpo-8", "flux-lora-interiors", "flux-lora-custom-image"):
        assert metrics(world, name).per_node_metrics == []


def test_the_slow_node_is_visibly_slower(world: World) -> None:
    busy = node_busy(metrics(world, "llama-70b-longctx-v1", EPOCH_S - 600, EPOCH_S))
    others = [value for node, value in busy.items() if node != "node-2"]
    assert busy["node-2"] < 0.75 * min(others)


def test_the_hang_looks_like_full_work(world: World) -> None:
    assert min(node_busy(metrics(world, "qwen3-grpo-7", EPOCH_S - 480, EPOCH_S)).values()) > 0.98


def test_the_idle_gpu_is_idle(world: World) -> None:
    assert node_busy(metrics(world, "whisper-debug"))["node-0"] < 0.05


def test_the_leak_grows(world: World) -> None:
    memory = metrics(world, "retrieval-embed-v5").gpu_memory_usage_bytes["0"]
    assert (memory[-1].value or 0) - (memory[0].value or 0) > 2 * GIB


def test_the_disk_fills(world: World) -> None:
    disk = metrics(world, "flux-lora-portraits").ephemeral_storage
    assert disk is not None
    assert (disk.utilization[-1].value or 0) > 0.8
    assert (disk.utilization[-1].value or 0) - (disk.utilization[0].value or 0) > 0.15


def test_answers_survive_the_wire(world: World) -> None:
    found = metrics(world, "whisper-ft")
    assert JobMetrics.model_validate_json(found.model_dump_json()).cpu_usage == found.cpu_usage
