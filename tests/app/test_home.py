from dataclasses import replace
from datetime import timedelta

import pytest
from textual import events
from textual.geometry import Size
from textual.widgets import Input

from support.dashboard import home, loading_home, settle, text_of
from support.worlds import JOBS, ONE_O_CLOCK, fleet, job
from tui.analysis.connection import Connection, ConnectionState
from tui.analysis.fleet.snapshot import FleetSnapshot
from tui.screens.dialogs import ConfirmScreen
from tui.screens.help import HelpScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.messages import OpenJobRequested
from tui.widgets.row_table import RowTable

SIZE = (80, 24)


def names(app: object) -> list[str]:
    return [row.name for row in app.screen.query_one("#jobs", RowTable).rows]  # type: ignore[attr-defined]


async def test_running_jobs_come_first_then_what_waits_then_the_newest_of_what_is_over() -> None:
    app = home()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert names(app) == [
            "whisper-ft",
            "qwen3-grpo-7",
            "llama-70b-sft-v3",
            "llama-8b-long",
            "llama-8b-ablate",
            "eval-sweep",
            "llama-70b-sft-v2",
            "qwen3-grpo-6",
            "from-the-future",
            "flux-lora-2",
        ]
        screen = text_of(app)
        assert "10 jobs" in screen
        assert "3 running" in screen
        assert "46%  7h 10m left" in screen
        assert "▲ stalled" in screen
        assert "hibernating"[:8] in screen


async def test_a_filter_narrows_while_it_is_typed_and_esc_brings_all_back() -> None:
    app = home()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("slash", *"status", "colon", *"running gpu", "colon", *"h100")
        await settle(pilot)
        assert names(app) == ["llama-70b-sft-v3"]
        await pilot.press("enter", "escape")
        await settle(pilot)
        assert len(names(app)) == len(JOBS)


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
async def test_an_unknown_status_is_said_and_one_that_only_a_job_has_is_not(size: tuple[int, int]) -> None:
    app = home()
    async with app.run_test(size=size) as pilot:
        await pilot.press("slash", *"status:runing")
        await settle(pilot)
        assert "unknown status 'runing'; use pending, queued" in " ".join(text_of(app).split())
        before = len(names(app))
        await pilot.press(*["backspace"] * len("runing"), *"hiber")
        await settle(pilot)
        assert "unknown" not in text_of(app)
        assert (before > 1, names(app)) == (True, ["from-the-future"])


@pytest.mark.parametrize("size", [(120, 24), (80, 24), (60, 20), (40, 12)])
@pytest.mark.parametrize("query", ["is:alarmed", "llama status:running,failed gpu:h100,h200 age<20d"])
async def test_an_active_filter_and_how_many_pass_are_always_shown(size: tuple[int, int], query: str) -> None:
    app = home()
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("slash")
        app.screen.query_one("#filter", Input).value = query
        await pilot.press("enter")
        await settle(pilot)
        top = " ".join(text_of(app).split())
        assert f"/{query}" in top
        assert f"{len(names(app))} of {len(JOBS)} jobs" in top


async def test_the_chosen_project_is_named_where_the_list_of_projects_has_no_room() -> None:
    app = home()
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)
        app.screen.choose_project("p-qwen3-grpo")
        await settle(pilot)
        assert "2 of 10 jobs in qwen3-grpo" in text_of(app)


@pytest.mark.parametrize("typed", ["vkcj4q7", "KCJ4", "id:vkcj", "p-wmt"])
async def test_a_job_is_found_by_part_of_its_id_or_its_projects(typed: str) -> None:
    app = home(fleet((job("vkcj4q7", name="bert", project="wmt"), *JOBS)))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("slash")
        app.screen.query_one("#filter", Input).value = typed
        await settle(pilot)
        assert names(app) == ["bert"]


async def test_what_is_typed_right_after_the_key_of_the_filter_is_in_it() -> None:
    app = home()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for key, character in (("slash", "/"), *((letter, letter) for letter in "sdqwhisper")):
            app.post_message(events.Key(key, character))  # all at once, as a fast terminal sends them
        await settle(pilot)
        assert app.screen.query_one("#filter", Input).value == "sdqwhisper"


async def test_a_filter_that_makes_no_sense_is_told_and_loses_nothing() -> None:
    app = home()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("slash", *"age<banana")
        await settle(pilot)
        assert "isn't a duration" in text_of(app)


async def test_the_place_is_kept_when_newer_jobs_arrive() -> None:
    app = home()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("j", "j")
        table = app.screen.query_one("#jobs", RowTable)
        before = table.cursor_key
        newcomer = JOBS[0].model_copy(update={"id": "newer", "created_at": ONE_O_CLOCK})
        app.screen.snapshot = fleet((newcomer, *JOBS))  # type: ignore[attr-defined]
        await settle(pilot)
        assert len(table.rows) == len(JOBS) + 1
        assert table.cursor_key == before == "llama70"


async def test_the_cursor_works_though_the_connection_came_before_the_first_list() -> None:
    app = loading_home(Connection())
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        app.screen.connection = Connection(ConnectionState.LIVE, answered_at=ONE_O_CLOCK)  # type: ignore[attr-defined]
        await settle(pilot)
        app.screen.snapshot = fleet()  # type: ignore[attr-defined]
        await settle(pilot)
        await pilot.press("j", "j")
        assert app.screen.query_one("#jobs", RowTable).cursor_key == "llama70"


async def test_sorting_by_key_and_by_heading() -> None:
    app = home()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("S", "S")
        assert names(app) == sorted(names(app))
        await pilot.press("V")
        assert names(app) == sorted(names(app), reverse=True)
        await pilot.click("#jobs", offset=(8, 0))
        await settle(pilot)
        assert names(app) == sorted(names(app))


async def test_a_project_shows_its_jobs_alone() -> None:
    app = home()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        app.screen.query_one("#projects").focus()
        await pilot.press("j")
        await settle(pilot)
        projects = {row.project for row in app.screen.query_one("#jobs", RowTable).rows}
        assert len(projects) == 1


async def test_enter_asks_for_the_job_under_the_cursor() -> None:
    heard: list[OpenJobRequested] = []
    app = home()
    async with app.run_test(
        size=SIZE, message_hook=lambda m: heard.append(m) if isinstance(m, OpenJobRequested) else None
    ) as pilot:
        await settle(pilot)
        await pilot.press("j", "enter")
        await settle(pilot)
    assert [message.job.id for message in heard][:1] == ["grpo7"]


async def test_stopping_asks_by_name_and_no_is_the_default() -> None:
    app = home()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("s")
        await settle(pilot)
        assert isinstance(app.screen, ConfirmScreen)
        assert "Stop whisper-ft (whisper)?" in text_of(app)
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)


async def test_a_finished_job_is_not_stopped() -> None:
    app = home()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("G", "s")
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)


async def test_read_only_refuses_what_changes_something() -> None:
    app = home(readonly=True)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("s")
        await settle(pilot)
        assert isinstance(app.screen, HomeScreen)
        assert "read-only" in text_of(app)


async def test_help_lists_the_keys_of_this_screen_and_goes_away() -> None:
    app = home()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("question_mark")
        await settle(pilot)
        assert isinstance(app.screen, HelpScreen)
        assert "Sort by the next column" in text_of(app)
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        (
            Connection(
                ConnectionState.LOST, failing_since=ONE_O_CLOCK, reason="connection refused by 127.0.0.1:9"
            ),
            "refused by",
        ),
        (
            Connection(ConnectionState.UNAUTHORISED, reason="acme refused the key (from BASETEN_API_KEY)"),
            "BASETEN_API_KEY",
        ),
        (
            Connection(
                ConnectionState.RETRYING, failing_since=ONE_O_CLOCK, retry_at=ONE_O_CLOCK + timedelta(hours=1)
            ),
            "↻ retrying",
        ),
    ],
)
async def test_trouble_before_the_first_answer_says_what_and_why(
    connection: Connection, expected: str
) -> None:
    app = loading_home(connection)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert expected in text_of(app)


async def test_an_account_without_jobs_says_so() -> None:
    app = home(FleetSnapshot((), (), ONE_O_CLOCK))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "No training jobs here yet" in text_of(app)


async def test_hostile_names_are_inert_text() -> None:
    hostile = JOBS[0].model_copy(update={"name": "[red]x[/red]\x1b[2J\x1b]0;gone\x07\n\x00\u202eevil"})
    app = home(fleet((hostile,)))
    async with app.run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        screen = text_of(app)
        assert "[red]x[/red]" in screen
        assert not {"\x1b", "\x07", "\x00", "\u202e"} & set(screen)


@pytest.mark.parametrize(("status", "words"), [("COMPLETED", "already"), ("RUNNING", "The job stops now")])
async def test_hostile_names_and_ids_are_inert_in_questions_and_notices(status: str, words: str) -> None:
    text = "[/nonsense] [red]x[/red]\x1b[2J\x07"
    hostile = JOBS[0].model_copy(
        update={"name": text, "id": text, "current_status": f"TRAINING_JOB_{status}"}
    )
    app = home(fleet((hostile,)))
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("s")
        await settle(pilot)
        screen = text_of(app)
    assert words in screen
    assert not {"\x1b", "\x07"} & set(screen)


@pytest.mark.parametrize("size", [(60, 20), (30, 8), (200, 60), (10, 3)])
async def test_any_size_shows_something_and_nothing_breaks(size: tuple[int, int]) -> None:
    app = home()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.resize_terminal(*size)
        await settle(pilot)
        assert text_of(app).strip()


async def test_a_name_of_twenty_characters_is_whole_on_a_wide_screen() -> None:
    app = home(fleet((job("long", name="qwen3-32b-grpo-ppo-7"), *JOBS)))
    async with app.run_test(size=(160, 24)) as pilot:
        await settle(pilot)
        assert "qwen3-32b-grpo-ppo-7" in text_of(app)


async def test_a_refresh_that_brings_one_new_word_lays_nothing_out_anew() -> None:
    app = home()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        laid_out: list[str] = []
        layout = app.screen._refresh_layout

        def counted(size: Size | None = None, scroll: bool = False) -> None:
            laid_out.append("again")
            layout(size, scroll)

        app.screen._refresh_layout = counted  # type: ignore[method-assign, assignment]
        one, *others = fleet().jobs
        app.screen.snapshot = replace(fleet(), jobs=(replace(one, note="stranger"), *others))  # type: ignore[attr-defined]
        await settle(pilot)
        assert "stranger" in text_of(app)
        assert laid_out == []
