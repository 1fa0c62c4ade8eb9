"""Keys typed before the first of them is dealt with: nothing is done twice, nothing closes too much."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from textual import events
from textual.app import ScreenStackError
from textual.command import CommandList, CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input

from support.dashboard import Dashboard, Heard, home, job_view, opened, settle
from support.waiting import sees, to_screen, until
from tui.app import BtTuiApp
from tui.app.job_changes import JobChanges
from tui.screens.base import OpenPage
from tui.screens.dialogs import ConfirmScreen, Dialog, FileConflictScreen
from tui.screens.help import HelpScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.messages import BatchRequested

SIZE = (80, 24)


async def at_once(app: BtTuiApp, pilot: Pilot[object], *keys: str) -> None:
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else {"colon": ":"}.get(key)))
    await settle(pilot)


async def test_keys_take_effect_in_the_order_in_which_they_are_typed() -> None:
    app = job_view()
    async with opened(app, SIZE) as pilot:
        await at_once(app, pilot, "2", "slash", "l", "x", "backspace", "o")
        assert type(app.focused) is Input and app.focused.value == "lo" and app.screen.has_class("-tab-logs")
        await at_once(app, pilot, "escape", "E", "x")
        assert type(app.focused) is Input and app.focused.value == "x"


@pytest.mark.parametrize("is_forwarded", [False, True])
async def test_key_that_arrives_when_all_screens_are_gone_is_dropped(*, is_forwarded: bool) -> None:
    app = home()
    async with opened(app, SIZE):
        key = events.Key("j", "j")
        if is_forwarded:
            key._set_forwarded()
        screens = list(app._screen_stack)
        app._screen_stack.clear()
        try:
            await app.on_event(key)
        finally:
            app._screen_stack.extend(screens)


async def test_action_that_waits_for_its_screen_while_the_app_exits_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = home()
    async with opened(app, SIZE):
        screens = list(app._screen_stack)
        monkeypatch.setattr("tui.app.typed_keys.is_fully_mounted", lambda _screen: False)
        asyncio.get_running_loop().call_soon(app._screen_stack.clear)
        try:
            assert not await app._typed_keys.can_act_on(app.screen)
        finally:
            app._screen_stack.extend(screens)


async def test_key_that_is_being_handled_while_all_screens_close_is_no_crash() -> None:
    app = home()
    async with opened(app, SIZE):
        screens = list(app._screen_stack)
        app._screen_stack.clear()
        with pytest.raises(ScreenStackError) as caught:
            app.action_help_quit()
        app._handle_exception(caught.value)
        app._screen_stack.extend(screens)
    assert not app.return_code


async def test_key_of_a_closed_screen_does_not_close_the_first_screen() -> None:
    app = home()
    async with opened(app, SIZE) as pilot:
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        help_screen = app.screen
        await app.pop_screen()
        await app.run_action("app.pop_screen", help_screen)  # the key "q" of the help
        assert isinstance(app.screen, HomeScreen)


async def test_paste_goes_into_the_field_that_a_key_before_it_opens() -> None:
    app = home()
    async with opened(app, SIZE) as pilot:
        for key in ("question_mark", "escape", "slash"):
            app.post_message(events.Key(key, None))
        app.post_message(events.Paste("v2"))
        await settle(pilot)
        assert isinstance(app.focused, Input) and app.focused.value == "v2"


async def test_key_after_enter_waits_for_a_slow_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.app.typed_keys.MAX_WAIT_S", 60.0)
    app = home()
    async with opened(app, SIZE) as pilot:
        await pilot.press("slash", *"v2")
        field = app.focused
        is_free = asyncio.Event()
        field.call_later(is_free.wait)
        asyncio.get_running_loop().call_later(0.4, is_free.set)
        await at_once(app, pilot, "enter", "colon")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette) or field.value != "v2")
        assert field.value == "v2"


async def test_time_for_which_the_whole_program_stalls_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, stalled_s, monotonic = asyncio.get_running_loop(), 0.0, time.monotonic
    monkeypatch.setattr(loop, "time", lambda: monotonic() + stalled_s)
    monkeypatch.setattr("tui.app.typed_keys.monotonic", loop.time)
    app = home()
    async with opened(app, SIZE) as pilot:
        await pilot.press("slash", *"v2")
        field = app.focused
        is_free = asyncio.Event()

        def stall() -> None:
            nonlocal stalled_s
            stalled_s = 5.0
            loop.call_later(0.1, is_free.set)

        field.call_later(is_free.wait)
        loop.call_later(0.1, stall)
        await at_once(app, pilot, "enter", "colon")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette) or field.value != "v2")
        assert field.value == "v2"


async def test_enter_pressed_twice_opens_the_first_match_answers_once_and_chooses_once() -> None:
    app, asked = home(), Heard(OpenPage)
    answers: list[bool | None] = []
    async with opened(app, SIZE, message_hook=asked) as pilot:
        await sees(pilot, "1 of ", after=("slash", *"v2"))
        await at_once(app, pilot, "enter", "enter")
        assert len(asked.messages) == 1
        app.push_screen(ConfirmScreen("Stop it?", "It ends.", "Stop", "Keep it"), answers.append)
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and app.focused is not None)
        await at_once(app, pilot, "enter", "enter", "enter")
        await until(pilot, lambda: bool(answers))
        assert answers == [False] and len(app.screen_stack) == 2
        await to_screen(pilot, CommandPalette, "colon")
        await sees(pilot, "Show keyboard shortcuts.", after=(*"help",))
        await at_once(app, pilot, "enter", "enter", "enter", "enter")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert [type(screen) for screen in app.screen_stack[1:]] == [HomeScreen, HelpScreen]


async def test_a_palette_that_closes_while_somebody_types_ends_nothing() -> None:
    app = home()
    async with opened(app, SIZE) as pilot:
        await to_screen(pilot, CommandPalette, "colon")
        await app.screen.query_one(CommandList).remove()  # closing removes the list before the palette
        await to_screen(pilot, HelpScreen, "h", "pageup", "escape", "question_mark")
        for open_above in (app.action_command_palette, app.action_help, app.action_command_palette):
            open_above()  # the help opens above the palette, as screens do that were still loading


async def test_action_of_a_screen_below_a_dialog_does_nothing() -> None:
    app = job_view()
    async with opened(app, SIZE) as pilot:
        below = app.screen
        await app.push_screen(ConfirmScreen("Stop it?", "It ends.", "Stop"))
        await settle(pilot)
        assert not await app.run_action("show_logs", below)
        below.action_back()  # type: ignore[attr-defined]
        await settle(pilot)
        assert isinstance(app.screen, ConfirmScreen) and not below.has_class("-tab-logs")


@pytest.mark.parametrize(
    ("view", "key", "in_time"),
    [(home, "s", True), (job_view, "s", True), (home, "R", True), (home, "s", False)],
)
async def test_keys_wait_for_a_dialog_and_are_dropped_when_it_takes_too_long(
    view: Callable[[], Dashboard], key: str, in_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_ask, ask = asyncio.Event(), JobChanges._is_confirmed

    async def ask_late(*of: Any) -> bool:
        await may_ask.wait()
        return await ask(*of)

    monkeypatch.setattr(JobChanges, "_is_confirmed", ask_late)
    monkeypatch.setattr("tui.app.typed_keys.MAX_WAIT_S", 60.0 if in_time else 0.5)
    app, asked = view(), Heard(BatchRequested)
    async with opened(app, SIZE, message_hook=asked) as pilot:
        await at_once(app, pilot, key, "q", key)
        if not in_time:
            await until(pilot, lambda: not app._typed_keys._keys)
        may_ask.set()
        await until(pilot, lambda: isinstance(app.screen, Dialog) and len(asked.messages) == 1 + in_time)


async def test_key_waits_for_a_screen_that_changes_right_before_it_acts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = home()
    async with opened(app, SIZE) as pilot:
        looks = iter([True, False])  # when it acts, a tip is mounted, say
        monkeypatch.setattr("tui.app.typed_keys.is_fully_mounted", lambda _screen: next(looks, True))
        await at_once(app, pilot, "space")
        await sees(pilot, "1 marked")


async def test_dialog_that_opens_by_itself_takes_no_key_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.app.typed_keys.SEEN_AFTER_S", 60.0)
    app = job_view()
    async with opened(app, SIZE) as pilot:
        asking = app.run_worker(app.push_screen_wait(FileConflictScreen("down", ["a"])))
        await until(pilot, lambda: isinstance(app.screen, FileConflictScreen) and app.focused is not None)
        await at_once(app, pilot, "o", "enter", "escape")
        assert isinstance(app.screen, FileConflictScreen)
        monkeypatch.setattr("tui.app.typed_keys.SEEN_AFTER_S", 0.0)
        await at_once(app, pilot, "o")
        await until(pilot, lambda: asking.is_finished)
        assert asking.result == "overwrite"


async def test_keys_are_taken_if_a_screen_never_calls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    app = home()
    async with opened(app, SIZE) as pilot:
        screen, call_later = app.screen, app.screen.call_later

        def forget_the_queue_of_keys(*callback: Any) -> bool:
            """Drop it as a screen does that is removed with the callback in its own queue."""
            is_of_queue = isinstance(getattr(callback[0], "__self__", None), asyncio.Event)
            return is_of_queue or call_later(*callback)

        monkeypatch.setattr(screen, "call_later", forget_the_queue_of_keys)
        await at_once(app, pilot, "S", "question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
