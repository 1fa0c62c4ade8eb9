"""Metrics as a server may send them that keeps the published API and promises no more: feed and command."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api_client.models import TrainingJob
from support.remotes import remote_of
from support.run_snapshots import first_snapshot
from support.stranger import Answer, FakeBaseten, ReceivedRequest, job
from support.stranger_runs import iso
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import Series, reduce_columns
from tui.readers.session import Session

NOW_S = float(int(time.time()))
HOUR_S = 3600.0
PATIENCE_S = 60.0
BORN_S, FEWER_GPUS_S, LATE_NODE_S = NOW_S - 4 * HOUR_S, NOW_S - 2 * HOUR_S, NOW_S - HOUR_S
GAP = (NOW_S - 3 * HOUR_S, NOW_S - 2.5 * HOUR_S)
SPIKE = (NOW_S - 5400, NOW_S - 5280)
FINEST_S = 30.0

Value = Callable[[float], float | None]


def use(at_s: float) -> float | None:
    if GAP[0] <= at_s < GAP[1]:
        return None
    return 0.05 if SPIKE[0] <= at_s < SPIKE[1] else 0.9


def served(asked: ReceivedRequest, *, leader_only: bool = False) -> Answer:
    """Samples of the window asked for, out of order and each of them twice."""
    start_s = int(asked.query.get("start_epoch_millis", (NOW_S - HOUR_S) * 1000)) / 1000
    end_s = min(int(asked.query.get("end_epoch_millis", NOW_S * 1000)) / 1000, NOW_S)
    step_s = max(FINEST_S, float(asked.query.get("step_seconds", FINEST_S)))
    grid = [BORN_S + n * step_s for n in range(int((NOW_S - BORN_S) / step_s) + 1)]
    shuffled = random.Random(7)

    def samples(value: Value, since_s: float = BORN_S, until_s: float = NOW_S) -> list[dict[str, Any]]:
        times = [at for at in grid if max(start_s, since_s) <= at <= min(end_s, until_s)]
        made = [{"timestamp": iso(at), "value": value(at)} for at in times] * 2
        shuffled.shuffle(made)
        return made

    first = {
        "gpu_utilization": {
            str(gpu): samples(use, until_s=NOW_S if gpu < 4 else FEWER_GPUS_S) for gpu in reversed(range(8))
        },
        "gpu_memory_usage_bytes": {"0": samples(lambda _: 2e9), "1": None},
        "cpu_usage": samples(lambda _: 3.5),
        "cpu_memory_usage_bytes": None,
        "ephemeral_storage": None,
    }
    late = {"gpu_utilization": {"0": samples(use, since_s=LATE_NODE_S)}, "cpu_usage": None}
    silent = {"gpu_utilization": None, "gpu_memory_usage_bytes": None, "cpu_usage": []}
    nodes = [("node-3", silent), ("node-1", late), ("node-0", first)]
    named = None if leader_only else [{"node_id": name, "metrics": series} for name, series in nodes]
    return Answer(body={**first, "cache": None, "per_node_metrics": named})


@pytest.fixture
def strange(stranger: FakeBaseten) -> FakeBaseten:
    times = {"created_at": iso(BORN_S), "updated_at": iso(BORN_S)}
    stranger.jobs = [job(name, "RUNNING", node_count=4, **times) for name in ("many", "lone")]
    route = "/v1/training_projects/[^/]+/jobs/{}/metrics"
    stranger.on("GET", route.format("many"), served)
    stranger.on("GET", route.format("lone"), lambda asked: served(asked, leader_only=True))
    return stranger


async def watched(stranger: FakeBaseten, job_id: str) -> RunSnapshot:
    """The job screen's snapshot once there are metrics and what health is judged by."""
    session = Session(remote_of(stranger))
    subject = TrainingJob.model_validate(next(one for one in stranger.jobs if one["id"] == job_id))

    def is_known(run: RunSnapshot) -> bool:
        return run.metrics_at is not None and run.health_metrics is not None

    try:
        return await first_snapshot(session, subject, is_known, span=timedelta(hours=6))
    finally:
        await session.client.aclose()


def assert_in_order(series: Series) -> None:
    assert list(series.times) == sorted(set(series.times))


async def test_what_the_job_screen_shows(strange: FakeBaseten) -> None:
    run = await watched(strange, "many")
    for shown in (run.metrics, run.health_metrics):
        assert shown is not None
        assert [node.name for node in shown.nodes] == ["node-0", "node-1", "node-3"]
        first, late, silent = shown.nodes
        # The history before anybody watched, to the second.
        assert first.cpu.times[0] - BORN_S < 120
        assert first.gpus == tuple(map(str, range(8)))
        for gpu, series in enumerate(first.gpu_utilization):
            assert_in_order(series)
            assert (series.times[-1] <= FEWER_GPUS_S) == (gpu >= 4)
        # Eight GPUs, then four: the others say nothing about now, and the mean is of those that do.
        assert first.gpu_utilization_now == (0.9,) * 4 + (None,) * 4
        assert first.mean_utilization_now == pytest.approx(0.9)
        assert first.gpu_memory_now[:2] == (2e9, None)
        assert late.mean_utilization.times[0] >= LATE_NODE_S - 1
        assert silent.gpus == () and silent.mean_utilization_now is None
    series = run.metrics.nodes[0].gpu_utilization[0] if run.metrics else Series("")
    inside = [v for t, v in zip(series.times, series.values, strict=True) if GAP[0] < t < GAP[1] - 1]
    assert inside and all(map(math.isnan, inside))
    columns = reduce_columns(series, BORN_S, NOW_S, 80)
    assert min(column[0] for column in columns if column) == 0.05, "a short dip is not lost"
    gap = [n for n in range(80) if GAP[0] <= BORN_S + (n + 0.2) * 180 and BORN_S + (n + 1) * 180 < GAP[1]]
    assert gap and all(columns[n] is None for n in gap)
    assert {one.kind for one in run.findings} <= {"node-missing"}


async def test_a_server_that_tells_of_the_leader_alone(strange: FakeBaseten) -> None:
    run = await watched(strange, "lone")
    assert run.metrics is not None
    (leader,) = run.metrics.nodes
    assert (leader.name, leader.gpu_utilization_now[:4], run.findings) == ("leader", (0.9,) * 4, ())


def test_json_has_each_sample_once_in_the_order_of_time(cli: Any, strange: FakeBaseten) -> None:
    document = cli("metrics many -o json").json
    told = {(one["node"], one["gpu"], one["metric"]): one["samples"] for one in document["series"]}
    assert not any(node == "node-3" for node, _, _ in told)
    for samples in told.values():
        stamps = [one["timestamp"] for one in samples]
        assert stamps == sorted(set(stamps))
    whole = told["node-0", "0", "gpu_utilization"]
    assert len(whole) == int((NOW_S - BORN_S) / FINEST_S) + 1
    begin = datetime.fromisoformat(whole[0]["timestamp"])
    assert abs((begin - datetime.fromtimestamp(BORN_S, UTC)).total_seconds()) < 2
    assert {one["value"] for one in whole} == {0.9, 0.05, None}
    assert {one["value"] for one in told["node-0", "7", "gpu_utilization"]} == {0.9, None}
    assert len(told["node-1", "0", "gpu_utilization"]) == int(HOUR_S / FINEST_S) + 1
