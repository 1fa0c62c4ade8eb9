"""Every setting has a test that changes it and sees its effect, marked with the setting's name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.cli import RunCli
from support.markers import marked
from tui.settings.loading import check_file, setting_names


@pytest.mark.proves("docs/configuration.md", "Configuration")
def test_every_setting_has_a_test_of_its_effect() -> None:
    """A test of a table covers all settings below it, as test_every_threshold does, which counts them."""
    tested = {name for names in marked("setting") for name in names}
    names = {name for name, _ in setting_names()}
    assert {name for name in names if name not in tested and name.partition(".")[0] not in tested} == set()
    assert tested - names - {name.partition(".")[0] for name in names} == set()


@pytest.mark.proves("docs/configuration.md", "Configuration")
@pytest.mark.proves("docs/configuration.md", "Health")
def test_the_example_file_of_the_page_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    file = tmp_path / "config.toml"
    file.write_text(example)
    ignored: list[object] = []
    assert (check_file(file, ignored), ignored) == ([], [])


@pytest.mark.setting("demo.speed")
@pytest.mark.proves("README.md", "The emulator")
def test_the_demo_has_the_speed_of_the_settings_or_flag(cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    from api_client.emulator import processes
    from tui.commands.app import emulator

    speeds: list[float] = []

    def no_child(*, speed: float, **_others: object) -> None:
        speeds.append(speed)
        raise processes.EmulatorFailed("not today")

    monkeypatch.setattr(emulator, "EmulatorChild", no_child)
    monkeypatch.setattr(emulator, "need_terminal", lambda: None)
    environ = {"BT_TUI_DEMO_SPEED": "25"}  # of demo.speed
    assert cli("demo", environ=environ).code == 1
    assert cli("demo --speed 3", environ=environ).code == 1
    assert speeds == [25.0, 3.0]
