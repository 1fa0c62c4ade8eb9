"""No setting is without a test that changes it and sees what it does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.cli import RunCli
from tui.settings.loading import setting_names

TESTS = Path(__file__).parents[1]
THRESHOLDS = "unit/analysis/test_every_threshold.py"
CHANGED_IN = {
    "app/test_configuration_effects.py": "theme.name theme.no_color keys refresh.fleet_s"
    " refresh.status_s refresh.metrics_s refresh.checkpoints_s logs.time logs.wrap logs.min_level"
    " logs.max_lines_in_memory logs.collapse_progress logs.fold_tracebacks",
    "app/test_readonly_keys.py": "readonly",
    "app/test_alerts.py": "notifications.toast notifications.bell notifications.title notifications.osc"
    " notifications.only_when_unfocused notifications.min_severity notifications.job_end"
    " notifications.snooze_minutes notifications.command notifications.webhook",
    "cli/test_config_command.py": "remote prices patterns",
    "cli/test_settings_have_effect.py": "demo.speed",
}
"""The file whose tests change these settings; thresholds are all in one, which counts them itself."""


def test_no_setting_is_left_out() -> None:
    names = {name for name, _ in setting_names() if not name.startswith("health.")}
    assert names == set(" ".join(CHANGED_IN.values()).split())
    assert "def test_no_threshold_is_left_out" in (TESTS / THRESHOLDS).read_text(encoding="utf-8")


@pytest.mark.parametrize("file", CHANGED_IN)
def test_each_is_changed_where_it_says(file: str) -> None:
    tests = (TESTS / file).read_text(encoding="utf-8")
    keys = [name.rpartition(".")[2] for name in CHANGED_IN[file].split()]
    assert [key for key in keys if not re.search(rf"\b{key}\b", tests)] == []


def test_the_demo_has_the_speed_of_the_settings_or_flag(cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    from api_client.emulator import processes
    from tui.commands.app import demo

    speeds: list[float] = []

    def no_child(*, speed: float, **_others: object) -> None:
        speeds.append(speed)
        raise processes.EmulatorFailed("not today")

    monkeypatch.setattr(demo, "EmulatorChild", no_child)
    monkeypatch.setattr(demo, "need_terminal", lambda: None)
    environ = {"BT_TUI_DEMO_SPEED": "25"}  # of demo.speed
    assert cli("demo", environ=environ).code == 1
    assert cli("demo --speed 3", environ=environ).code == 1
    assert speeds == [25.0, 3.0]
