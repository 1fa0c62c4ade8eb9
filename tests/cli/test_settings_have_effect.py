"""No setting is without a test that shows what it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.configuration.environment import setting_names

TESTS = Path(__file__).parents[1]
EFFECTS = "app/test_configuration_effects.py"
SHOWN_IN = {
    "remote": "cli/test_config_command.py",
    "readonly": EFFECTS,
    "theme": EFFECTS,
    "refresh": EFFECTS,
    "notifications": "app/test_alerts.py",
    "logs": EFFECTS,
    "keys": EFFECTS,
    "health": "unit/insight/test_insight_health_rules.py",
    "prices": EFFECTS,
    "patterns": EFFECTS,
    "demo": "cli/test_settings_have_effect.py",
}
"""Where the effect of each section's settings is shown."""


@pytest.mark.parametrize("setting", [name for name, _ in setting_names() if not name.startswith("health.")])
def test_the_effect_of_every_setting_is_shown(setting: str) -> None:
    section, _, name = setting.partition(".")
    assert (name or section) in (TESTS / SHOWN_IN[section]).read_text(encoding="utf-8")


def test_the_demo_begins_at_the_speed_of_the_settings_and_a_flag_goes_before_it(cli, monkeypatch) -> None:
    from api_client.emulator import child
    from tui.commands import demo

    speeds: list[float] = []

    class NoChild:
        def __init__(self, *, speed: float, **_others: object) -> None:
            speeds.append(speed)

        def launch(self) -> None:
            raise child.EmulatorFailed("not today")

        def shut_down(self) -> None:
            pass

    monkeypatch.setattr(child, "EmulatorChild", NoChild)
    monkeypatch.setattr(demo, "need_terminal", lambda: None)
    environ = {"BT_TUI_DEMO_SPEED": "25"}
    assert cli("demo", environ=environ).code == 1
    assert cli("demo", "--speed", "3", environ=environ).code == 1
    assert speeds == [25.0, 3.0]
