"""``--remote local``: an emulator that is started when it is needed and goes on until it is stopped."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from api_client.emulator.processes import ensure_running
from support.cli import RunCli
from support.fake_baseten import FakeBaseten


@pytest.fixture
def home(cli: RunCli, clean_environ: dict[str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    environ = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    yield environ
    assert cli("emulator stop", environ=environ).code == 0


def test_it_starts_when_needed_goes_on_and_is_stopped(cli: RunCli, home: dict[str, str]) -> None:
    assert cli("emulator status", environ=home).code == 7
    first = cli("projects --remote local -o json", environ=home)
    assert (first.code, first.json) == (0, [])
    assert "starting the emulator" in first.err
    [running] = cli("emulator status -o json", environ=home).json
    assert running["url"] in cli("emulator status", environ=home).out
    again = cli("projects --remote local", environ=home)
    assert again.code == 0
    assert "starting" not in again.err
    assert cli("emulator status -o json", environ=home).json == [running]
    assert "its data is kept" in cli("emulator stop", environ=home).err
    assert cli("emulator status -o json", environ=home).json == []


def test_it_is_stopped_while_the_dashboard_that_started_it_lives(tmp_path: Path) -> None:
    data = tmp_path / "emulator"
    ensure_running(data)
    stop = "import pathlib, sys; from api_client.emulator.processes import stop_running as stop; "
    stopped = subprocess.run(
        [sys.executable, "-c", stop + "sys.exit(not stop(pathlib.Path(sys.argv[1])))", str(data)], check=False
    )
    assert stopped.returncode == 0


def test_a_section_of_that_name_goes_first(cli: RunCli, baseten: FakeBaseten, trussrc: Path) -> None:
    trussrc.write_text(f"[local]\nremote_url={baseten.url}\napi_key={baseten.key}\n")
    assert cli("projects --remote local", environ={}).code == 0
    assert baseten.asked
