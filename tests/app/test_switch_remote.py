"""Going from one remote to another inside the dashboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from api_client.remotes import Remote, resolve_remote
from support.dashboard import text_of
from support.emulator import running_emulator
from support.stranger import Stranger
from support.waiting import until
from tui.app import BtTuiApp


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
            before = app._session
            await pilot.press("U")
            await until(pilot, lambda: "lighthouse" in text_of(app))
            assert second.key not in text_of(app)
            await pilot.press(*"light")
            await until(pilot, lambda: text_of(app).count(first.url) == 0)
            while app._session is before:
                await pilot.press("enter")
                await pilot.pause()
            await until(pilot, lambda: "lighthouse" in text_of(app) and "● live" in text_of(app))
            assert "harbour" not in text_of(app)
            assert app._session is not before
            first.shut_down()
            await pilot.press("r")
            await until(pilot, lambda: "● live" in text_of(app))


async def test_the_emulator_on_this_machine_is_one_of_them() -> None:
    with running_emulator("empty") as own, Stranger() as stranger:
        here = Remote("local", own.url, own.url, SecretStr(own.key), "its folder")
        app = BtTuiApp(resolve_remote(environ=stranger.environ()), own_emulator=lambda: here)
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: "● live" in text_of(app))
            before = app._session
            await pilot.press("U")
            await until(pilot, lambda: "the emulator on this machine" in text_of(app))
            await pilot.press(*"local")
            while app._session is before:
                await pilot.press("enter")
                await pilot.pause()
            await until(pilot, lambda: text_of(app).startswith(" bt-tui  local"))
