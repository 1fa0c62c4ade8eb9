"""The dashboard on a server that keeps the published API and was not written by us."""

import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from api_client.clock import Clock, SystemClock
from api_client.remotes import Remote, resolve_remote
from support.dashboard import text_of
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, billed, job, line, project
from support.fake_runs import iso, training_log
from support.log_server import FastClock
from support.waiting import dashboard_on, sees, to_screen, until
from tui.app import BtTuiApp
from tui.readers.session import Session
from tui.screens.job.screen import TAB_IDS, JobScreen

SIZE = (100, 30)
PLAIN = {"id": "x", "name": "8xH100", "memory_limit_mib": 1, "millicpu_limit": 1, "gpu_count": 8}


def remote_of(server: FakeBaseten, key: str | None = None) -> Remote:
    return resolve_remote(environ={**server.environ(key), "USER_TRUSSRC_PATH": "no-such-file"})


def metrics_now(asked: ReceivedRequest) -> Answer:
    """Samples of the leader alone, newest first and one of them twice, with a series that is null."""
    now = time.time()
    moments = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - 10 * n)) for n in (0, 1, 2, 2, 3)]
    samples = [{"value": 0.8, "timestamp": moment, "surprise": 1} for moment in moments]
    return Answer(
        {
            "gpu_memory_usage_bytes": None,
            "gpu_utilization": {"0": samples, "1": samples},
            "cpu_usage": samples,
            "cpu_memory_usage_bytes": [],
            "ephemeral_storage": {"usage_bytes": None, "utilization": []},
            "training_job": job("live", "RUNNING"),
            "cache": None,
            "per_node_metrics": None,
        }
    )


def server_with_a_run() -> FakeBaseten:
    server = FakeBaseten()
    server.projects.append(project("proj1", "their-project", novelty={"deep": [1]}))
    server.jobs += [
        job("live", "RUNNING", name="their-run", instance_type=PLAIN | {"gpu_type": "H100"}, flavour="odd"),
        job("odd", "TELEPORTING", name="of-a-status-unheard-of"),
        job("bare", "COMPLETED", name=None, error_message=None),
    ]
    now_ms = int(time.time() * 1000)
    server.logs["live"] = [
        line(f"step {n}/20 loss {3 - n / 10:.2f}", at_ms=now_ms - 20_000 + n * 1000, shiny=True)
        for n in range(20)
    ]
    server.on("GET", r".*/metrics", metrics_now)
    return server


async def test_home_and_the_live_tab_work_with_half_the_routes_missing() -> None:
    with server_with_a_run() as server:
        no_search = Answer({"code": "NOT_FOUND", "message": "no such route"}, status=404)
        server.on("POST", r"/v1/training_jobs/search", no_search)
        forbidden = (r"/v1/training/jobs/[^/]+/queue_context", r"/v1/instance_type_prices", r"/v1/billing/.*")
        for path in forbidden:
            server.on("GET", path, Answer({"code": "FORBIDDEN", "message": "admins only"}, status=403))
        server.on(
            "GET",
            r"/v1/training_projects/[^/]+/jobs/[^/]+/checkpoints",
            Answer(b"<html>oops</html>", status=500),
        )
        async with dashboard_on(server, "their-run", size=SIZE) as (app, pilot):
            assert "teleport" in text_of(app) and "bare" in text_of(app)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, JobScreen) and "step 19/20" in text_of(app))
            await sees(pilot, "80%")
            assert "their-run" in text_of(app)
            await sees(
                pilot,
                "only organization admins can read the bill",
                after=(str(1 + TAB_IDS.index("details")),),
            )
            assert not [asked for asked in server.asked if "DELETE" in asked.method]


async def test_home_and_the_job_tell_what_is_billed_from_what_is_estimated() -> None:
    with server_with_a_run() as server:
        began = (datetime.now(UTC) - timedelta(minutes=90)).isoformat()
        server.jobs = [job("live", "RUNNING", name="their-run", created_at=began, node_count=1)]
        prices = [{"instance_type": server.jobs[0]["instance_type"], "price": 0.5}]
        server.on("GET", r"/v1/instance_type_prices", Answer({"instance_types": prices}))
        server.send_bill(billed("live", 24.0, 60))
        async with dashboard_on(server, size=SIZE) as (app, pilot):
            # Of the 90 minutes 60 are billed, at a discount; 30 at $0.50 are not.
            await sees(pilot, "≈ $39.")
            await to_screen(pilot, JobScreen, "enter")
            await sees(pilot, "12.0 GPU·h ≈ $39.")
            await sees(pilot, "$24.00 for 60 min", after=(str(1 + TAB_IDS.index("details")),))
            shown = text_of(app)
            assert re.search(r"so far +12.0 GPU·h  ≈ \$39\.", shown)
            assert re.search(r"not billed yet +≈ \$15\.\d\d for 3\d min", shown)


async def test_an_unknown_job_asked_for_by_id_is_told() -> None:
    with server_with_a_run() as server:
        unknown = BtTuiApp(remote_of(server), job_id="nobody")
        async with unknown.run_test(size=SIZE, notifications=True) as pilot:
            await until(pilot, lambda: "No job nobody" in text_of(unknown))


@pytest.mark.proves("docs/commands.md", "`watch JOB_ID`")
async def test_a_job_asked_for_by_id_opens_and_its_long_history_is_read_to_its_beginning() -> None:
    with server_with_a_run() as server:
        hours_ago_ms = int(time.time() * 1000) - 3 * 3600 * 1000
        server.logs["live"] += [line(f"older {n}", at_ms=hours_ago_ms - n * 86_400_000) for n in range(30)]
        async with dashboard_on(server, "step 19/20", size=SIZE, job_id="live", tab="logs") as (_, pilot):
            # All of it first: the view keeps its place where more come before its first line.
            await sees(pilot, "50 lines")
            await sees(pilot, "older 29", after=("g",))


async def test_home_tells_of_a_broken_loss_though_metrics_checkpoints_and_a_job_are_garbage() -> None:
    with FakeBaseten() as server:
        now = time.time()
        server.jobs = [job("live", "RUNNING", name="their-run", created_at=iso(now - 700), node_count=1)]
        server.jobs.append(job("wrong", node_count={"x": 1}))
        training_log(server, "live", now - 600, [*[1.0] * 40, *["nan"] * 20])
        server.on("GET", r".*/jobs/live/(metrics|checkpoints)", Answer({"cpu_usage": "soon"}))
        async with dashboard_on(server, "loss is NaN", size=SIZE) as (app, _):
            assert "1 job left out: invalid data (node_count: Input should" in text_of(app)


@pytest.mark.parametrize(
    ("clock", "is_off"), [(SystemClock(), True), (FastClock(), False)], ids=["own", "other"]
)
async def test_only_the_clock_of_this_machine_is_compared_with_the_servers(
    clock: Clock, is_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = datetime.now(UTC) + timedelta(days=400)
    monkeypatch.setattr(SystemClock, "now", lambda _clock: ahead)
    with FakeBaseten() as server:
        session = Session(remote_of(server), clock=clock)
        await session.client.projects.list()
        await session.aclose()
    assert (session.connection.clock_ahead_s > 0) is is_off
