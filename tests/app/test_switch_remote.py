"""Going from one remote to another inside the dashboard."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr
from textual.command import CommandList, CommandPalette
from textual.pilot import Pilot

from api_client.remotes import Remote, resolve_remote
from support.dashboard import pressed, text_of
from support.fake_baseten import Answer, FakeBaseten
from support.waiting import sees, to_screen, until
from tui.app import BtTuiApp, remotes
from tui.readers import session
from tui.screens.downloads import DownloadsScreen

UNREACHABLE_URL = "http://127.0.0.1:9"


async def choose(pilot: Pilot[Any], app: BtTuiApp, letters: str, words: str) -> None:
    before = app.session
    await pilot.press("U")
    await until(pilot, lambda: isinstance(app.screen, CommandPalette) and words in text_of(app))
    await pilot.press(*letters)
    await until(pilot, lambda: app.screen.query_one(CommandList).option_count == 1)
    while isinstance(app.screen, CommandPalette):
        await pressed(pilot, "enter")
    await until(pilot, lambda: app.session is not before and "● live" in text_of(app))


async def test_another_remote_is_chosen_by_name_and_so_is_the_emulator_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeBaseten() as first, FakeBaseten() as second, FakeBaseten() as own:
        first.jobs, second.jobs, own.jobs = [], [], []
        trussrc = tmp_path / "trussrc"
        trussrc.write_text(
            "".join(
                f"[{name}]\nremote_provider = baseten\nremote_url = {one.url}\napi_key = {one.key}\n"
                for name, one in (("harbour", first), ("lighthouse", second))
            )
        )
        trussrc.chmod(0o600)
        environ = {"USER_TRUSSRC_PATH": str(trussrc), "HOME": str(tmp_path)}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        here = Remote("local", own.url, own.url, SecretStr(own.key), "its folder")
        app = BtTuiApp(resolve_remote("harbour", environ=environ), start_emulator=lambda: here)
        async with app.run_test(size=(100, 30)) as pilot:
            await sees(pilot, "harbour", "● live")
            await choose(pilot, app, "light", "lighthouse")
            assert text_of(app).startswith(" bt-tui  lighthouse")
            assert app.session.remote.command_line("jobs") == "bt-tui --remote lighthouse jobs"
            first.asked.clear()
            second.asked.clear()
            await pilot.press("r")
            await until(pilot, lambda: bool(second.asked))
            await choose(pilot, app, "local", "the emulator on this machine")
            assert text_of(app).startswith(" bt-tui  local")
            assert first.asked == []


PAGE = Answer(b"<html>welcome, guest</html>", headers={"Content-Type": "text/html"})


async def test_a_remote_that_cannot_be_had_is_told_of_and_the_one_before_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "CHECK_S", 0.2)
    monkeypatch.setattr(remotes, "SLOW_SERVER_S", 0.0)
    with FakeBaseten() as here, FakeBaseten() as there, FakeBaseten() as page, FakeBaseten() as silent:
        good = Remote("lighthouse", there.url, there.url, SecretStr(there.key), "a file")
        page.on("GET", "/.*", PAGE)
        silent.on("GET", "/.*", Answer(hangs=True))
        app = BtTuiApp(resolve_remote(environ=here.environ()))
        async with app.run_test(size=(100, 30), notifications=True) as pilot:
            await sees(pilot, "job1", "● live")
            await to_screen(pilot, DownloadsScreen, "T")
            before, screen = app.session, app.screen
            for changed, words in (
                ({"app_url": UNREACHABLE_URL, "api_url": UNREACHABLE_URL}, "connection refused"),
                ({"key": SecretStr("no-key-of-this-server")}, "refused the key of remote 'lighthouse'"),
                ({"key": SecretStr("two\nlines")}, "key"),
                ({"app_url": page.url, "api_url": page.url}, "HTML, not JSON"),
                ({"app_url": silent.url, "api_url": silent.url}, "sent no complete response in time"),
            ):
                app.remotes.switch_to(replace(good, **changed))  # type: ignore[arg-type]
                await sees(pilot, "Can't switch to lighthouse")
                shown = " ".join(text_of(app).replace("▌", " ").split())
                assert words in shown
                assert f"Still on {urlsplit(here.url).netloc}." in shown
                assert (app.session, app.screen) == (before, screen)
                assert "● live" in shown
                app.clear_notifications()
                await until(pilot, lambda: "Can't switch" not in text_of(app))
            app.remotes.switch_to(good)
            await until(pilot, lambda: text_of(app).startswith(" bt-tui  lighthouse"))
            assert app.session is not before


@pytest.mark.parametrize("turns", [0, 3, 10, 36, 38, 40])
async def test_of_two_remotes_chosen_in_a_row_the_last_is_shown(turns: int) -> None:
    with FakeBaseten() as first, FakeBaseten() as second, FakeBaseten() as third:
        remotes_ = [
            Remote("", each.url, each.url, SecretStr(each.key), "a file") for each in (first, second, third)
        ]
        app = BtTuiApp(remotes_[0])
        async with app.run_test(size=(100, 30)) as pilot:
            await sees(pilot, "● live")
            before = app.session
            app.remotes.switch_to(remotes_[1])
            await until(pilot, lambda: app.session is not before or app.session.on_connection is None)
            for _ in range(turns):
                await asyncio.sleep(0)
            app.remotes.switch_to(remotes_[2])
            await until(pilot, lambda: app.session.remote is remotes_[2])
            await until(pilot, lambda: getattr(app.screen, "snapshot", None) is not None)
            assert app._running and len(app.screen_stack) == 2
