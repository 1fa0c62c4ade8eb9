"""Run command lines against ``FakeBaseten``."""

import asyncio
import io
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from whole_platform import CONFIG, NOISE, furnished

from api_client.emulator.processes import EmulatorChild
from support.cli import Result, RunCli
from support.fake_baseten import FakeBaseten
from support.faulty import FaultyServer
from support.terminal import AtTerminal
from support.warm_python import ROOT, WarmPython

OURS = ("BASETEN_", "BT_TUI_", "USER_TRUSSRC_PATH", "NO_COLOR")
PASSED_ON = ("PATH", "SYSTEMROOT", "LANG", "VIRTUAL_ENV", "COVERAGE_PROCESS_START")


@pytest.fixture
def baseten() -> Iterator[FakeBaseten]:
    with FakeBaseten() as server:
        yield server


@pytest.fixture
def clean_environ(tmp_path: Path) -> dict[str, str]:
    """An environment that knows no remote, and no home of a developer."""
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return kept | {"HOME": str(tmp_path), "USER_TRUSSRC_PATH": str(tmp_path / "trussrc"), "TZ": "UTC"}


@pytest.fixture
def trussrc(clean_environ: dict[str, str]) -> Path:
    return Path(clean_environ["USER_TRUSSRC_PATH"])


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes between attempts, looks and samples."""

    async def pass_on(_clock: object, _seconds: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr("api_client.clock.SystemClock.sleep", pass_on)


@pytest.fixture
def own_signals() -> Iterator[None]:
    """Restore the handlers that a command keeps when its process is about to end.

    A parent such as ``nohup`` may ignore signals, which commands would then ignore, too.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def pipe_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.fixture
def typed(pipe_in: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make a line what somebody at a terminal answers."""
    for module in ("support.terminal", "jobs.push", "jobs.stop"):
        monkeypatch.setattr(f"tui.commands.{module}.can_ask", lambda: True)
    return lambda answer: pipe_in(f"{answer}\n")


@pytest.fixture
def cli(
    baseten: FakeBaseten,
    clean_environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> RunCli:
    """Run a command line in this process, which has to end with the exit ``code``.

    ``environ`` replaces the variables that lead to ``FakeBaseten``.
    """
    from tui.cli import main

    # ``FakeBaseten`` has the client read a log in one time range, which the emulator allows then.
    monkeypatch.setattr("api_client.emulator.routes.calls.MAX_LOG_WINDOW_MS", sys.maxsize)

    def run(*arguments: str, environ: dict[str, str] | None = None, code: int | None = 0) -> Result:
        wanted = clean_environ | (baseten.environ() if environ is None else environ)
        for name in os.environ:
            if name.startswith(OURS):
                monkeypatch.delenv(name)
        for name, value in wanted.items():
            monkeypatch.setenv(name, value)
        ended_with = main(shlex.split(arguments[0]) if len(arguments) == 1 else arguments)
        captured = capsys.readouterr()
        assert code in (None, ended_with), f"{ended_with}: {captured.err}"
        return Result(ended_with, captured.out, captured.err)

    return run


@pytest.fixture
def cli_process(baseten: FakeBaseten, clean_environ: dict[str, str]) -> Callable[..., subprocess.Popen[str]]:
    """Start a command line in a process of its own, its streams being pipes."""

    def start(*arguments: str, environ: dict[str, str] | None = None) -> subprocess.Popen[str]:
        command, pipe = [sys.executable, "-m", "tui", *arguments], subprocess.PIPE
        wanted = clean_environ | (baseten.environ() if environ is None else environ)
        streams = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe}
        return WarmPython(command, cwd=ROOT, env=wanted, text=True, **streams)

    return start


@pytest.fixture
def at_terminal(baseten: FakeBaseten, tmp_path: Path) -> Callable[..., AtTerminal]:
    """Start a command line at a terminal, in the test's own folder."""
    settings = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "HOME": str(tmp_path)}
    settings["PYTHONIOENCODING"] = "utf-8:strict"  # as in most people's locales

    def start(*arguments: str, **options: bool) -> AtTerminal:
        environ = {**os.environ, **baseten.environ(), **settings}
        return AtTerminal(*arguments, environ=environ, folder=tmp_path, **options)

    return start


@pytest.fixture(scope="session")
def emulator() -> Iterator[EmulatorChild]:
    """An emulator for tests that leave each other's projects and jobs alone."""
    with EmulatorChild(world="empty") as child:
        yield child


@pytest.fixture(scope="module")
def platform(faulty: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with furnished(faulty, tmp_path_factory.mktemp("platform")) as environ:
        yield environ


@pytest.fixture
def code(faulty: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a config to submit, from where the server is found in trouble at first."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "config.py").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    faulty.set_faults(NOISE)


@pytest.fixture
def world(platform: dict[str, str], code: None) -> dict[str, str]:
    """One platform for all tests of a module, which only read it."""
    return platform
