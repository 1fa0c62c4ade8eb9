"""Flags over environment over file over defaults, what is said of settings that are wrong, and a new file."""

import json
import os
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import example, given, strategies as st
from textual.theme import BUILTIN_THEMES

from tui.app.theme import THEMES
from tui.commands.support.options import CommandSettings
from tui.commands.support.remotes import dashboard_settings
from tui.settings.loading import ConfigurationBroken, Settings, check_file, lines_of, load, load_or_defaults
from tui.settings.model import Configuration, ThemeName, TimeMode
from tui.settings.problems import fields_of
from tui.settings.reference import entries, settings_file_template
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
@pytest.mark.proves("docs/configuration.md", "Configuration")
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
    assert [problem.location for problem in check_file(file)] == [f"{file}:{line}" for line in lines]


def test_thresholds_of_earlier_versions_are_ignored_and_reported(file: Path) -> None:
    file.write_text(
        '[health]\nplateau_after_s = 60\nrelease = 0.5\noff = ["plateau", "queued"]\nrestarts = 7\n'
    )
    loaded = load(environ(file))
    health = loaded.configuration.health
    assert (health.release, health.off) == (0.5, {"queued"})
    assert [str(problem) for problem in loaded.ignored] == [
        f"{file}:2: health.plateau_after_s: no longer exists; it has no effect",
        f"{file}:4: health.off=plateau: no longer exists; it has no effect",
    ]
    assert check_file(file) == []


def test_what_is_no_configuration_at_all_is_a_problem_and_no_crash(file: Path) -> None:
    file.write_bytes(b"\xff\xfe")
    assert check_file(file)
    assert "cannot be read: it is a folder" in str(check_file(file.parent)[0])
    with pytest.raises(ConfigurationBroken, match="no such file"):
        load(environ(file.with_name("none.toml")))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[theme]\n" + "a." * 100_000 + "a = 1\n", None, "too many dots"),
        ("[" + "a." * 100_000 + "a]\n", None, "too many dots"),
        ("\nx = {" + "a." * 1_000 + "a = 1}\n", None, "nested too deeply"),
        ("x = {" + "a." * 300 + "a = 1}\n", None, "nested too deeply"),
        ("\n[keys]\n" + "a." * 50 + "a = 'x'\n", 3, "no such action"),
        ("\nx = " + "[" * 20_000, None, "nested too deeply"),
        ("\nx = [\n1,\n" + "9" * 5_000 + "]\n", None, "a number is too large"),
        ("[demo]\n\nspeed = 0x" + "f" * 200_000, None, "a number is too large"),
        ("[demo]\n\nspeed = 0x" + "f" * 2_000, 3, "finite"),
        ("x = " + "9" * 5_000 + '\n"' + '\\"' * 100_000, None, "a number is too large"),
        ("x = [\n" + "1,\n" * 15_000 + "]\nnoname = 1\n", 1, "x: no such setting"),
        ("[[x]]\n" * 10_000, 1, "x: no such setting"),
        ("".join(f"x{number} = 1\n" for number in range(5_000)), 1, "x0: no such setting"),
        ("readonly = 7" + "\n" * 200_000, 1, "must be true or false"),
        ("\n" * 200_000 + "x", 200_001, "invalid TOML"),
    ],
    ids=range(15),
)
def test_any_content_is_read_in_linear_time(file: Path, text: str, line: int | None, words: str) -> None:
    file.write_text(text)
    problem = check_file(file)[0]
    where = str(file) if line is None else f"{file}:{line}"
    assert (problem.location, words in str(problem)) == (where, True)
    assert load_or_defaults(environ(file)).problems


ABSURD = {
    "word": "soon",
    "digits": "9" * 5_000,
    "hex": "0x" + "f" * 5_000,
    "[": "[" * 20_000,
    "dots": f"{{{'a.' * 50_000}a = 1}}",
}


@pytest.mark.parametrize("value", ABSURD)
@pytest.mark.parametrize(
    "name", ["REFRESH_FLEET_S", "KEYS", "PRICES", "HEALTH_OFF", "LOGS_MAX_LINES_IN_MEMORY"]
)
def test_variable_with_an_absurd_value_is_a_problem(file: Path, name: str, value: str) -> None:
    file.write_text("")
    with pytest.raises(ConfigurationBroken, match=f"environment BT_TUI_{name}: "):
        load(environ(file, **{f"BT_TUI_{name}": ABSURD[value]}))


LINES_OF_STRINGS = r"""command = [ # ]
  'a]', "b\"]", QQQd']QQQQQ,
  { x = ["[", '{'] },
]
wrap = true
"""


def test_lines_are_right_below_strings_with_brackets_and_quotes() -> None:
    text = LINES_OF_STRINGS.replace("Q", "'")
    text += LINES_OF_STRINGS.replace("Q", '"').replace("command", "c").replace("wrap", "w")
    tomllib.loads(text)
    assert lines_of(text) == {"command": 1, "wrap": 5, "c": 6, "w": 10}


@pytest.mark.parametrize("unusable", ["pipe", "huge file", "folder"])
def test_unusable_file_is_a_problem_and_keeps_the_dashboard_read_only(file: Path, unusable: str) -> None:
    if unusable == "pipe":
        os.mkfifo(file)
    elif unusable == "folder":
        file.mkdir()
    else:
        file.write_text("x" * 300_000)
    loaded = load_or_defaults(environ(file))
    [problem] = loaded.problems
    assert (problem.location, "cannot be read" in problem.reason) == (str(file), True)
    assert (loaded.configuration.readonly, loaded.origin("readonly")) == (True, f"unreadable {file}")


def test_file_that_cannot_even_be_looked_for_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/" + "x" * 300)
    [problem] = dashboard_settings(CommandSettings()).problems
    assert problem.reason.startswith("cannot be read: ")


VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(sorted('ab."\n'), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(["job", "job.stop_job", "home", "name", "regex", "off", "command", "H100"])
TABLES = st.dictionaries(NAMES, VALUES, max_size=3)


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return str(value) if isinstance(value, float) else json.dumps(value)


@given(st.sampled_from([*fields_of(Configuration), "else"]), VALUES | TABLES | st.lists(TABLES, max_size=2))
@example("health", {"off": [[]]})
def test_setting_of_any_shape_is_valid_or_a_problem(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: Any
) -> None:
    file = tmp_path_factory.getbasetemp() / "config.toml"
    file.write_text(f"\n{name} = {as_toml(value)}\n")
    loaded = load_or_defaults(environ(file))
    assert all(problem.location == f"{file}:2" and problem.reason for problem in loaded.problems)
    variable = {f"BT_TUI_{name.upper()}": as_toml(value)}
    file.write_text("")
    load_or_defaults(environ(file, **variable))


def test_the_dashboard_gets_defaults_and_flags_where_the_file_is_broken(file: Path) -> None:
    file.write_text("[theme]\nname = 'nord'\nnmae = 1\n")
    loaded = load_or_defaults(environ(file), {"readonly": True})
    assert loaded.configuration.theme.name == "bt-dark"
    assert loaded.configuration.readonly
    assert [problem.location for problem in loaded.problems] == [f"{file}:3"]


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
    assert [entry.name for entry in entries() if not entry.description] == []
    file.write_text(settings_file_template())
    assert check_file(file) == []
    assert all(not values for values in tomllib.loads(settings_file_template()).values())
    lines = []
    for line in settings_file_template().splitlines():
        name, _, value = line.removeprefix("# ").partition(" = ")
        is_setting = line.startswith("# ") and value and name.isidentifier() and value != '"…"'
        lines.append(line.removeprefix("# ") if is_setting or line == "# [[patterns]]" else line)
    file.write_text("\n".join(lines))
    assert check_file(file) == []
    shown = load(environ(file)).configuration
    assert replace(shown, patterns=[]) == Settings()
    assert len(shown.patterns) == 1


def test_names_that_are_spelt_out_are_those_of_textual_and_of_the_screens() -> None:
    assert get_args(ThemeName) == (*(theme.name for theme in THEMES), *BUILTIN_THEMES)
    assert get_args(TimeMode) == TIME_MODES
