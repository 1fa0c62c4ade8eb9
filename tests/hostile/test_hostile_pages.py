"""Every page on a server that means harm, drawn in the process of the test: what came is text alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.screen_walks import WALKS
from hostile_answers import MARK, HostileServer, hidden_in

from support.dashboard import settle, text_of
from support.remotes import remote_of
from support.waiting import until
from tui.app import BtTuiApp
from tui.screens.home.screen import HomePage, HomeScreen

REST = "4242m"
"""What Textual leaves of the harm if we have not sanitized it."""


async def test_no_page_lets_any_of_it_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with HostileServer() as server:
        app = BtTuiApp(remote_of(server))
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: MARK in text_of(app))
            for page, walk in WALKS.items():
                if walk.asks and page is not HomePage:
                    asked = len(server.asked)
                    await walk.go(app, pilot)
                    await until(pilot, lambda: not isinstance(app.screen, HomeScreen))
                    await until(pilot, lambda before=asked: len(server.asked) > before)  # type: ignore[misc]
                    await until(pilot, lambda: MARK in text_of(app))
                    await settle(pilot)
                    assert hidden_in(text_of(app)) == [], page
                    assert REST not in text_of(app), page
                    while not isinstance(app.screen, HomeScreen):
                        await pilot.press("escape")
