"""The metrics of a watched job: those of its charts, and those of its health checks."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from api_client.models import JobMetrics, TrainingJob
from support.fake_baseten import FakeBaseten, job
from support.fake_runs import iso, metrics_of, node, serve_metrics
from support.remotes import remote_of
from support.run_snapshots import first_snapshot
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.health_metrics import HealthMetrics, metrics_in_parts
from tui.readers.session import Session

MINUTE_S, DAY_MIN = 60, 24 * 60


Query = dict[str, str]


def has_metrics(run: RunSnapshot) -> bool:
    return run.metrics_at is not None and run.health_metrics is not None


async def first_run(
    nodes: int, shown_min: float, holds: Callable[[RunSnapshot], bool] = has_metrics
) -> tuple[RunSnapshot, list[Query]]:
    """The first snapshot of a job of which that holds, and what was asked for its metrics."""
    with FakeBaseten() as server:
        now_s = time.time()
        server.jobs = [job("run", "RUNNING", created_at=iso(now_s - DAY_MIN * MINUTE_S), node_count=nodes)]
        serve_metrics(server, metrics_of(node("node-0", [0.9] * 240, end_s=now_s)))
        session = Session(remote_of(server))
        try:
            of = await session.client.jobs.find("run")
            run = await first_snapshot(session, of, holds, span=timedelta(minutes=shown_min))
        finally:
            await session.aclose()
        return run, [one.query for one in server.asked if one.path.endswith("/metrics")]


@pytest.mark.parametrize("shown_min", [15, DAY_MIN])
async def test_checks_know_the_last_hour_by_the_minute_whatever_the_charts_show(shown_min: float) -> None:
    run, _ = await first_run(1, shown_min)
    assert run.health_metrics is not None
    (known,) = run.health_metrics.nodes
    assert len({int(at // MINUTE_S) for at in known.cpu.times}) == len(known.cpu.times) >= 60


async def test_an_answer_is_not_kept_until_the_next_one() -> None:
    def is_dropped(run: RunSnapshot) -> bool:
        return has_metrics(run) and not any(isinstance(each, JobMetrics) for each in gc.get_objects())

    await first_run(1, 60, is_dropped)


class FakeMetrics:
    """Answers with samples of one node at the times that ``times`` returns; keeps the ranges asked for."""

    def __init__(self, times: Callable[[datetime, datetime], Iterable[datetime]]) -> None:
        self.times = times
        self.asked: list[tuple[datetime, datetime]] = []

    async def get(self, *_: str, start_ms: int, end_ms: int, step_s: int) -> JobMetrics:
        start, end = (datetime.fromtimestamp(bound / 1000, UTC) for bound in (start_ms, end_ms))
        self.asked.append((start, end))
        samples = [{"timestamp": at.isoformat(), "value": 1.0} for at in self.times(start, end)]
        series = {"gpu_utilization": {"0": samples, "1": samples}}
        return JobMetrics.model_validate({"per_node_metrics": [{"node_id": "node-0", "metrics": series}]})


async def test_the_newest_metrics_of_many_nodes_are_shown_first_then_all_are_read_in_parts() -> None:
    _, every = await first_run(64, 60)
    asked = [query for query in every if int(query["step_seconds"]) < MINUTE_S]
    starts = [int(query["start_epoch_millis"]) for query in asked]
    ends = [int(query.get("end_epoch_millis", 0)) for query in asked]
    following = ends.index(0)
    assert following > 2
    assert (ends[0] - starts[0]) // 1000 == 300
    assert (ends[following - 1], ends[0] - starts[1]) == (ends[0], 3_600_000)
    assert starts[2:following] == ends[1 : following - 1]
    assert (ends[0] - starts[following]) // 1000 == 120


async def test_parts_have_about_the_same_size_and_no_sample_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui.readers.health_metrics.PART_SAMPLES", 400)
    begin, end = (datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in (0, 15))
    times = [begin + timedelta(seconds=at) for at in range(0, 900, 10) if not 300 < at < 500]
    metrics = FakeMetrics(lambda start, end: [at for at in times if start <= at <= end])
    client: Any = SimpleNamespace(metrics=metrics)
    parts = metrics_in_parts(client, TrainingJob(id="j", current_status="x", node_count=2), begin, end, 10)
    found = [len(part.per_node_metrics[0].metrics.gpu_utilization["0"]) async for part in parts]
    assert len(times) <= sum(found) <= len(times) + len(metrics.asked)
    assert 10 < max(found) <= 14
    assert [until for _, until in metrics.asked[:-1]] == [since for since, _ in metrics.asked[1:]]
    assert (metrics.asked[0][0], metrics.asked[-1][1]) == (begin, end)


@pytest.mark.parametrize("skew", [timedelta(0), timedelta(days=400), timedelta(days=-3650)])
async def test_health_metrics_are_read_in_few_windows_of_a_week(skew: timedelta) -> None:
    newest = datetime(2026, 1, 21, tzinfo=UTC)
    job = TrainingJob(id="j", current_status="TRAINING_JOB_RUNNING", created_at=newest - timedelta(days=20))
    server = FakeMetrics(lambda *_: [newest])
    client: Any = SimpleNamespace(metrics=server)
    metrics = HealthMetrics(client, job)
    await metrics.poll(newest + skew)
    first_count = len(server.asked)
    await metrics.poll(newest + skew)
    assert first_count < 70
    assert all(timedelta(0) < until - since <= timedelta(days=7) for since, until in server.asked)
    assert len(server.asked) - first_count <= (7 if skew else 1)
    assert server.asked[first_count][0] == newest - timedelta(minutes=5)
