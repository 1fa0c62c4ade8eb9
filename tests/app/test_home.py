from dataclasses import replace
from datetime import timedelta

from textual import events
from textual.widgets import Input

from support.dashboard import Heard, home, loading_home, opened, pressed, settle, text_of
from support.worlds import JOBS, ONE_O_CLOCK, fleet, job
from tui.analysis.connection import Connection, ConnectionState
from tui.analysis.fleet.snapshot import FleetSnapshot
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.app import BtTuiApp
from tui.screens.dialogs import StopScreen
from tui.screens.help import HelpScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.messages import OpenJobRequested
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
        await pilot.press("S", "S")
        assert names(app) == sorted(names(app))
        await pilot.press("V")
        assert names(app) == sorted(names(app), reverse=True)
        await pilot.click("#jobs", offset=(8, 0))
        await settle(pilot)
        assert names(app) == sorted(names(app))
        app.screen.query_one("#projects").focus()
        await pressed(pilot, "j")
        assert len({row.project for row in table_of(app).rows}) == 1


async def test_stopping_asks_by_name_and_no_is_the_default_and_enter_opens_the_job() -> None:
    app, heard = home(), Heard(OpenJobRequested)
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
    assert [message.job.id for message in heard.messages] == ["grpo7"]


async def test_the_worst_job_comes_first_however_the_list_is_sorted() -> None:
    slow = (HealthFinding(FindingKind.STALLED, "warning", "slow"),)
    jobs = (row if row.alarmed else replace(row, alarmed=True, findings=slow) for row in fleet().jobs[:3])
    app = home(replace(fleet(), jobs=tuple(jobs)))
    async with opened(app, SIZE) as pilot:
        for key, worst in zip("SVSVG", ("grpo7", "whisper", "llama70", "grpo7", "grpo7"), strict=True):
            await pressed(pilot, key, "exclamation_mark")
            assert table_of(app).cursor_key == worst
