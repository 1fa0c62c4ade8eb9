"""One time axis for all charts and the log of a screen: which range, where in the run, and which moment."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest
from app.log_stories import story
from textual.pilot import Pilot

from api_client.models.logs import NS_PER_S, LogLine, stamp_ns
from support.dashboard import StubFeed, job_view, opened, pressed, screen_view, settle, text_of
from support.sick_runs import sick_log, sick_run
from support.waiting import until
from support.worlds import JOBS, ONE_O_CLOCK, run
from tui.analysis.comparison import ComparedRun
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.screens.charts.builder import full_range
from tui.screens.charts.grid import ChartGrid
from tui.screens.charts.time_row import TimeRow
from tui.screens.compare import CompareRunsScreen
from tui.screens.job.log_pane import LogPane
from tui.screens.job.screen import JobScreen
from tui.widgets.charts.line_chart import LineChart

NOW = ONE_O_CLOCK.timestamp()
WIDE = (120, 40)


def screen_of(pilot: Pilot[Any]) -> JobScreen:
    return cast(JobScreen, pilot.app.screen)


def row_of(pilot: Pilot[Any]) -> str:
    return "".join(segment.text for segment in pilot.app.screen.query_one(TimeRow).render_line(0))


def shown_lines(pilot: Pilot[Any]) -> list[int]:
    entries = pilot.app.screen.query_one(LogPane).view.model.entries(filtered=True)
    return [stamp_ns(entry) // NS_PER_S for entry in entries]


@pytest.mark.proves("docs/keys.md", "Log")
async def test_log_and_charts_show_one_range_and_its_place_in_the_run() -> None:
    async with opened(job_view(sick_run("hang"), tab="logs", lines=story()), WIDE) as pilot:
        everything = shown_lines(pilot)
        assert row_of(pilot).startswith("run  6 h  1 h  15 min  5 min  ─") and "━" not in row_of(pilot.app)
        await pilot.press("v", "v", "v", "V")
        await until(pilot, lambda: shown_lines(pilot) != everything)
        assert min(shown_lines(pilot)) == pytest.approx(NOW - 3600, abs=3600 / 20 + 60)
        assert 0 < row_of(pilot).count("━") < row_of(pilot).count("─")
        await pressed(pilot, "1")
        for chart in pilot.app.screen.query_one(ChartGrid).shown_charts:
            assert (chart.spec.start, chart.spec.end) == pytest.approx((NOW - 3600, NOW), abs=60)
        assert "▲" in row_of(pilot) or "✗" in row_of(pilot)  # where the problem began
        await pilot.press("3", "less_than_sign", "2")
        await until(pilot, lambda: max(shown_lines(pilot), default=NOW) < NOW - 1700)
        await pilot.press("escape")
        await until(pilot, lambda: shown_lines(pilot) == everything)


async def test_click_on_a_length_or_on_the_map_moves_the_range() -> None:
    async with opened(job_view(sick_run("healthy"), lines=()), WIDE) as pilot:
        row = row_of(pilot)
        await pilot.click(TimeRow, offset=(row.index("1 h") + 1, 0))
        assert screen_of(pilot).metrics.view.window.span == 3600
        await pilot.click(TimeRow, offset=(row.index("─") + (119 - row.index("─")) // 2, 0))
        await settle(pilot)
        first, last = full_range(screen_of(pilot).snapshot)  # type: ignore[arg-type]
        start, end = screen_of(pilot).metrics.view.window.bounds(first, last)
        assert (start + end) / 2 == pytest.approx((first + last) / 2, rel=0.02 * (last - first) / last)
        assert "1 h to" in row_of(pilot)


async def test_short_run_offers_no_length_longer_than_itself() -> None:
    async with opened(job_view(run(JOBS[6]), lines=()), WIDE) as pilot:
        assert "15 min" in row_of(pilot) and "6 h" not in row_of(pilot)


async def test_charts_are_read_at_the_line_that_the_log_is_at() -> None:
    async with opened(job_view(sick_run("hang"), lines=sick_log("hang")), WIDE) as pilot:
        metrics, view = screen_of(pilot).metrics, pilot.app.screen.query_one(LogPane).view
        assert metrics.view.cursor is None and "⇄" not in row_of(pilot)
        await pilot.press("up", "up")
        entry = view.model.cursor_entry
        assert entry is not None
        await until(pilot, lambda: metrics.view.cursor == stamp_ns(entry) / NS_PER_S)
        assert "⇄" in row_of(pilot)
        charts = pilot.app.screen.query_one(ChartGrid).shown_charts
        assert charts and all(chart.spec.cursor == metrics.view.cursor for chart in charts)
        await pilot.press("G")
        await until(pilot, lambda: metrics.view.cursor is None)


async def test_readout_scrolls_the_log_and_shows_its_line() -> None:
    async with opened(job_view(sick_run("hang"), tab="metrics", lines=sick_log("hang")), WIDE) as pilot:
        await pressed(pilot, "left", *("shift+left",) * 3)
        view, at = pilot.app.screen.query_one(LogPane).view, screen_of(pilot).metrics.view.cursor
        entry = view.model.cursor_entry
        assert at is not None and isinstance(entry, LogLine) and not view.viewport.follow
        times = [stamp_ns(one) for one in sick_log("hang")]
        assert stamp_ns(entry) == min((time for time in times if time >= at * NS_PER_S), default=max(times))
        assert f"{entry.replica} {entry.message}" in text_of(pilot.app).splitlines()[-2]


async def test_pointer_reads_all_charts_of_the_grid() -> None:
    async with opened(job_view(sick_run("healthy"), tab="metrics", lines=()), WIDE) as pilot:
        grid = pilot.app.screen.query_one(ChartGrid)
        first, second = (cast(LineChart, grid.widget_of(chart.id)) for chart in grid.shown_charts[:2])
        await pilot.hover(first, offset=(first._picture().left + first.raster_cells // 2, 3))
        await settle(pilot)
        for chart in (first, second):
            assert any(role == "cursor" for line in chart._picture().lines for _, role in line)


def compared(number: int, offset: float) -> ComparedRun:
    steps = tuple(float(step) for step in range(1, 2001))
    losses = tuple((int(step), 3.0 - step / 1000 + offset) for step in steps)
    progress = ProgressSnapshot(step=2000, loss=1.0 + offset, loss_by_step=losses)
    job = JOBS[number].model_copy(update={"name": f"run-{number}"})
    return ComparedRun(job, "read", replace(run(job), progress=progress, findings=()))


async def test_compared_curves_are_read_at_one_step_with_the_difference_from_the_baseline() -> None:
    runs = (compared(0, 0.0), compared(5, 0.25))
    feed: Any = partial(StubFeed, runs)
    async with opened(screen_view(lambda: CompareRunsScreen([one.job for one in runs], feed)), WIDE) as pilot:
        assert "run  1,000 steps  100 steps" in row_of(pilot)
        await pressed(pilot, "plus")
        screen = cast(CompareRunsScreen, pilot.app.screen)
        assert screen.view.window.span == 1000
        await pressed(pilot, "left", "shift+left")
        assert screen.view.cursor is not None
        value = 3.0 - round(screen.view.cursor) / 1000
        text = text_of(pilot.app)
        assert f"{value + 0.25:.4f} +0.25" in text and f"step {round(screen.view.cursor):,}" in text
        assert "−0.25" in await pressed(pilot, "b")
