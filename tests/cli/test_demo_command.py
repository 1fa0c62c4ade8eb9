"""``bt-tui demo`` in a terminal: however it ends, its emulator ends with it."""

import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.terminal import AtTerminal

LIMIT_S = 60.0
SIZE = {"lines": 30, "columns": 100}


@pytest.fixture
def terminal_environ(clean_environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return clean_environ | {"TERM": "xterm-256color", "TMPDIR": str(tmp_path)}


@pytest.mark.parametrize("is_killed", [False, True])
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


def test_without_any_remote_the_welcome_screen_opens(terminal_environ: dict[str, str]) -> None:
    with AtTerminal(environ=terminal_environ, **SIZE) as program:
        program.sees("emulator")
        program.types(b"q")
        assert program.end() == 0
