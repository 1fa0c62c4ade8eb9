"""Metrics as a server of the published API may send them: out of order, twice, with gaps and nulls."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job
from support.fake_runs import iso

NOW_S = float(int(time.time()))
HOUR_S = 3600.0
BORN_S, FEWER_GPUS_S, LATE_NODE_S = NOW_S - 4 * HOUR_S, NOW_S - 2 * HOUR_S, NOW_S - HOUR_S
GAP = (NOW_S - 3 * HOUR_S, NOW_S - 2.5 * HOUR_S)
SPIKE = (NOW_S - 5400, NOW_S - 5280)
FINEST_S = 30.0


def use(at_s: float) -> float | None:
    if GAP[0] <= at_s < GAP[1]:
        return None
    return 0.05 if SPIKE[0] <= at_s < SPIKE[1] else 0.9


def served(asked: ReceivedRequest) -> Answer:
    """Samples of the window asked for, out of order and each of them twice."""
    start_s = int(asked.query.get("start_epoch_millis", (NOW_S - HOUR_S) * 1000)) / 1000
    step_s = max(FINEST_S, float(asked.query.get("step_seconds", FINEST_S)))
    grid = [BORN_S + n * step_s for n in range(int((NOW_S - BORN_S) / step_s) + 1)]
    shuffled = random.Random(7)

    def samples(
        value: Callable[[float], float | None], since_s: float = BORN_S, until_s: float = NOW_S
    ) -> list[dict[str, Any]]:
        made = [
            {"timestamp": iso(at), "value": value(at)}
            for at in grid
            if max(start_s, since_s) <= at <= until_s
        ] * 2
        shuffled.shuffle(made)
        return made

    first = {
        "gpu_utilization": {
            str(gpu): samples(use, until_s=NOW_S if gpu < 4 else FEWER_GPUS_S) for gpu in reversed(range(8))
        },
        "gpu_memory_usage_bytes": {"0": samples(lambda _: 2e9), "1": None},
        **{"cpu_usage": None, "cpu_memory_usage_bytes": None, "ephemeral_storage": None},
    }
    late = {"gpu_utilization": {"0": samples(use, since_s=LATE_NODE_S)}, "cpu_usage": None}
    silent = {"gpu_utilization": None, "gpu_memory_usage_bytes": None, "cpu_usage": []}
    nodes = [("node-3", silent), ("node-1", late), ("node-0", first)]
    named = [{"node_id": name, "metrics": series} for name, series in nodes]
    return Answer({**first, "cache": None, "per_node_metrics": named})


def test_json_has_each_sample_once_in_the_order_of_time(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("many", "RUNNING", node_count=4, created_at=iso(BORN_S), updated_at=iso(BORN_S))]
    baseten.on("GET", "/v1/training_projects/[^/]+/jobs/many/metrics", served)
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
