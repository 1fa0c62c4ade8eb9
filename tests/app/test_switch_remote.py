"""Going from one remote to another inside the dashboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from api_client.remotes import Remote, resolve_remote
from support.dashboard import text_of
from support.emulator import running_emulator
from support.stranger import Answer, FakeBaseten
from support.waiting import until
from tui.app import BtTuiApp, remotes
from tui.readers import session
from tui.screens.downloads import DownloadsScreen

UNREACHABLE_URL = "http://127.0.0.1:9"


async def test_another_remote_is_chosen_by_name_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_emulator("empty") as first, running_emulator("empty") as second:
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
        app = BtTuiApp(resolve_remote("harbour", environ=environ))
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "harbour" in text_of(app) and "● live" in text_of(app))
            before = app.session
            await pilot.press("U")
            await until(pilot, lambda: "lighthouse" in text_of(app))
            assert second.key not in text_of(app)
            await pilot.press(*"light")
            await until(pilot, lambda: text_of(app).count(first.url) == 0)
            while app.session is before:
                await pilot.press("enter")
                await pilot.pause()
            await until(pilot, lambda: "lighthouse" in text_of(app) and "● live" in text_of(app))
            assert "harbour" not in text_of(app)
            assert app.session is not before
            first.shut_down()
            await pilot.press("r")
            await until(pilot, lambda: "● live" in text_of(app))


async def test_the_emulator_on_this_machine_is_one_of_them() -> None:
    with running_emulator("empty") as own, FakeBaseten() as stranger:
        here = Remote("local", own.url, own.url, SecretStr(own.key), "its folder")
        app = BtTuiApp(resolve_remote(environ=stranger.environ()), own_emulator=lambda: here)
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: "● live" in text_of(app))
            before = app.session
            await pilot.press("U")
            await until(pilot, lambda: "the emulator on this machine" in text_of(app))
            await pilot.press(*"local")
            while app.session is before:
                await pilot.press("enter")
                await pilot.pause()
            await until(pilot, lambda: text_of(app).startswith(" bt-tui  local"))


def unreachable(_: FakeBaseten, here: Remote) -> Remote:
    return replace(here, app_url=UNREACHABLE_URL, api_url=UNREACHABLE_URL)


def with_a_wrong_key(_: FakeBaseten, here: Remote) -> Remote:
    return replace(here, key=SecretStr("no-key-of-this-server"))


def with_a_key_that_cannot_be_sent(_: FakeBaseten, here: Remote) -> Remote:
    return replace(here, key=SecretStr("two\nlines"))


def answering(answer: Answer) -> Callable[[FakeBaseten, Remote], Remote]:
    def become(server: FakeBaseten, here: Remote) -> Remote:
        server.on("GET", "/.*", answer)
        return here

    return become


PAGE = Answer(body=b"<html>welcome, guest</html>", headers={"Content-Type": "text/html"})


@pytest.mark.parametrize(
    ("becomes", "words"),
    [
        (unreachable, "connection refused"),
        (with_a_wrong_key, "refused the key of remote 'lighthouse'"),
        (with_a_key_that_cannot_be_sent, "key"),
        (answering(PAGE), "HTML, not JSON"),
        (answering(Answer(hangs=True)), "sent no complete response in time"),
    ],
)
async def test_a_remote_that_cannot_be_had_is_told_of_and_the_one_before_is_kept(
    becomes: Callable[[FakeBaseten, Remote], Remote], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "CHECK_S", 0.2)
    monkeypatch.setattr(remotes, "SLOW_SERVER_S", 0.0)
    with FakeBaseten() as here, FakeBaseten() as there:
        app = BtTuiApp(resolve_remote(environ=here.environ()))
        async with app.run_test(size=(100, 30), notifications=True) as pilot:
            await until(pilot, lambda: "job1" in text_of(app) and "● live" in text_of(app))
            await pilot.press("T")
            await until(pilot, lambda: isinstance(app.screen, DownloadsScreen))
            before, screen = app.session, app.screen
            url = there.url
            good = Remote("lighthouse", url, url, SecretStr(there.key), "a file")
            app.remotes.switch_to(becomes(there, good))
            await until(pilot, lambda: words in " ".join(text_of(app).replace("▌", " ").split()))
            shown = text_of(app)
            assert "Can't switch to lighthouse" in shown
            assert f"Still on {urlsplit(here.url).netloc}." in shown
            assert (app.session, app.screen) == (before, screen)
            there._own_routes.clear()
            assert "● live" in shown
            app.remotes.switch_to(good)
            await until(pilot, lambda: text_of(app).startswith(" bt-tui  lighthouse"))
            assert app.session is not before
