"""Flags over environment over file over defaults, what is said of settings that are wrong, and a new file."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from textual.theme import BUILTIN_THEMES

from tui.app.theme import THEMES
from tui.settings.loading import ConfigurationBroken, check_file, load, load_or_defaults
from tui.settings.model import Configuration, ThemeSettings
from tui.settings.reference import entries, template
from tui.widgets.log_view.gutter import TIME_MODES


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def environ(file: Path, **variables: str) -> dict[str, str]:
    return {"BT_TUI_CONFIG": str(file), **variables}


@pytest.mark.parametrize(
    ("in_file", "in_environment", "flag", "expected", "origin"),
    [
        (None, None, None, None, "default"),
        ("file", None, None, "file", "{file}:1"),
        ("file", "variable", None, "variable", "environment BT_TUI_REMOTE"),
        ("file", "variable", "flag", "flag", "flag --remote"),
        ("file", "", None, "file", "{file}:1"),
    ],
)
def test_each_source_comes_before_the_next(
    file: Path, in_file: str | None, in_environment: str | None, flag: str | None, expected: Any, origin: str
) -> None:
    file.write_text(f'remote = "{in_file}"\n' if in_file else "")
    variables = {} if in_environment is None else {"BT_TUI_REMOTE": in_environment}
    loaded = load(environ(file, **variables), {"remote": flag})
    assert loaded.configuration.remote == expected
    assert loaded.origin("remote") == origin.format(file=file)


def test_variables_of_each_kind_leave_the_rest_to_the_file(file: Path) -> None:
    file.write_text("[refresh]\nfleet_s = 7\nstatus_s = 8\n")
    variables = {
        "READONLY": "yes",
        "REFRESH_FLEET_S": "9",
        "LOGS_WRAP": "1",
        "LOGS_MIN_LEVEL": "ERROR",
        "NOTIFICATIONS_COMMAND": '["notify-send", "x y"]',
        "PRICES": '{ "H100:8" = 0.65 }',
        "HEALTH_STALL_AFTER_S": "90",
        "HEALTH_OFF": '["straggler"]',
        "KEYS": '{ job.stop_job = "ctrl+k" }',
    }
    named = {f"BT_TUI_{name}": value for name, value in variables.items()}
    loaded = load(environ(file, NO_COLOR="1", **named))
    settings = loaded.configuration
    assert (settings.refresh.fleet_s, settings.refresh.status_s) == (9.0, 8.0)
    assert loaded.origin("refresh.status_s") == f"{file}:3"
    assert settings.readonly and settings.logs.wrap and settings.theme.no_color
    assert settings.logs.min_level == "ERROR"
    assert settings.notifications.command == ["notify-send", "x y"]
    assert (settings.prices, settings.keys) == ({"H100:8": 0.65}, {"job.stop_job": "ctrl+k"})
    assert (settings.health.stall_after_s, settings.health.off) == (90.0, {"straggler"})


PATTERN = "[[patterns]]\nname = 'a'\nregex = '(?P<loss>x)'\n"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("# hello\n\nredonly = true\n", 3, "did you mean readonly?"),
        ("[theme]\nname = 'bt-drak'\n", 2, "did you mean bt-dark?"),
        ("[refresh]\nfleet_s = 'often'\n", 2, "refresh.fleet_s: must be a number"),
        ("[refresh]\n\n\nfleet_s = 0\n", 4, "greater than or equal to 1"),
        ("readonly = 1\n", 1, "readonly: must be true or false"),
        ("[logs]\nwrap = true\nfleet_s = 3\n", 3, "it belongs in [refresh]"),
        ("[health]\nstall_after_s = 0\n", 2, "must be greater than 0"),
        ("[health]\noff = [\n  'stall',\n]\n", 2, "unknown finding stall"),
        ("[health]\nrestarts = 1.5\n", 2, "whole number"),
        ("[prices]\nx = nan\n", 2, "finite"),
        (f"{PATTERN}[[patterns]]\nname = 'b'\nregex = '('\n", 6, "patterns.1"),
        ("[[patterns]]\nname = 'a'\n", 1, "regex: is missing"),
        ("[keys]\njob.stop_jobs = 'x'\n", 2, "did you mean job.stop_job?"),
        ("\n[keys]\n'job.stop_job' = 'nokey'\n", 3, "no such key: nokey"),
        ("[keys]\njob.stop_job = 'j'\n", 2, "reserved for navigation"),
        ("[keys]\nhome.sort = 'f6'\nhome.filter = 'f6'\n", 2, "is also used for"),
        ("[notifications]\nwebhook = 'http://example.com/x'\n", 2, "https"),
        ('[notifications]\nwebhook = "https://x/\\u001b"\n', 2, "https"),
        ("[notifications]\nosc = 9\n", 2, "'9'"),
        ("readonly = \n", 1, "invalid TOML"),
        ("[notifications]\ntext = '''\nno end\n", 3, "invalid TOML"),
    ],
)
def test_what_is_wrong_is_named_by_line_with_what_to_do(file: Path, text: str, line: int, words: str) -> None:
    file.write_text(text)
    problem = str(check_file(file)[0])
    assert problem.startswith(f"{file}:{line}: ") and words in problem
    with pytest.raises(ConfigurationBroken):
        load(environ(file))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("readonly = 3\nremote = 4\n[theme]\nname = 5\nnoname = 6\n", [1, 2, 4, 5]),
        ("[notifications]\ncommand = [\n 'sh', # [x]\n '-c',\n '''\n[x]\ny = 1\n''',\n]\n\nbell = 7\n", [11]),
    ],
)
def test_every_problem_is_told_in_the_order_of_the_file(file: Path, text: str, lines: list[int]) -> None:
    file.write_text(text)
    assert [problem.where for problem in check_file(file)] == [f"{file}:{line}" for line in lines]


def test_what_is_no_configuration_at_all_is_a_problem_and_no_crash(file: Path) -> None:
    for content in (b"\xff\xfe", b"x" * 1_500_000, b"[" * 100_000):
        file.write_bytes(content)
        assert check_file(file)
    assert "cannot be read" in str(check_file(file.parent)[0])
    with pytest.raises(ConfigurationBroken, match="no such file"):
        load(environ(file.with_name("none.toml")))
    file.write_text("[refresh]\nfleet_s = 4\n")
    with pytest.raises(ConfigurationBroken, match=r"environment BT_TUI_REFRESH_FLEET_S: refresh\.fleet_s"):
        load(environ(file, BT_TUI_REFRESH_FLEET_S="soon"))


def test_the_dashboard_gets_defaults_and_flags_where_the_file_is_broken(file: Path) -> None:
    file.write_text("[theme]\nname = 'nord'\nnmae = 1\n")
    loaded = load_or_defaults(environ(file), {"readonly": True})
    assert loaded.configuration.theme.name == "bt-dark"
    assert loaded.configuration.readonly
    assert [problem.where for problem in loaded.problems] == [f"{file}:3"]


@pytest.mark.parametrize(
    ("content", "variable", "expected"),
    [
        ("readonly = true\nrefresh = {\n", "", "{file}:1"),
        ("remote = 7\n'readonly'  =  true\n", "", "{file}:2"),
        ("readonly = 'yes'\n", "", "{file}:1"),
        ("readonly = false\nremote = 7\n", "", None),
        ("remote = 7\n", "yes", "environment BT_TUI_READONLY"),
        ("remote = 7\nreadonly = true\n", "no", None),
        ("remote = 7\n", "", None),
    ],
)
def test_a_mistake_elsewhere_does_not_lift_readonly(
    file: Path, content: str, variable: str, expected: str | None
) -> None:
    file.write_text(content)
    loaded = load_or_defaults(environ(file, BT_TUI_READONLY=variable))
    assert loaded.problems
    assert loaded.configuration.readonly == (expected is not None)
    assert loaded.origin("readonly") == (expected or "default").format(file=file)


def test_a_new_file_is_valid_and_says_what_each_setting_does_and_its_default(file: Path) -> None:
    assert [entry.name for entry in entries() if not entry.text] == []
    file.write_text(template())
    assert check_file(file) == []
    assert all(not values for values in tomllib.loads(template()).values())
    lines = []
    for line in template().splitlines():
        name, _, value = line.removeprefix("# ").partition(" = ")
        is_setting = line.startswith("# ") and value and name.isidentifier() and value != '"…"'
        lines.append(line.removeprefix("# ") if is_setting or line == "# [[patterns]]" else line)
    file.write_text("\n".join(lines))
    assert check_file(file) == []
    shown = load(environ(file)).configuration
    assert shown.model_copy(update={"patterns": []}) == Configuration()
    assert len(shown.patterns) == 1


def test_names_that_are_spelt_out_are_those_of_textual_and_of_the_screens() -> None:
    names = ThemeSettings.model_json_schema()["properties"]["name"]["enum"]
    assert names == [theme.name for theme in THEMES] + list(BUILTIN_THEMES)
    times = Configuration.model_json_schema()["$defs"]["LogSettings"]["properties"]["time"]["enum"]
    assert tuple(times) == TIME_MODES
