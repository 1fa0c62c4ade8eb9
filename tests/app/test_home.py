import math
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from textual import events
from textual.widgets import Input

from support.dashboard import (
    Heard,
    home,
    loading_home,
    opened,
    pressed,
    screen_view,
    settle,
    text_of,
)
from support.worlds import JOB_PREVIEWS, JOBS, ONE_O_CLOCK, PROJECTS, StubFleetFeed, fleet, job
from tui.analysis.connection import Connection, ConnectionState
from tui.analysis.fleet.snapshot import FleetFold, FleetSnapshot, JobPreview
from tui.analysis.health.registry import KINDS
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import HealthFinding
from tui.app import BtTuiApp
from tui.screens.dialogs import StopScreen
from tui.screens.help import HelpScreen
from tui.screens.home.columns import job_columns
from tui.screens.home.screen import HomeScreen
from tui.screens.messages import OpenPage
from tui.settings.remembered import Memory
from tui.widgets.row_table import RowTable

SIZE = (80, 24)


def home_of(app: BtTuiApp) -> HomeScreen:
    assert isinstance(app.screen, HomeScreen)
    return app.screen


def table_of(app: BtTuiApp) -> RowTable:
    return app.screen.query_one("#jobs", RowTable)


def names(app: BtTuiApp) -> list[str]:
    return [row.name for row in table_of(app).rows]


async def test_a_filter_narrows_while_it_is_typed_and_esc_brings_all_back() -> None:
    app = home(fleet((job("vkcj4q7", "PENDING", name="bert", project="wmt"), *JOBS)))
    async with opened(app, SIZE) as pilot:
        for key, character in (("slash", "/"), *((letter, letter) for letter in "sdqwhisper")):
            app.post_message(events.Key(key, character))  # all at once, as a fast terminal sends them
        await settle(pilot)
        field = app.screen.query_one("#filter", Input)
        assert field.value == "sdqwhisper"
        for typed, problem in (
            ("status:runing", "unknown status 'runing'; use pending, queued"),
            ("age<banana", "isn't a duration"),
        ):
            field.value = typed
            for size in (SIZE, (60, 20)):
                await pilot.resize_terminal(*size)
                await settle(pilot)
                assert problem in " ".join(text_of(app).split())
                assert len(names(app)) > 1
        for typed, found in (
            ("status:running gpu:h100", ["llama-70b-sft-v3"]),
            *((part, ["bert"]) for part in ("vkcj4q7", "KCJ4", "id:vkcj", "p-wmt")),
            ("status:hiber", ["from-the-future"]),
        ):
            field.value = typed
            await settle(pilot)
            assert (typed, names(app)) == (typed, found)
            assert "unknown" not in text_of(app)
        await pressed(pilot, "enter", "enter", "escape")
        assert len(names(app)) == 1 + len(JOBS) and table_of(app).cursor_key == "novel"


async def test_what_hides_jobs_and_how_many_pass_are_always_shown() -> None:
    app = home()
    query = "llama status:running,failed gpu:h100,h200 age<20d"
    async with opened(app, SIZE) as pilot:
        await pilot.press("slash")
        app.screen.query_one("#filter", Input).value = query
        await pilot.press("enter")
        for size in ((120, 24), (40, 12), (60, 20)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            top = " ".join(text_of(app).split())
            assert f"/{query}" in top and f"{len(names(app))} of {len(JOBS)} jobs" in top, size
        await pilot.press("escape")
        home_of(app).choose_project("p-qwen3-grpo")
        await settle(pilot)
        assert "2 of 10 jobs in qwen3-grpo" in text_of(app)


TROUBLES = (
    (ConnectionState.LOST, "connection refused by 127.0.0.1:9", "refused by"),
    (ConnectionState.UNAUTHORIZED, "acme refused the key (from BASETEN_API_KEY)", "BASETEN_API_KEY"),
    (ConnectionState.RETRYING, "", "↻ retrying"),
)


async def test_trouble_before_the_first_answer_says_what_and_why_and_the_cursor_works_after_it() -> None:
    app = loading_home(Connection())
    async with opened(app, SIZE) as pilot:
        assert "Loading projects and jobs" in text_of(app)
        retry_at = ONE_O_CLOCK + timedelta(hours=1)
        for state, reason, words in TROUBLES:
            app.connection = Connection(state, None, ONE_O_CLOCK, retry_at, reason)
            await settle(pilot)
            assert words in text_of(app)
        app.connection = Connection(ConnectionState.LIVE, answered_at=ONE_O_CLOCK)
        home_of(app).snapshot = FleetSnapshot((), (), ONE_O_CLOCK)
        await settle(pilot)
        assert "No training jobs here yet" in text_of(app)
        home_of(app).snapshot = fleet()
        await settle(pilot)
        await pilot.press("j", "j")
        assert table_of(app).cursor_key == "llama70"


async def test_sorting_by_key_and_by_heading_and_a_project_s_jobs_alone() -> None:
    app = home()
    async with opened(app, SIZE) as pilot:
        while home_of(app).sort != ("name", False):
            await pilot.press("S")
        assert names(app) == sorted(names(app))
        await pilot.press("V")
        assert names(app) == sorted(names(app), reverse=True)
        await pilot.click("#jobs", offset=(8, 0))
        await settle(pilot)
        assert names(app) == sorted(names(app))
        app.screen.query_one("#projects").focus()
        await pressed(pilot, "j")
        assert len({row.project for row in table_of(app).rows}) == 1


@pytest.mark.parametrize("width", [60, 80, 120, 250])
async def test_sort_key_walks_the_shown_columns_from_left_to_right(width) -> None:
    app = home()
    async with opened(app, (width, 24)) as pilot:
        shown = table_of(app).columns_shown | {"status"}  # by status, even if only signs show it
        while home_of(app).sort[0] != "name":
            await pilot.press("S")
        sorts, positions = [], []
        for _ in shown:
            sorts.append(home_of(app).sort[0])
            heading = table_of(app).render_line(0).text
            positions += [heading.index(arrow) for arrow in "▴▾" if arrow in heading]
            await pilot.press("S")
        assert set(sorts) == shown and home_of(app).sort[0] == "name"
        assert positions == sorted(positions)


COLUMN_IDS = [column.id for column in job_columns(lambda: None)]


@pytest.mark.parametrize("column", COLUMN_IDS)
async def test_sort_by_any_column_is_restored_after_a_restart(tmp_path, column) -> None:
    memory = Memory(tmp_path / "layout.json")
    before = screen_view(lambda: HomeScreen(partial(StubFleetFeed, fleet()), "acme", memory))
    async with opened(before, SIZE):
        home_of(before).sort = (column, True)
    memory.save()
    kept = Memory(tmp_path / "layout.json")
    after = screen_view(lambda: HomeScreen(partial(StubFleetFeed, fleet()), "acme", kept))
    async with opened(after, SIZE):
        assert home_of(after).sort == table_of(after).sort_mark == (column, True)


@pytest.mark.parametrize("column", COLUMN_IDS)
async def test_rows_without_a_value_come_last_in_both_directions(column) -> None:
    bare = job("bare", "PENDING", user=None, created_at=None, instance_type=None, training_project=None)
    previews = {**JOB_PREVIEWS, "boot": JobPreview(ProgressSnapshot(step=3, loss=math.nan))}
    prices = {"A10G:1": 0.1, "H200:8": 1.0}
    snapshot = FleetFold().fold(PROJECTS, (bare, *JOBS), previews, ONE_O_CLOCK, prices)
    app = home(snapshot)
    async with opened(app, (250, 24)) as pilot:
        shown = next(one for one in job_columns(lambda: snapshot) if one.id == column)
        for descending in (False, True):
            home_of(app).sort = (column, descending)
            await settle(pilot)
            cells = ["".join(text for text, _ in shown.cell(row)).strip("–") for row in table_of(app).rows]
            if column == "note":
                cells = [cell if "%" in cell or "step" in cell or "stalled" in cell else "" for cell in cells]
            assert cells == [cell for cell in cells if cell] + [cell for cell in cells if not cell]


async def test_losses_are_sorted_by_value_and_nan_is_the_worst() -> None:
    losses = {"llama70": 0.9, "grpo7": math.nan, "whisper": -0.2, "boot": math.inf}
    previews = {name: JobPreview(ProgressSnapshot(step=3, loss=loss)) for name, loss in losses.items()}
    app = home(FleetFold().fold(PROJECTS, JOBS, previews, ONE_O_CLOCK))
    async with opened(app, SIZE) as pilot:
        for descending in (False, True):
            home_of(app).sort = ("loss", descending)
            await settle(pilot)
            rising = ["whisper", "llama70", "boot", "grpo7"]
            assert [row.id for row in table_of(app).rows][:4] == (rising[::-1] if descending else rising)


async def test_stopping_asks_by_name_and_no_is_the_default_and_enter_opens_the_job() -> None:
    app, heard = home(), Heard(OpenPage)
    async with app.run_test(size=SIZE, message_hook=heard) as pilot:
        await settle(pilot)
        await pressed(pilot, "s")
        assert isinstance(app.screen, StopScreen)
        assert "Stop whisper-ft (whisper)?" in text_of(app)
        await pressed(pilot, "enter")
        await pressed(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert "Sort by the next column" in text_of(app)
        await pressed(pilot, "escape", "j", "enter")
        await pilot.press("G", "s")  # it has ended: there is nothing to ask
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)
    assert [message.page.job.id for message in heard.messages] == ["grpo7"]


async def test_the_worst_job_comes_first_however_the_list_is_sorted() -> None:
    slow = (HealthFinding(KINDS["stalled"], "warning", "slow"),)
    jobs = (row if row.alarmed else replace(row, alarmed=True, findings=slow) for row in fleet().jobs[:3])
    app = home(replace(fleet(), jobs=tuple(jobs)))
    async with opened(app, SIZE) as pilot:
        for key, worst in zip("SVSVG", ("grpo7", "whisper", "llama70", "grpo7", "grpo7"), strict=True):
            await pressed(pilot, key, "exclamation_mark")
            assert table_of(app).cursor_key == worst
