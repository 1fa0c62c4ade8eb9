"""``bt-tui config``, and what the settings do to the other commands."""

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, line
from support.fake_runs import finished_run, live_run
from support.markers import marked
from tui.settings.loading import check_file, setting_names


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "my config" / "config.toml"


@pytest.fixture
def with_file(file: Path, baseten: Any) -> Callable[..., dict[str, str]]:
    def environ(text: str | None = None, **variables: str) -> dict[str, str]:
        if text is not None:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        return {"BT_TUI_CONFIG": str(file), **baseten.environ(), **variables}

    return environ


@pytest.mark.proves("docs/commands.md", "`remotes`")
def test_show_tells_each_value_and_its_origin(cli: RunCli, file: Path, with_file: Any) -> None:
    environ = with_file(
        '[theme]\nname = "nord"\n[prices]\n"H100:8" = 0.5\n[keys]\njob.stop_job = "f9"\n',
        BT_TUI_LOGS_WRAP="1",
    )
    result = cli("--remote acme config show -o json", environ=environ)
    told = {row["setting"]: (row["value"], row["origin"]) for row in result.json}
    assert told["theme.name"] == ("nord", f"{file}:2")
    assert told['prices."H100:8"'] == (0.5, f"{file}:4")
    assert told['keys."job.stop_job"'] == ("f9", f"{file}:6")
    assert told["logs.wrap"] == (True, "environment BT_TUI_LOGS_WRAP")
    assert told["remote"] == ("acme", "flag --remote")
    assert told["refresh.fleet_s"] == (5.0, "default")
    help_document = {row["setting"]: row["description"] for row in result.json}
    assert help_document["refresh.fleet_s"] == "Projects and jobs on Home."
    table = cli("config show --changed", environ=environ).out
    assert "nord" in table
    assert "fleet_s" not in table


def test_show_keeps_the_secret_part_of_a_webhook(cli: RunCli, with_file: Any) -> None:
    environ = with_file('[notifications]\nwebhook = "https://user:pw@hooks.example.com/T0/hush"\n')
    for options in ("-o json", "-o table", "--changed"):
        out = cli(f"config show {options}", environ=environ).out
        assert [words in out for words in ("hooks.example.com", "hush", "pw")] == [True, False, False]


@pytest.mark.proves("docs/configuration.md", "Configuration")
def test_validate_names_lines_and_tells_by_exit_code(cli: RunCli, file: Path, with_file: Any) -> None:
    environ = with_file("readonly = true\n")
    assert cli("config path", environ=environ).out == f"{file}\n"
    assert cli("config validate", environ=environ).out == ""
    other = file.with_name("other.toml")
    other.write_text("readonly = true\nthem = 3\n")
    bad = cli("config", "validate", str(other), environ=environ, code=2)
    assert bad.out == ""
    assert f"{other}:2: them: no such setting; did you mean theme?" in bad.err
    used = cli("jobs", environ=with_file("\n\nreadonli = true\n"), code=2)
    assert used.out == ""
    assert f"{file}:3: readonli: no such setting; did you mean readonly?" in used.err


def test_validate_reports_settings_of_earlier_versions_as_no_error(cli: RunCli, tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    file.write_text("[health]\nloss_readings = 3\n")
    result = cli("config", "validate", str(file))
    assert result.err == f"bt-tui: {file}:2: health.loss_readings: no longer exists; it has no effect\n"


@pytest.mark.proves("docs/configuration.md", "Configuration")
def test_edit_makes_a_private_file(
    cli: RunCli, file: Path, with_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has comments, and what was written is checked; without a terminal there is no editor."""
    redirected = cli("config edit", environ=with_file(EDITOR="true"), code=2)
    assert "an editor needs a terminal" in redirected.err and str(file) in redirected.err
    monkeypatch.setattr("tui.commands.account.config.need_terminal", lambda *_about: None)
    editor = tmp_path / "an editor.py"
    editor.write_text(
        "import sys, pathlib\npath = pathlib.Path(sys.argv[-1])\n"
        "path.write_text(path.read_text() + '\\n[demo]\\nspeed = 0\\n')\n"
        "import os\nassert 'LANG' in os.environ and not os.environ.get('BASETEN_API_KEY')\n"
    )
    environ = with_file(EDITOR="false", VISUAL=f"'{sys.executable}' '{editor}'")
    environ |= {"BASETEN_API_KEY": "s3cret", "LANG": "C"}
    result = cli("config edit", environ=environ, code=2)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "# fleet_s = 5" in file.read_text()
    assert "invalid TOML" in result.err or "demo.speed" in result.err
    cli("config edit", environ=with_file("", VISUAL="true"))
    cli("config edit", environ=with_file("", VISUAL="/no/such/editor"), code=2)


@pytest.mark.setting("remote")
@pytest.mark.proves("README.md", "On your own workspace")
def test_the_remote_of_the_file_comes_after_variables_and_before_the_only_section(
    cli: RunCli, with_file: Any, file: Path, baseten: Any, tmp_path: Path
) -> None:
    def selected(**variables: str) -> list[str]:
        environ = {"BT_TUI_CONFIG": str(file), "BASETEN_CONFIG_DIR": str(tmp_path)} | variables
        told = cli("remotes -o json", environ=environ).json
        return [one["name"] for one in told if one["selected"]]

    with_file('remote = "profiled"\n')
    (tmp_path / "trussrc").write_text(f"[only]\nremote_url = {baseten.url}\napi_key = {baseten.key}\n")
    profile = {"remote_url": baseten.url, "auth_type": "api_key", "api_key": baseten.key}
    profiles = {"profiled": profile, "another": profile}
    (tmp_path / "auth.json").write_text(json.dumps({"version": 1, "profiles": profiles}))
    pair = {"BASETEN_TRUSS_AUTH_REMOTE_URL": baseten.url, "BASETEN_TRUSS_AUTH_API_KEY": baseten.key}
    assert selected() == ["profiled"]
    assert selected(BASETEN_PROFILE="another") == ["another"]
    assert selected(BASETEN_API_KEY=baseten.key, BASETEN_PROFILE="another") == ["<environment>"]
    assert selected(**pair) == ["<environment>"]
    assert selected(**pair, BT_TUI_REMOTE="only") == ["only"]
    file.write_text("")
    assert selected() == ["only"]


@pytest.mark.setting("patterns")
@pytest.mark.proves("docs/configuration.md", "Patterns")
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_thresholds_and_patterns_count_for_commands(cli: RunCli, with_file: Any, baseten: Any) -> None:
    live_run(baseten, "hangs", silent_s=1800)
    cli("health hangs", code=11)
    cli("health hangs", environ=with_file('[health]\noff = ["stalled"]\n'))
    pattern = "[[patterns]]\nname = 'mine'\nregex = 'tick (?P<step>[0-9]+) of (?P<total>[0-9]+)'\n"
    baseten.logs["hangs"] = [line("tick 41 of 50", at_ms=int(time.time() * 1000))]
    assert cli("progress hangs -o json").json["step"] is None
    told = cli("progress hangs -o json", environ=with_file(pattern)).json
    assert (told["step"], told["total_steps"]) == (41, 50)


@pytest.mark.setting("prices")
@pytest.mark.proves("docs/configuration.md", "Prices")
@pytest.mark.proves("docs/health.md", "Cost")
def test_the_users_own_price_comes_before_the_listed_one(cli: RunCli, with_file: Any, baseten: Any) -> None:
    for name in ("one", "two"):
        finished_run(baseten, name, hours=1, losses=[3.0, 2.0])
    machine = baseten.jobs[-1]["instance_type"]
    prices = {"instance_types": [{"instance_type": machine, "price": 0.5}]}
    baseten.on("GET", "/v1/instance_type_prices", Answer(prices))
    costs = []
    for text in ("", f'[prices]\n"{machine["id"]}" = 2.0\n', f'[prices]\n"{machine["name"]}" = 4\n'):
        told = cli("compare one two -o json", environ=with_file(text)).json
        costs.append(told["jobs"][0]["cost_usd"])
    assert [round(cost / costs[0], 6) for cost in costs] == [1.0, 4.0, 8.0]


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
    cli("demo", environ=environ, code=1)
    cli("demo --speed 3", environ=environ, code=1)
    assert speeds == [25.0, 3.0]
