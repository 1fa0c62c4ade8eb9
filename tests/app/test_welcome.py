"""Connecting from the welcome screen: the key is checked, stored as ``bt-tui login`` does, shown nowhere."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from support.dashboard import text_of
from support.fake_baseten import Answer, FakeBaseten
from support.waiting import sees, until
from tui.app import BtTuiApp
from tui.readers import login
from tui.screens.welcome import WelcomeChoice


async def paste(pilot: Pilot[Any], text: str) -> None:
    pilot.app.screen.query_one("#key", Input).post_message(events.Paste(text))
    await pilot.pause()
    await pilot.press("enter")


@pytest.mark.proves("README.md", "On your own workspace")
async def test_pasted_key_is_stored_once_the_server_accepts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trussrc = tmp_path / "trussrc"
    monkeypatch.setenv("USER_TRUSSRC_PATH", str(trussrc))
    with FakeBaseten() as baseten:
        monkeypatch.setattr(login, "DEFAULT_APP_URL", baseten.url)
        baseten.on("GET", "/v1/users/me", Answer({"email": "ada@example.com"}))
        app = BtTuiApp(None)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("G", "enter")
            await until(pilot, lambda: baseten.url in text_of(app))
            await paste(pilot, "no-key-of-this-server")
            await sees(pilot, "✗")
            assert "refused the key" in text_of(app) and "no-key-of" not in text_of(app)
            await paste(pilot, "two words")
            await sees(pilot, "a space")
            assert not trussrc.exists()
            assert len(baseten.asked) == 1
            app.screen.query_one("#key", Input).post_message(events.Paste(baseten.key))
            await pilot.pause()
            assert baseten.key not in text_of(app) and "•••" in text_of(app)
            await pilot.press("enter")
            await until(pilot, lambda: app.return_value is not None)
        assert app.return_value is WelcomeChoice.LOGIN
        assert trussrc.read_text() == (
            f"[baseten]\nremote_provider = baseten\nremote_url = {baseten.url}\n"
            f"auth_type = api_key\napi_key = {baseten.key}\n"
        )
        assert stat.S_IMODE(trussrc.stat().st_mode) == 0o600


async def test_escape_forgets_the_typed_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER_TRUSSRC_PATH", str(tmp_path / "trussrc"))
    app = BtTuiApp(None)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "Watch the demo")
        await sees(pilot, "Create an API key", after=("G", "enter"))
        await sees(pilot, "Watch the demo", after=(*"secret", "escape"))
        assert app.screen.query_one("#key", Input).value == ""
