from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, cast

import pytest

from api_client.models import JobMetrics, NodeSeries, QueueContext
from support.dashboard import Heard, StubFeed, job_view, opened, pressed, published, resized, text_of
from support.sick_runs import sick_run
from support.worlds import CHECKPOINTS, JOBS, ONE_O_CLOCK, job, job_metrics, run, series, usual_progress
from tui.analysis.health.registry import KINDS
from tui.analysis.progress.snapshot import ProgressSnapshot, RunPhase
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.feeds.files import CacheSnapshot
from tui.screens.cache import CacheScreen
from tui.screens.charts.builder import run_charts
from tui.screens.charts.view import ChartView
from tui.screens.job import header
from tui.screens.job.screen import TAB_IDS, JobScreen
from tui.screens.messages import BatchRequested
from tui.text.times import local_time
from tui.widgets.background import run_in_background

NOW_S, PROGRESS = ONE_O_CLOCK.timestamp(), usual_progress()


def said(facts: Any) -> str:
    return " · ".join("".join(text for text, _ in fact) for fact in facts)


async def test_background_work_is_not_described_by_its_data() -> None:
    class Data:
        def __repr__(self) -> str:
            raise AssertionError("this may take longer than the work")

    async def work(data: Data) -> None:
        worked_on.append(data)

    worked_on: list[Data] = []
    async with opened(job_view()) as pilot:
        run_in_background(pilot.app, partial(work, Data()), "work")
        await pilot.pause()
    assert len(worked_on) == 1


async def test_screen_has_the_classes_of_its_size_before_its_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    classes: list[frozenset[str]] = []
    monkeypatch.setattr(JobScreen, "on_screen_resume", lambda screen: classes.append(screen.classes))
    async with opened(job_view(), (120, 40)):
        assert {"-wide", "-tall"} <= classes[0]


async def test_job_below_another_screen_is_drawn_again_once_that_has_closed() -> None:
    async with opened(job_view()) as pilot:
        screen: Any = pilot.app.screen
        before: RunSnapshot = screen.snapshot
        await pilot.app.push_screen(CacheScreen("llama-sft", partial(StubFeed, CacheSnapshot())))
        screen.receive(replace(before, job=before.job.model_copy(update={"name": "renamed"})))
        await pressed(pilot)
        assert screen.snapshot is before
        assert screen.job.name == "renamed"
        assert "renamed" in await pressed(pilot, "escape")


@pytest.mark.proves("README.md", "Is it healthy, how fast is it, which node is slow?")
async def test_header_nodes_tabs_time_range_and_stop() -> None:
    app, heard = job_view(), Heard(BatchRequested)
    async with opened(app, message_hook=heard) as pilot:
        screen, text = cast(JobScreen, app.screen), text_of(app)
        assert "● llama-70b-sft-v3  RUNNING 6h 12m  4×8 H100  198 GPU·h ≈ $967" in text
        for number, tab in enumerate(TAB_IDS, start=1):
            await pilot.press(str(number))
            assert screen.tab == tab
        await pilot.press("1", "tab", "tab")
        assert screen.tab == "metrics"
        await pilot.press("shift+tab")
        assert screen.tab == "logs"
        await pilot.click("#tabs", offset=(4, 0))
        assert screen.tab == "live"
        assert "run  6 h  1 h  15 min  5 min  ─" in await pressed(pilot, "plus", "plus", "minus")
        assert screen.metrics.view.window.span == 6 * 3600
        hours = (6, 1, 6)
        assert screen._feed.spans == [None, *(timedelta(hours=each) for each in hours)]  # type: ignore[attr-defined]
        assert "4×8 H100  ≈ $967" in await resized(pilot, 60, 24)
        assert "Stop llama-70b-sft-v3 (llama70)?" in await pressed(pilot, "s")
    assert [job.id for message in heard.messages for job in message.jobs] == ["llama70"]


def test_curve_says_that_older_lines_are_still_read() -> None:
    titles = [
        next(chart.spec.title for chart in run_charts(seen, ChartView()) if chart.id == "loss")
        for seen in (run(log_read=False), run())
    ]
    assert titles == ["loss, still reading", "loss"]


@pytest.mark.parametrize("is_read", [False, True])
async def test_nodes_are_called_absent_only_once_their_metrics_are_read(is_read: bool) -> None:
    shown = run(metrics=JobMetrics(), metrics_at=ONE_O_CLOCK if is_read else None)
    async with opened(job_view(shown)) as pilot:
        assert ("no GPU data" in text_of(pilot.app)) == is_read


@pytest.mark.parametrize("width", [58, 78, 118])
def test_a_long_checkpoint_leaves_room_for_what_is_wrong_and_keeps_its_step(width: int) -> None:
    name = "megatron_gpt--val_loss=1.23-step=4000-consumed_samples=8000.0-last"
    long = CHECKPOINTS[-1].model_copy(update={"checkpoint_id": name})
    line = said(header.health_facts(replace(sick_run("hang"), checkpoints=(long,)), width))
    assert len(line) <= width
    assert "24m" in line and "step=4000" in line


def test_a_run_that_evaluates_says_so_and_since_when() -> None:
    evaluating = RunPhase("evaluation", NOW_S - 370, NOW_S - 370, first=True)
    long, just = (
        run(progress=replace(PROGRESS, run_phase=evaluating, last_step_at_ns=round((NOW_S - ago_s) * 1e9)))
        for ago_s in (375, 3)
    )
    assert "evaluating for 6m" in said(header.progress_facts(long))
    assert "evaluating" not in said(header.progress_facts(just))


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (
            140,
            "▲ node-2 lags behind the other nodes: GPUs at 55%, others at 93% (since SINCE)"
            " · ≈$62 lost · CHECKPOINT",
        ),
        (112, "▲ node-2 lags behind the other nodes: GPUs at 55%, others at 93% · ≈$62 lost · CHECKPOINT"),
        (78, "▲ node-2 slow: GPU 55% vs 93% · ≈$62 lost · CHECKPOINT"),
        (58, "▲ node-2 slow · ≈$62 lost · CHECKPOINT"),
    ],
)
def test_a_finding_is_told_in_the_longest_form_that_fits(width: int, words: str) -> None:
    shown = sick_run("straggler")
    since = local_time(shown.findings[0].since, "%H:%M")
    expected = words.replace("CHECKPOINT", "checkpoint-4000 12m ago").replace("SINCE", since)
    assert said(header.health_facts(shown, width)) == expected


def test_a_finding_that_is_too_long_ends_after_its_first_clause() -> None:
    slower = HealthFinding(KINDS["slowdown"], "warning", "33% slower: 0.0667 it/s, was 0.100; GPUs 95% busy")
    assert said(header.health_facts(run(findings=(slower,)), 58)).startswith("▲ 33% slower · ")


async def test_bar_shows_how_far_a_run_is_and_its_checkpoints_over_the_whole_width() -> None:
    async with opened(job_view(sick_run("healthy"), lines=()), (120, 36)) as pilot:
        bar = text_of(pilot.app).splitlines()[2]
        assert bar.count("◆") == len(CHECKPOINTS) and bar.index("━") == 1
        track, _, words = bar.partition(" step ")
        assert words == "4,119/9,000 46% · ETA 1d 16h" and len(bar) == 119
        done = track.rstrip("─").rstrip(" ╸")
        assert len(done) / len(track) == pytest.approx(4119 / 9000, abs=0.02)
        row = (await published(pilot, run(progress=ProgressSnapshot(step=7861)))).splitlines()[2]
        assert "━" not in row and "step 7,861" in row


def sights() -> dict[str, tuple[RunSnapshot, list[str], list[str]]]:
    """Runs with the words that are, and that are not, on their screen."""
    cpu = JobMetrics(
        cpu_usage=series(3.5),
        cpu_memory_usage_bytes=series(2e9),
        ephemeral_storage={"usage_bytes": series(5e9)},
    )
    ahead = [{"training_job_id": name} for name in "ab"]
    queue = QueueContext(target_job_id="ablate", pending_ahead_at_submit=ahead)
    stalled = HealthFinding(KINDS["stalled"], "critical", "no step and no log for 17m")
    bare = [{"node_id": "node-0", "metrics": NodeSeries()}, *job_metrics().per_node_metrics]
    return {
        "log being read": (
            run(progress=None, log_read=False, history_known=False),
            ["reading the log"],
            ["no training progress", "GPU·h"],
        ),
        "no GPUs": (
            run(job("cpu", gpus=(None, 0), node_count=1), metrics=cpu),
            ["nodes", "cores", "1.86 GiB"],
            ["GPU use"],
        ),
        "waits": (
            run(JOBS[3], metrics=JobMetrics(), queue=queue, progress=None, checkpoints=()),
            ["waiting 15m for 8 H100; at submission 2 ahead", "Reading the log"],
            [],
        ),
        "failed": (run(JOBS[6]), ["CUDA out of memory"], []),
        "stands still": (run(findings=(stalled,)), ["46% · no ETA"], ["ETA 1", "ETA 2"]),
        "metrics lack anything": (
            run(metrics=JobMetrics(per_node_metrics=bare), progress=None, checkpoints=None),
            ["GPU use"],
            [],
        ),
        "long name": (
            run(JOBS[0].model_copy(update={"name": "日本語" * 20})),
            ["RUNNING 6h 12m", "4×8 H100"],
            [],
        ),
    }


HISTORY = [
    {"training_job_id": name, "status": f"TRAINING_JOB_{status}", "created": f"2026-03-01T{time}:00Z"}
    for name, status, time in (
        ("llama70", "CREATED", "06:48"),
        ("other", "FAILED", "06:49"),
        ("llama70", "RUNNING", "07:00"),
    )
]


async def test_what_is_said_of_runs_in_every_state() -> None:
    async with opened(job_view(lines=()), (80, 24)) as pilot:
        for snapshot, present, absent in sights().values():
            text = await published(pilot, snapshot)
            assert [word for word in present if word not in text] == []
            assert [word for word in absent if word in text] == []


async def test_details_have_the_history_of_the_job_alone() -> None:
    history = QueueContext(target_job_id="llama70", events=HISTORY)
    async with opened(job_view(run(queue=history), tab="details"), (80, 40)) as pilot:
        text = await pressed(pilot)
        assert "RUNNING 6h 00m" in text and "◍ created" in text and "failed" not in text


async def test_job_that_no_longer_exists_is_shown_as_it_was() -> None:
    async with opened(job_view(), notifications=True) as pilot:
        screen: Any = pilot.app.screen
        screen._feed.on_gone()
        text = await pressed(pilot)
        assert "This job no longer exists." in text and "RUNNING 6h 12m" in text


async def test_details_of_a_large_screen_have_the_log_below() -> None:
    async with opened(job_view(tab="details"), (200, 50)) as pilot:
        text = text_of(pilot.app)
        assert "last change" in text and text.index("last change") < text.index(" Log all nodes")
        assert " Log all nodes" not in await resized(pilot, 80, 24)
