"""Runs over each other: marked on Home, read from a server that we did not write."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from support.dashboard import Dashboard, Heard, StubFeed, home, opened, pressed, screen_view, text_of
from support.fake_baseten import Answer, FakeBaseten, line
from support.fake_runs import finished_run
from support.waiting import dashboard_on, sees, to_screen, until
from support.worlds import JOBS, fleet, run
from tui.analysis.comparison import ComparedRun
from tui.app import BtTuiApp
from tui.screens.base import OpenPage
from tui.screens.charts.grid import ChartGrid
from tui.screens.compare import CompareRunsScreen
from tui.screens.home.screen import HomeScreen
from tui.widgets.row_table import RowTable

READ = tuple(ComparedRun(job, "read", replace(run(job), findings=())) for job in (JOBS[0], JOBS[5], JOBS[6]))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def compare_view(runs: tuple[ComparedRun, ...] = READ) -> Dashboard:
    feed: Any = partial(StubFeed, runs)
    return screen_view(lambda: CompareRunsScreen([one.job for one in runs], feed))


@pytest.fixture
def baseten() -> Iterator[FakeBaseten]:
    with FakeBaseten() as server:
        server.jobs = []
        finished_run(server, "one", name="first", losses=[3.0 - n / 40 for n in range(60)])
        finished_run(server, "two", name="second", losses=[3.0 - n / 30 for n in range(60)], status="FAILED")
        finished_run(server, "quiet", name="\x1b[4242msilent", losses=[])
        yield server


@asynccontextmanager
async def on_home(baseten: FakeBaseten) -> AsyncIterator[tuple[BtTuiApp, Pilot[Any]]]:
    async with dashboard_on(baseten, "3 jobs", size=(100, 40)) as (app, pilot):
        yield app, pilot


@pytest.mark.proves("README.md", "Which run is better?")
async def test_marks_are_signs_counted_in_the_header_taken_away_and_compared() -> None:
    app, asked = home(), Heard(OpenPage)
    async with opened(app, message_hook=asked) as pilot:
        text = await pressed(pilot, "space", "space")  # each moves to the next job
        assert "◆ 2 marked" in text and text.count("◆") == 3
        assert "◆ 1 marked" in await pressed(pilot, "k", "space")
        assert "◆" not in await pressed(pilot, "escape")
        await pressed(pilot, "c")
        assert not asked.messages
        await pressed(pilot, "k", "k", "space", "c")
    assert [message.page.ids for message in asked.messages] == [("grpo7", "whisper")]


async def test_marked_jobs_are_read_and_compared(baseten: FakeBaseten) -> None:
    async with on_home(baseten) as (app, pilot):
        await until(pilot, lambda: all(row.judged for row in app.screen.snapshot.jobs))  # type: ignore[attr-defined]
        await to_screen(pilot, CompareRunsScreen, "space", "space", "space", "c")
        await until(pilot, lambda: all(one.state == "read" for one in app.screen.runs))  # type: ignore[attr-defined]
        await until(pilot, lambda: all(one in text_of(app) for one in ("loss  ━ first", "tok/s  ━ first")))
        screen = text_of(app)
        assert "✗ failed" in screen and "≠ status" in screen
        assert "ℹ silent: no training progress" in screen and "4242m" not in screen
        # Read once: going there again asks for no line of a finished job.
        lines_asked = sum(asked.path.endswith("/logs") for asked in baseten.asked)
        await to_screen(pilot, HomeScreen, "escape")
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, CompareRunsScreen) and "✗ failed" in text_of(app))
        assert sum(asked.path.endswith("/logs") for asked in baseten.asked) == lines_asked


async def test_a_running_job_is_followed_beside_one_that_is_gone_and_one_that_fails(
    baseten: FakeBaseten,
) -> None:
    baseten.on("GET", r".*/jobs/two", Answer({"code": "NOT_FOUND", "message": "gone"}, status=404))
    baseten.on("GET", r".*/jobs/quiet", Answer({"code": "ODD", "message": "[bold]no[/]"}, status=400))
    now_ms = int(time.time() * 1000)
    baseten.jobs[0] |= {"current_status": "TRAINING_JOB_RUNNING"}
    baseten.logs["one"] = [
        line(f"step {n}/900 loss={3 - n / 100}", at_ms=now_ms - 60_000 + 10 * n) for n in range(1, 30)
    ]
    async with on_home(baseten) as (app, pilot):
        await pilot.press("space", "space", "space", "c")

        def steps() -> list[Any]:
            return [one.progress.step for one in getattr(app.screen, "runs", ()) if one.progress]

        for words in ("second no longer exists", "[bold]no[/]", "loss of first"):
            await sees(pilot, words)
        await until(pilot, lambda: 29 in steps())
        baseten.logs["one"].append(line("step 30/900 loss=1.5", at_ms=int(time.time() * 1000)))
        await until(pilot, lambda: 30 in steps())


async def test_axes_smoothing_layout_base_and_differing_by_keyboard() -> None:
    app = compare_view()
    async with opened(app) as pilot:
        deck, table = app.screen.query_one(ChartGrid), app.screen.query_one(RowTable)
        assert "Compare 3 jobs · by step" in text_of(app)
        assert "since start" in await pressed(pilot, "x")
        assert deck.shown_charts[0].spec.x_axis == "elapsed" and deck.shown_charts[0].series[0].times[0] >= 0
        assert "by clock" in await pressed(pilot, "x", "M") and deck.shown_charts[0].spec.smoothing > 0
        assert "diffs only" not in await pressed(pilot, "v") and not table.region
        text = await pressed(pilot, "v")
        assert "diffs only" in text and not deck.display and "GPU-hours" in text
        assert text.index("llama-70b-sft-v3") < text.index("llama-70b-sft-v2")
        text = await pressed(pilot, "b")
        assert text.index("llama-70b-sft-v2") < text.index("llama-70b-sft-v3")
        await pressed(pilot, "d")
        rows = app.screen.query_one(RowTable).rows
        assert rows and all(row.differs for row in rows)


async def save_as(pilot: Pilot[Any], path: Path) -> None:
    pilot.app.screen.query_one("#file", Input).value = str(path)
    await pressed(pilot, "enter")


async def test_export_writes_what_is_drawn_and_never_over_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = compare_view()
    async with opened(app) as pilot:
        await pressed(pilot, "E")
        await pilot.press("enter")
        table, curves = (tmp_path / f"compare-llama70-sftv2-grpo6{end}.csv" for end in ("", "-curves"))
        await until(pilot, lambda: table.exists() and curves.exists() and not app.screen.query("#box"))
        assert {row["chart"] for row in rows_of(curves)} >= {"loss"}
        assert [row["property"] for row in rows_of(table)][:2] == ["name", "status"]
        assert table.stat().st_mode & 0o077 == 0

        table.write_text("mine")
        await pressed(pilot, "E")
        await sees(pilot, "exists", after=("enter",))
        assert table.read_text() == "mine"
        await pilot.press("enter")
        await until(pilot, lambda: not app.screen.query("#box"))
        assert table.read_text() != "mine"

        await pressed(pilot, "v", "v", "E")
        await save_as(pilot, tmp_path / "no" / "such.json")
        await sees(pilot, "not saved")
        await save_as(pilot, tmp_path / "out.json")
        await until(pilot, (tmp_path / "out.json").exists)
        found = json.loads((tmp_path / "out.json").read_text())
        assert {row["property"] for row in found} >= {"status", "gpu_hours", "best_loss"}


async def test_home_saves_the_jobs_shown_with_formulas_made_harmless(tmp_path: Path) -> None:
    evil = JOBS[0].model_copy(update={"name": '=HYPERLINK("http://x")'})
    async with opened(home(fleet((evil, JOBS[1])))) as pilot:
        await pressed(pilot, "E")
        await save_as(pilot, tmp_path / "jobs.csv")
        await until(pilot, (tmp_path / "jobs.csv").exists)
    rows = rows_of(tmp_path / "jobs.csv")
    assert {row["name"] for row in rows} == {'\'=HYPERLINK("http://x")', "qwen3-grpo-7"}
    assert {row["gpu_count"] for row in rows} == {"8"}
