"""The trainer's metrics beside the hardware's: on Live, Metrics and Compare."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input

from api_client.models.logs import LogLine
from support.dashboard import Dashboard, StubFeed, opened, pressed, screen_view, settle
from support.worlds import JOBS, ONE_O_CLOCK, StubRunFeed, run
from tui.analysis.comparison import ComparedRun, curves_table
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.snapshot import RunSnapshot
from tui.screens.charts.builder import ChartData
from tui.screens.charts.grid import ChartGrid
from tui.screens.compare import CompareRunsScreen
from tui.screens.job.metrics_pane import MetricsPane
from tui.screens.job.screen import JobScreen
from tui.settings.remembered import Memory

WIDE = (120, 36)
VERL = (
    "step:{step} - actor/pg_loss:{loss} - actor/kl_loss:0.0{step} - critic/rewards/mean:0.{step}"
    " - response_length/mean:4{step}.5 - timing_s/gen:73.8 - perf/throughput:1424.1"
)


def grpo(name: str = "reward", more: str = "") -> ProgressSnapshot:
    fold = ProgressFold()
    text = VERL.replace("critic/rewards/mean", name) + more
    fold.add(
        LogLine(
            int((ONE_O_CLOCK - timedelta(minutes=50 - step)).timestamp() * 1e9),
            text.format(step=step, loss=step / 10),
            "node-0",
            None,
        )
        for step in range(10, 50)
    )
    return fold.snapshot()


def grpo_run(name: str = "critic/rewards/mean", more: str = "", **changes: Any) -> RunSnapshot:
    return run(JOBS[0], progress=grpo(name, more), findings=(), **changes)


def job_view(tab: str, *, snapshot: RunSnapshot | None = None, **options: Any) -> Dashboard:
    of_run = grpo_run() if snapshot is None else snapshot
    feed: Any = partial(StubRunFeed, of_run, lines=())
    return screen_view(lambda: JobScreen(of_run.job, feed, tab=tab, **options))


def compare_view(*runs: RunSnapshot) -> Dashboard:
    compared = tuple(
        ComparedRun(job, "read", each) for job, each in zip((JOBS[6], JOBS[5]), runs, strict=True)
    )
    feed: Any = partial(StubFeed, compared)
    return screen_view(lambda: CompareRunsScreen([each.job for each in compared], feed))


def shown(pilot: Pilot[Any]) -> tuple[ChartData, ...]:
    return pilot.app.screen.query_one(ChartGrid).shown_charts


def titles(pilot: Pilot[Any]) -> list[str]:
    return [chart.spec.title.partition(",")[0] for chart in shown(pilot)]


async def test_reward_kl_and_length_come_first_on_live() -> None:
    async with opened(job_view("live"), WIDE) as pilot:
        assert titles(pilot)[:3] == ["critic/rewards/mean", "actor/kl_loss", "response_length/mean"]
        assert "reward 0.490" in await pressed(pilot)


async def test_reward_kl_and_length_are_two_keys_away_at_80_by_24() -> None:
    async with opened(job_view("live")) as pilot:
        for first in ("critic/rewards/mean", "actor/kl_loss", "response_length/mean"):
            assert titles(pilot)[0] == first
            await pressed(pilot, "m")


async def test_loss_comes_first_without_a_reward() -> None:
    async with opened(job_view("live", snapshot=grpo_run("rewards/margins")), WIDE) as pilot:
        assert titles(pilot)[0] == "loss" and "reward" not in await pressed(pilot)


async def test_charts_are_filtered_by_typing_words_of_their_names() -> None:
    async with opened(job_view("metrics"), WIDE) as pilot:
        before = titles(pilot)
        assert {"loss", "GPU use", "critic/rewards/mean"} <= set(before)
        await pressed(pilot, "slash", *"rew")
        assert titles(pilot) == ["critic/rewards/mean"]
        assert "0.490" in await pressed(pilot, "enter", "left")
        await pressed(pilot, "slash", "ctrl+u", *"GPU mem")
        assert titles(pilot) == ["GPU memory"]
        assert "no chart has these words in its name" in await pressed(pilot, "ctrl+u", *"nothing")
        await pressed(pilot, "escape", "escape")
        assert set(titles(pilot)) == set(before)
        assert not pilot.app.screen.query_one("#chart-filter", Input).display


async def test_filter_shows_the_charts_if_the_nodes_were_large() -> None:
    async with opened(job_view("metrics"), WIDE) as pilot:
        assert "critic/rewards/mean" in await pressed(pilot, "n", "slash", *"rew")


async def test_group_of_metrics_is_shown_together() -> None:
    async with opened(
        job_view("metrics", snapshot=grpo_run(more=" - actor/z:1 - a:1 - b/c:1")), (160, 60)
    ) as pilot:
        group = [title for title in titles(pilot) if title in ("a", "actor/z", "b/c", "timing_s/gen")]
        assert group == ["a", "actor/z", "b/c", "timing_s/gen"]


async def test_pinned_chart_comes_after_the_reward_and_is_on_live() -> None:
    memory = Memory()
    memory.put(pins={"p-llama-sft": ["metric/gone"]})
    async with opened(job_view("metrics", memory=memory), WIDE) as pilot:
        await pressed(pilot, "slash", *"timing", "enter", "P", "escape", "1")
        assert memory.state.pins == {"p-llama-sft": ["metric/gone", "metric/timing_s/gen"]}
        assert titles(pilot)[:2] == ["critic/rewards/mean", "timing_s/gen"]
        await pressed(pilot, "3", "slash", *"timing", "enter", "P", "escape", "1")
        assert memory.state.pins == {"p-llama-sft": ["metric/gone"]}
        assert "timing_s/gen" not in titles(pilot)


async def test_metric_is_found_in_the_palette_and_enlarged() -> None:
    async with opened(job_view("live"), WIDE) as pilot:
        screen: Any = pilot.app.screen
        items = [item for item in screen.palette_items() if item.kind == "metric"]
        assert ("critic/rewards/mean", "0.490") in [(item.name, item.description) for item in items]
        next(item for item in items if item.name == "timing_s/gen").choose()
        await settle(pilot)
        assert titles(pilot) == ["timing_s/gen"]
        assert screen.query_one(MetricsPane).has_class("-one-chart")


async def test_metrics_that_runs_share_are_overlaid() -> None:
    app = compare_view(grpo_run(more=" - own:1"), grpo_run())
    async with opened(app, WIDE) as pilot:
        assert titles(pilot)[:3] == ["critic/rewards/mean", "actor/kl_loss", "response_length/mean"]
        assert [series.times[0] for series in shown(pilot)[0].series] == [10.0, 10.0]
        assert "own" not in [row[0] for row in curves_table(app.screen.runs, "step").rows]  # type: ignore[attr-defined]
        await pressed(pilot, "slash", *"timing")
        assert titles(pilot) == ["timing_s/gen"]
        assert len(shown(pilot)[0].series) == 2
        await pressed(pilot, "enter", "x")
        assert shown(pilot)[0].series[0].times[0] >= 0
        await pressed(pilot, "escape")
        assert "loss" not in titles(pilot)[:1]
        assert isinstance(app.screen, CompareRunsScreen)


async def test_export_of_a_comparison_has_shared_metrics() -> None:
    runs = tuple(ComparedRun(job, "read", grpo_run()) for job in (JOBS[6], JOBS[5]))
    rows = [row for row in curves_table(runs, "step").rows if row[0] == "critic/rewards/mean"]
    assert len(rows) == 80
    assert rows[0][3:5] == (10, 0.1)


async def test_name_of_a_metric_is_shown_without_control_characters() -> None:
    hostile = grpo_run(more=" - re\u202eward\u009b[b]x[/]: 1")
    async with opened(job_view("metrics", snapshot=hostile), (160, 60)) as pilot:
        await pressed(pilot, "slash", *"ward", "enter")
        for axis in ("ago", "clock", "elapsed", "step"):
            (chart,) = shown(pilot)
            assert chart.names == (chart.spec.title,), axis
            assert chart.spec.title.isprintable()
            await pressed(pilot, "x")
