"""Samples of local jobs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from local_world import LocalWorld, job_spec, local_world

from api_client.models import JobMetrics, NodeMetrics

BUSY = f"{sys.executable} -c 'x = bytearray(50_000_000)\nwhile True: pass'"


async def test_cpu_memory_and_disk_of_every_node_are_sampled(world: LocalWorld) -> None:
    command = f'head -c 300000 /dev/zero > big; if [ "$BT_NODE_RANK" = 1 ]; then {BUSY}; fi; sleep 1000'
    await world.create("job1", job_spec(command, nodes=2))

    def measured() -> JobMetrics:
        return world.backend.metrics("job1", start_s=None, end_s=None, step_s=None)

    await world.until(lambda: len(measured().per_node_metrics) == 2 and len(measured().cpu_usage) >= 1)
    metrics = measured()
    idle, busy = (node.metrics for node in metrics.per_node_metrics)
    assert [node.node_id for node in metrics.per_node_metrics] == ["node-0", "node-1"]
    assert metrics.cpu_usage == idle.cpu_usage
    assert (busy.cpu_usage[-1].value or 0) > (idle.cpu_usage[-1].value or 0)
    assert (busy.cpu_memory_usage_bytes[-1].value or 0) > 50_000_000
    assert (idle.cpu_memory_usage_bytes[-1].value or 0) > 0
    assert idle.ephemeral_storage is not None
    assert (idle.ephemeral_storage.usage_bytes[-1].value or 0) >= 300_000
    assert 0 <= (idle.ephemeral_storage.utilization[-1].value or 0) <= 1
    assert (metrics.gpu_utilization, metrics.cache) == ({}, None)


class NVMLError(Exception):
    """What NVML raises."""


def utilisation(handle: int) -> SimpleNamespace:
    if handle == 1:
        raise NVMLError
    return SimpleNamespace(gpu=75)


TWO_GPUS = SimpleNamespace(
    NVMLError=NVMLError,
    nvmlInit=lambda: None,
    nvmlShutdown=lambda: None,
    nvmlDeviceGetCount=lambda: 2,
    nvmlDeviceGetHandleByIndex=lambda index: range(2)[index],
    nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=1000 + handle),
    nvmlDeviceGetUtilizationRates=utilisation,
)
"""A library of two GPUs, one of which tells no utilisation."""


@pytest.mark.proves("README.md", "On your own workspace")
async def test_gpus_are_shared_out_and_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", TWO_GPUS)  # type: ignore[arg-type]
    spec = job_spec("echo gpu $CUDA_VISIBLE_DEVICES; sleep 1000", nodes=2)
    spec["compute"]["accelerator"] = {"accelerator": "H100", "count": 1}
    async with local_world(tmp_path, environ={"PATH": os.environ["PATH"]}) as world:
        await world.create("job1", spec)

        def nodes() -> list[NodeMetrics]:
            return world.backend.metrics("job1", start_s=None, end_s=None, step_s=1).per_node_metrics

        await world.until(lambda: len(nodes()) == 2 and bool(nodes()[1].metrics.gpu_memory_usage_bytes))
        first, second = (node.metrics for node in nodes())
        assert first.gpu_utilization["0"][-1].value == 0.75
        assert first.gpu_memory_usage_bytes["0"][-1].value == 1000
        assert second.gpu_memory_usage_bytes["0"][-1].value == 1001
        assert second.gpu_utilization == {}
        assert [world.messages("job1", f"node-{rank}") for rank in (0, 1)] == [["gpu 0"], ["gpu 1"]]
