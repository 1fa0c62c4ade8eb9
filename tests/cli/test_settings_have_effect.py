"""No setting is without a test that changes it and sees what it does."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from conftest import RunCli

from tui.settings.loading import setting_names

TESTS = Path(__file__).parents[1]
EFFECTS = "app/test_configuration_effects.py"
ALERTS = "app/test_alerts.py"
COMMANDS = "cli/test_config_command.py"
LOG_BEGINS = (EFFECTS, "test_how_the_log_begins")
RATES = (EFFECTS, "test_the_rates_are_those_of_the_requests")
CHOSEN = (ALERTS, "test_what_is_told_and_how_can_be_chosen")
TITLE = (ALERTS, "test_nothing_is_told_before_the_log_was_read_and_the_title_can_be_left_alone")
SNOOZED = (ALERTS, "test_what_was_there_is_no_news_and_a_snooze_silences_it_until_it_is_woken")
SENT = (ALERTS, "test_program_and_webhook_get_json_without_a_key_and_the_webhook_is_tried_again")
THRESHOLDS = ("unit/analysis/test_every_threshold.py", "test_no_threshold_is_left_out")
SHOWN_BY = {
    "remote": (COMMANDS, "test_the_remote_of_the_file_is_used_unless_flag_or_environment_name_another"),
    "readonly": (EFFECTS, "test_theme_and_readonly"),
    "theme.name": (EFFECTS, "test_theme_and_readonly"),
    "theme.no_color": (EFFECTS, "test_theme_and_readonly"),
    "refresh.fleet_s": RATES,
    "refresh.status_s": RATES,
    "refresh.metrics_s": RATES,
    "refresh.checkpoints_s": RATES,
    "notifications.toast": CHOSEN,
    "notifications.bell": CHOSEN,
    "notifications.title": TITLE,
    "notifications.osc": CHOSEN,
    "notifications.only_when_unfocused": CHOSEN,
    "notifications.min_severity": CHOSEN,
    "notifications.job_end": CHOSEN,
    "notifications.snooze_minutes": SNOOZED,
    "notifications.command": SENT,
    "notifications.webhook": SENT,
    "logs.time": LOG_BEGINS,
    "logs.wrap": LOG_BEGINS,
    "logs.min_level": LOG_BEGINS,
    "logs.max_lines_in_memory": LOG_BEGINS,
    "logs.collapse_progress": LOG_BEGINS,
    "logs.fold_tracebacks": LOG_BEGINS,
    "keys": (EFFECTS, "test_keys_move_in_footer_help_sentences_and_under_the_fingers"),
    "prices": (COMMANDS, "test_the_users_own_price_comes_before_the_listed_one"),
    "patterns": (COMMANDS, "test_thresholds_and_patterns_count_without_a_screen_too"),
    "demo.speed": (
        "cli/test_settings_have_effect.py",
        "test_the_demo_begins_at_the_speed_of_the_settings_and_a_flag_goes_before_it",
    ),
}
"""The test that changes each setting; those of ``health`` are all in one file, which counts them itself."""


@cache
def sources_of(file: str) -> dict[str, str]:
    """The source of every test of a file, its parameters included, by name."""
    source = (TESTS / file).read_text(encoding="utf-8")
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.name: "\n".join(
            ast.get_source_segment(source, part) or "" for part in (*node.decorator_list, node)
        )
        for node in ast.parse(source).body
        if isinstance(node, functions) and node.name.startswith("test_")
    }


def test_no_setting_is_left_out() -> None:
    names = {name for name, _ in setting_names()}
    assert {name for name in names if not name.startswith("health.")} == set(SHOWN_BY)
    assert THRESHOLDS[1] in sources_of(THRESHOLDS[0])


@pytest.mark.parametrize("setting", SHOWN_BY)
def test_the_test_of_a_setting_sets_it(setting: str) -> None:
    file, test = SHOWN_BY[setting]
    assert setting.rpartition(".")[2] in sources_of(file)[test]


def test_the_demo_begins_at_the_speed_of_the_settings_and_a_flag_goes_before_it(
    cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from api_client.emulator import processes
    from tui.commands.app import demo

    speeds: list[float] = []

    class NoChild:
        def __init__(self, *, speed: float, **_others: object) -> None:
            speeds.append(speed)

        def launch(self) -> None:
            raise processes.EmulatorFailed("not today")

        def shut_down(self) -> None:
            pass

    monkeypatch.setattr(demo, "EmulatorChild", NoChild)
    monkeypatch.setattr(demo, "need_terminal", lambda: None)
    environ = {"BT_TUI_DEMO_SPEED": "25"}  # of demo.speed
    assert cli("demo", environ=environ).code == 1
    assert cli("demo", "--speed", "3", environ=environ).code == 1
    assert speeds == [25.0, 3.0]
