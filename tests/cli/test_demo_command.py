"""``bt-tui demo`` in a terminal: however it ends, its emulator ends with it."""

from pathlib import Path

import psutil
import pytest

from support.terminal import AtTerminal

LIMIT_S = 60.0


def in_terminal(*arguments: str, environ: dict[str, str]) -> AtTerminal:
    return AtTerminal(*arguments, environ=environ, lines=30, columns=100)


def descendants(program: AtTerminal) -> list[psutil.Process]:
    return psutil.Process(program.process.pid).children(recursive=True)


@pytest.fixture
def terminal_environ(clean_environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return clean_environ | {"TERM": "xterm-256color", "TMPDIR": str(tmp_path)}


def assert_all_gone(processes: list[psutil.Process], folder: Path) -> None:
    assert processes, "there was no emulator to begin with"
    _gone, alive = psutil.wait_procs(processes, timeout=LIMIT_S)
    assert alive == []
    assert list(folder.glob("bt-tui-demo-*")) == []


def test_quitting_leaves_no_process_and_no_data(terminal_environ: dict[str, str], tmp_path: Path) -> None:
    with in_terminal("demo", "--world", "empty", environ=terminal_environ) as program:
        program.sees("demo")
        started = descendants(program)
        program.types(b"q")
        code = program.end()
    assert code == 0
    assert_all_gone(started, tmp_path)


def test_being_killed_leaves_no_process_and_no_data(terminal_environ: dict[str, str], tmp_path: Path) -> None:
    with in_terminal("demo", "--world", "empty", environ=terminal_environ) as program:
        program.sees("demo")
        started = descendants(program)
        program.process.kill()
        program.end()
    assert_all_gone(started, tmp_path)


def test_without_any_remote_the_welcome_screen_opens(terminal_environ: dict[str, str]) -> None:
    with in_terminal(environ=terminal_environ) as program:
        program.sees("emulator")
        program.types(b"q")
        assert program.end() == 0
