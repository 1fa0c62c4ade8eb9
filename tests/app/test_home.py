import asyncio
import math
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import product

import pytest
from textual import events
from textual.widgets import Input

from support.dashboard import (
    Heard,
    home,
    loading_home,
    opened,
    pressed,
    resized,
    screen_view,
    settle,
    text_of,
)
from support.waiting import until
from support.worlds import JOB_PREVIEWS, JOBS, ONE_O_CLOCK, PROJECTS, StubFleetFeed, fleet, job
from tui.analysis.connection import Connection, ConnectionState
from tui.analysis.fleet.snapshot import UNREAD, FleetFold, FleetSnapshot, JobPreview
from tui.analysis.health.registry import KINDS
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import HealthFinding
from tui.analysis.series import Series
from tui.app import BtTuiApp
from tui.screens.base import OpenPage
from tui.screens.dialogs import StopScreen
from tui.screens.help import HelpScreen
from tui.screens.home.screen import HomeScreen
from tui.settings.remembered import Memory
from tui.tables.column import sortable_columns
from tui.tables.fleet import DEFAULT_SORT, PROJECT_COLUMNS, job_columns
from tui.widgets.charts.line_chart import LineChart
from tui.widgets.row_table import RowTable
from tui.widgets.text_panel import TextPanel

SIZE = (80, 24)


def home_of(app: BtTuiApp) -> HomeScreen:
    return app.screen  # type: ignore[return-value]


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
                await resized(pilot, *size)
                assert problem in " ".join(text_of(app).split())
                assert len(names(app)) > 1
        for typed, found in (
            ("status:running gpu:h100", ["llama-70b-sft-v3"]),
            ("stalled", ["qwen3-grpo-7"]),
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
            await resized(pilot, *size)
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


async def test_home_shows_progress_beside_problems_at_60_columns() -> None:
    app = home()
    async with opened(app, (60, 20)):
        assert table_of(app).visible_column_widths.keys() == {"need", "name", "progress", "note"}


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
        shown = (
            table_of(app).visible_column_widths.keys() & sortable_columns(job_columns(lambda: None)).keys()
        )
        sorts, positions = [], []
        for _ in shown:
            sorts.append(home_of(app).sort[0])
            heading = table_of(app).render_line(0).text
            positions += [heading.index(arrow) for arrow in "▴▾" if arrow in heading]
            await pilot.press("S")
        assert set(sorts) == shown and home_of(app).sort[0] == sorts[0] == "need"
        assert positions == sorted(positions)


COLUMN_IDS = [*sortable_columns(job_columns(lambda: None))]


async def test_sort_by_any_column_is_restored_after_a_restart(tmp_path) -> None:
    def home_screen(memory: Memory) -> HomeScreen:
        return HomeScreen(partial(StubFleetFeed, fleet()), "acme", memory)

    memory = Memory(tmp_path / "layout.json")
    kept: dict[str, Memory] = {}
    before = screen_view(lambda: home_screen(memory))
    async with opened(before, SIZE):
        for column in COLUMN_IDS:
            home_of(before).sort = (column, True)
            memory.save()
            kept[column] = Memory(tmp_path / "layout.json")
    after = screen_view(lambda: home_screen(Memory()))
    async with opened(after, SIZE) as pilot:
        for column in COLUMN_IDS:
            await after.push_screen(home_screen(kept[column]))
            await settle(pilot)
            assert home_of(after).sort == table_of(after).sort_mark == (column, True)
            await after.pop_screen()


async def test_a_hidden_list_of_projects_gives_the_keys_back_to_the_jobs() -> None:
    app = home()
    async with opened(app, SIZE) as pilot:
        await pilot.press("p", "shift+tab", "p", "j")
        assert app.screen.focused is table_of(app) and table_of(app).cursor_row is table_of(app).rows[1]


async def test_esc_brings_the_order_by_need_back() -> None:
    app = home()
    async with opened(app, SIZE) as pilot:
        await pilot.press("S", "S", "escape")
        assert home_of(app).sort == DEFAULT_SORT


def test_a_project_shows_the_sign_of_its_worst_finding() -> None:
    signs = {row.name: PROJECT_COLUMNS[1].cell(row)[0] for row in fleet().projects if row.alarmed}
    assert {text[0] for text, _tone in signs.values()} == {"✗"}


async def test_rows_without_a_value_come_last_in_both_directions() -> None:
    bare = job("bare", "PENDING", user=None, created_at=None, instance_type=None, training_project=None)
    previews = {**JOB_PREVIEWS, "boot": JobPreview(ProgressSnapshot(step=3, loss=math.nan))}
    prices = {"A10G:1": 0.1, "H200:8": 1.0}
    snapshot = FleetFold().fold(PROJECTS, (bare, *JOBS), previews, ONE_O_CLOCK, prices)
    app = home(snapshot)
    columns = {column.id: column for column in job_columns(lambda: snapshot)}
    async with opened(app, (250, 24)) as pilot:
        for column, descending in product(COLUMN_IDS, (False, True)):
            home_of(app).sort = (column, descending)
            await pilot.pause()
            rows = table_of(app).rows
            cells = ["".join(text for text, _ in columns[column].cell(row)).strip("–⋯") for row in rows]
            if column == "progress":
                cells = ["done" if row.fraction_and_step is not None else "" for row in rows]
            assert cells == [cell for cell in cells if cell] + [cell for cell in cells if not cell], column


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
    async with opened(app, SIZE, message_hook=heard) as pilot:
        await pressed(pilot, "s")
        assert isinstance(app.screen, StopScreen)
        assert "Stop qwen3-grpo-7 (grpo7)?" in text_of(app)
        await pressed(pilot, "enter")
        await pressed(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert "Sort by the next column" in text_of(app)
        await pressed(pilot, "escape", "j", "enter")
        await pilot.press("G", "s")  # it has ended: there is nothing to ask
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)
    assert [message.page.job.id for message in heard.messages] == ["whisper"]


COSTS = {"H100:8": 0.5, "H200:8": 1.0, "A10G:1": 0.02}
"""USD per minute and node."""


def costly_fleet() -> FleetSnapshot:
    """Runs that waste $120 (grpo7), $36 (llama70) and $1.20 (whisper) an hour, since 30 minutes."""
    since = ONE_O_CLOCK - timedelta(minutes=30)
    problems = {
        "llama70": HealthFinding(KINDS["straggler"], "warning", "slow", "node-2", since, slowed_by=0.3),
        "grpo7": HealthFinding(KINDS["stalled"], "warning", "no step", since=since),
        "whisper": HealthFinding(KINDS["loss-not-finite"], "critical", "loss is NaN", since=since),
    }
    previews = {name: replace(JOB_PREVIEWS[name], findings=(found,)) for name, found in problems.items()}
    return FleetFold().fold(PROJECTS, JOBS, previews, ONE_O_CLOCK, COSTS)


async def test_jobs_that_need_attention_are_visited_by_the_money_they_waste() -> None:
    app = home(costly_fleet())
    async with opened(app, SIZE) as pilot:
        assert table_of(app).cursor_key == "grpo7"
        for key, job_id in zip("SVSVG", ("llama70", "whisper", "grpo7", "llama70", "grpo7"), strict=True):
            await pressed(pilot, key, "exclamation_mark")
            assert table_of(app).cursor_key == job_id
        await pressed(pilot, "slash", *"grpo-7", "enter", "exclamation_mark")
        await pressed(pilot, "escape", "slash", *"flux", "enter", "exclamation_mark")
        notices = ["No other job needs attention.", "No job needs attention."]
        assert [notice.message for notice in app._notifications] == notices


async def test_groups_have_a_line_each_in_the_order_of_need_only() -> None:
    app = home(costly_fleet())
    async with opened(app, (140, 40)) as pilot:
        titles = ("needs you 3  wasting ≈$157/h", "waiting 2  16 GPUs", "ended 5")
        places = [text_of(app).index(title) for title in titles]
        assert places == sorted(places)
        await pressed(pilot, "S")
        assert not any(title in text_of(app) for title in titles)


async def test_a_finding_leaves_progress_and_time_left_in_place_and_says_what_it_cost() -> None:
    app = home(costly_fleet())
    async with opened(app, (140, 24)) as pilot:
        line = next(line for line in text_of(app).splitlines() if "llama-70b-sft-v3" in line)
        assert [part in line for part in ("46%", "7h 10m", "node-2 slow", "$18")] == [True] * 4
        await resized(pilot, 80, 24)
        line = next(line for line in text_of(app).splitlines() if "llama-70b-sft-v3" in line)
        assert [part in line for part in ("46%", "7h 10m", "node-2 slow")] == [True] * 3


async def test_cursor_stays_on_the_costliest_job_until_it_is_moved() -> None:
    app = home(FleetFold().fold(PROJECTS, JOBS, {"whisper": UNREAD}, ONE_O_CLOCK))
    async with opened(app, SIZE) as pilot:
        assert table_of(app).cursor_key == "whisper"
        assert "⋯" in text_of(app), "what is still being read looks so"
        some = {"grpo7": JOB_PREVIEWS["grpo7"]}
        home_of(app).snapshot = FleetFold().fold(PROJECTS, JOBS, some, ONE_O_CLOCK)
        await settle(pilot)
        assert table_of(app).cursor_key == "grpo7"
        await pressed(pilot, "j")
        assert table_of(app).cursor_key == "whisper"
        home_of(app).snapshot = costly_fleet()
        await settle(pilot)
        assert table_of(app).cursor_key == "whisper"


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
async def test_narrow_screens_show_the_lost_money_behind_the_problem(size: tuple[int, int]) -> None:
    app = home(costly_fleet())
    async with opened(app, size):
        stalled = next(line for line in text_of(app).splitlines() if " stalled " in line)
        assert stalled.rstrip().endswith("−$60")


async def test_a_notice_that_was_seen_goes_with_the_next_key_but_an_error_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = home(costly_fleet())
    async with opened(app, (80, 24)) as pilot:
        app.notify("Copied the job id")
        app.notify("Not stopped", severity="error")
        monkeypatch.setattr("tui.app.shell.NOTICE_SEEN_S", 60.0)
        await pressed(pilot, "j")
        assert len(app._notifications) == 2
        monkeypatch.setattr("tui.app.shell.NOTICE_SEEN_S", 0.0)
        await pressed(pilot, "j")
        assert [notice.message for notice in app._notifications] == ["Not stopped"]


async def test_tall_screens_show_what_is_wrong_with_the_selected_job() -> None:
    app = home(costly_fleet())
    async with opened(app, (120, 40)) as pilot:
        assert "no step, since" in text_of(app) and "≈$60 lost so far, $120 an hour" in text_of(app)
        await pressed(pilot, "j", "j")
        assert "loss is NaN, since" in text_of(app)
        rows = (await pressed(pilot, "slash", *"whisper-ft")).splitlines()
        assert any("whisper-ft" in row and "1 A10G" in row for row in rows), rows
        await pressed(pilot, "escape")
        await resized(pilot, 120, 14)
        assert not app.screen.query_one("#preview").display


async def test_the_curve_of_a_log_that_is_not_read_whole_says_so() -> None:
    curve = Series("loss", tuple(range(60)), tuple(2.0 - place / 60 for place in range(60)))
    progress = ProgressSnapshot(step=60, loss=1.0, loss_series=curve)
    jobs = [job for job in JOBS if job.id in ("llama70", "sftv2")]
    for log_read, titles in ((False, ["loss, still reading", "loss, end of run"]), (True, ["loss", "loss"])):
        previews = {job.id: JobPreview(progress, log_read=log_read) for job in jobs}
        app = home(FleetFold().fold(PROJECTS, jobs, previews, ONE_O_CLOCK))
        async with opened(app, (120, 40)) as pilot:
            shown = [app.screen.query_one("#preview-loss", LineChart).spec.title]
            await pressed(pilot, "j")
            assert [*shown, app.screen.query_one("#preview-loss", LineChart).spec.title] == titles


async def test_preview_shows_whole_lines_of_the_log() -> None:
    lines = tuple(f"line {number} {'of many words ' * 12}" for number in range(9))
    previews = {"llama70": JobPreview(ProgressSnapshot(step=60), last_lines=lines)}
    app = home(FleetFold().fold(PROJECTS, JOBS[:1], previews, ONE_O_CLOCK))
    async with opened(app, (120, 40)) as pilot:
        for size in ((120, 40), (80, 36), (160, 44)):
            await resized(pilot, *size)
            log = app.screen.query_one("#preview-log", TextPanel)
            rows = [log.render_line(y).text.strip() for y in range(log.size.height)]
            assert rows[0].startswith("line ") and "line 8" in " ".join(rows), size


def test_reading_the_end_of_a_job_does_not_move_it_among_equals() -> None:
    jobs = [job(name, "COMPLETED") for name in ("one", "two", "three")]
    fold = FleetFold()
    fold.warm(jobs, {}, ONE_O_CLOCK)
    snapshot = fold.fold(PROJECTS, jobs[1:2], {"two": JobPreview(last_lines=("end",))}, ONE_O_CLOCK)
    assert [row.id for row in snapshot.jobs] == ["one", "two", "three"]
    assert snapshot.jobs[1].preview.last_lines == ("end",)


async def test_home_that_a_page_covers_before_it_is_painted_still_reads_its_jobs() -> None:
    app = home()
    async with opened(app, SIZE) as pilot:
        for turns in range(0, 40, 5):
            shown = HomeScreen(partial(StubFleetFeed, fleet()), "acme")
            app.push_screen(shown)
            app.push_screen(HelpScreen(()))
            for _ in range(turns):
                await asyncio.sleep(0)
            await app.pop_screen()
            await until(pilot, lambda shown=shown: shown.snapshot is not None)
            await app.pop_screen()
