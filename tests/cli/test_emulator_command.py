"""``bt-tui emulator``, ``--remote local``, which starts one that goes on, and the demo."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from api_client.emulator.processes import ensure_running
from support.cli import RunCli, Start
from support.terminal import AtTerminal

LIMIT_S = 60


def read_exports(process: subprocess.Popen[str], shell_environ: dict[str, str]) -> dict[str, str]:
    """What a shell knows after the printed lines were pasted into it."""
    lines = "".join(process.stdout.readline() for _line in range(3))
    names = re.findall(r"^export (\w+)=", lines, re.MULTILINE)
    script = lines + "".join(f'printf "%s\\n" "${name}"\n' for name in names)
    printed = subprocess.check_output(
        ["/bin/sh", "-c", script], env=shell_environ, text=True, timeout=LIMIT_S
    )
    return dict(zip(names, printed.splitlines(), strict=True))


@pytest.mark.proves("README.md", "The emulator")
@pytest.mark.proves("docs/commands.md", "`emulator`")
def test_serve_use_and_end(cli: RunCli, cli_process: Start, clean_environ: Any, tmp_path: Path) -> None:
    arguments = ("emulator", "--world", "empty", "--port", "0", "--data", str(tmp_path / "a folder"))
    with cli_process(*arguments, environ={}) as process:
        exports = read_exports(process, clean_environ)
        listed = cli("projects -o json", environ=exports)
        refused = cli(*arguments, environ={}, code=1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    assert set(exports) == {"BASETEN_API_KEY", "BASETEN_REMOTE_URL", "BASETEN_MANAGEMENT_API_URL_OVERRIDE"}
    assert (listed.json, process.returncode) == ([], 0)
    assert "another emulator is already using" in refused.err
    assert exports["BASETEN_API_KEY"] not in out + err
    assert "unsandboxed" in err


@pytest.fixture
def home(cli: RunCli, clean_environ: dict[str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    environ = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    yield environ
    cli("emulator stop", environ=environ)


@pytest.mark.proves("README.md", "The emulator")
@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_it_starts_when_needed_goes_on_and_is_stopped(cli: RunCli, home: dict[str, str]) -> None:
    cli("emulator status", environ=home, code=7)
    first = cli("projects --remote local -o json", environ=home)
    assert first.json == []
    assert "starting the emulator" in first.err
    [running] = cli("emulator status -o json", environ=home).json
    assert running["url"] in cli("emulator status", environ=home).out
    assert "starting" not in cli("projects --remote local", environ=home).err
    assert cli("emulator status -o json", environ=home).json == [running]
    assert "its data is kept" in cli("emulator stop", environ=home).err
    assert cli("emulator status -o json", environ=home, code=7).json == []


def test_it_is_stopped_while_the_dashboard_that_started_it_lives(tmp_path: Path) -> None:
    data = tmp_path / "emulator"
    ensure_running(data)
    stop = "import pathlib, sys; from api_client.emulator.processes import stop_running as stop; "
    stopped = subprocess.run(
        [sys.executable, "-c", stop + "sys.exit(not stop(pathlib.Path(sys.argv[1])))", str(data)], check=False
    )
    assert stopped.returncode == 0


SIZE = {"lines": 30, "columns": 100}


@pytest.fixture
def terminal_environ(clean_environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return clean_environ | {"TERM": "xterm-256color", "TMPDIR": str(tmp_path)}


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.proves("README.md", "Try it")
def test_it_leaves_no_process_and_no_data(terminal_environ: Any, tmp_path: Path, is_killed: bool) -> None:
    with AtTerminal("demo", "--world", "empty", environ=terminal_environ, **SIZE) as program:
        program.sees("demo")
        started = psutil.Process(program.process.pid).children(recursive=True)
        if is_killed:
            program.process.kill()
        else:
            program.types(b"q")
        assert program.end() == (-signal.SIGKILL if is_killed else 0)
    assert started, "there was no emulator to begin with"
    _gone, alive = psutil.wait_procs(started, timeout=LIMIT_S)
    assert (alive, list(tmp_path.glob("bt-tui-demo-*"))) == ([], [])


@pytest.mark.proves("README.md", "On your own workspace")
def test_without_any_remote_the_welcome_screen_opens(terminal_environ: dict[str, str]) -> None:
    with AtTerminal(environ=terminal_environ, **SIZE) as program:
        program.sees("emulator")
        program.types(b"q")
        assert program.end() == 0
