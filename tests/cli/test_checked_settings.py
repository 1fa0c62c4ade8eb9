"""Settings are checked once for each change of the file, and never the less for it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tui.settings import loading
from tui.settings.checked import CACHE_FILE_NAME


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []
    whole = loading.load

    def counted(*arguments: object) -> object:
        made.append(1)
        return whole(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(loading, "load", counted)
    return made


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    return tmp_path / "own.toml"


def environ_of(stranger, settings: Path) -> dict[str, str]:
    return {**stranger.environ(), "BT_TUI_CONFIG": str(settings)}


def test_a_good_file_is_checked_once_and_a_changed_one_again(cli, stranger, settings, checks):
    settings.write_text("readonly = false\n")
    environ = environ_of(stranger, settings)
    assert cli("projects", environ=environ).code == 0
    after_one = len(checks)
    assert after_one
    assert cli("projects", environ=environ).code == 0
    assert len(checks) == after_one

    settings.write_text("readonly = false\nno_such_setting = 1\n")
    result = cli("projects", environ=environ)
    assert result.code == 2
    assert f"{settings}:2: no_such_setting" in result.err
    assert cli("projects", environ=environ).code == 2

    settings.write_text("remote = 'nowhere'\n")
    result = cli("projects", environ={"BT_TUI_CONFIG": str(settings)})
    assert "nowhere" in result.err


def test_a_variable_counts_though_the_file_is_known(cli, stranger, settings):
    settings.write_text("readonly = false\n")
    environ = environ_of(stranger, settings)
    assert cli("projects", environ=environ).code == 0
    assert cli("projects", environ={**environ, "BT_TUI_REFRESH_FLEET_S": "often"}).code == 2


def test_what_is_kept_is_private_and_a_broken_one_is_done_without(cli, stranger, settings):
    settings.write_text("[notifications]\nwebhook = 'https://example.com/hook-of-mine'\n")
    environ = environ_of(stranger, settings)
    assert cli("projects", environ=environ).code == 0
    kept = Path(os.environ["XDG_CACHE_HOME"]) / "bt-tui" / CACHE_FILE_NAME
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "hook-of-mine" not in kept.read_text()
    assert stranger.key not in kept.read_text()
    for broken in ("", "[]", "{", '{"stamp": 1, "settings": {"remote": 3, "read_only_by": 4}}'):
        kept.write_text(broken)
        assert cli("projects", environ=environ).code == 0
