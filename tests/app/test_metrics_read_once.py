"""The metrics of a watched job are read once, for its charts and for its health."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from support.fake_baseten import FakeBaseten, job
from support.fake_runs import iso, metrics_of, node, serve_metrics
from support.remotes import remote_of
from support.run_snapshots import first_snapshot
from tui.readers.session import Session

MINUTE_S, DAY_MIN = 60, 24 * 60


@pytest.mark.parametrize(
    ("shown_min", "asked_min"),
    [
        (60, [(-60, 0), (-DAY_MIN, -65), (-65, -60)]),
        (15, [(-15, 0), (-DAY_MIN, -65), (-65, -15)]),
        (DAY_MIN, [(-DAY_MIN, 0), (-DAY_MIN, -65), (-65, 0)]),  # the charts' samples are too far apart
    ],
)
async def test_checks_read_what_the_charts_lack_and_the_last_hour_is_known_by_the_minute(
    shown_min: float, asked_min: list[tuple[int, int]]
) -> None:
    with FakeBaseten() as server:
        now_s = time.time()
        server.jobs = [job("long", "RUNNING", created_at=iso(now_s - DAY_MIN * MINUTE_S), node_count=1)]
        serve_metrics(server, metrics_of(node("node-0", [0.9] * 240, end_s=now_s)))
        session = Session(remote_of(server))
        try:
            run = await first_snapshot(
                session,
                await session.find_job("long"),
                lambda run: run.metrics is not None and run.health_metrics is not None,
                span=timedelta(minutes=shown_min),
            )
        finally:
            await session.aclose()
        asked = [one.query for one in server.asked if one.path.endswith("/metrics")]

    def ago(query: dict[str, str], bound: str) -> int:
        return round((int(query.get(f"{bound}_epoch_millis", now_s * 1000)) / 1000 - now_s) / MINUTE_S)

    assert [(ago(query, "start"), ago(query, "end")) for query in asked[:3]] == asked_min
    assert run.health_metrics is not None
    (known,) = run.health_metrics.nodes
    assert len({int(at // MINUTE_S) for at in known.cpu.times}) == len(known.cpu.times) >= 60
