"""What only a process of its own can show: imports, pipes, signals."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.fake_baseten import FakeBaseten, job, line

LIMIT_S = 60
ROOT = Path(__file__).parents[2]
HEAVY = {"textual", "rich.console", "plotext", "questionary", "starlette", "uvicorn", "psutil"}
TRANSPORT = {"httpx", "pydantic"}


Start = Callable[..., subprocess.Popen[str]]


def modules_loaded_by(*lines: str, environ: dict[str, str]) -> set[str]:
    """Modules in memory after these command lines have run."""
    program = (
        "import sys\n"
        "from tui.cli import main\n"
        f"assert not any(main(line.split()) for line in {lines!r})\n"
        "sys.stderr.write('\\nLOADED ' + ' '.join(sys.modules))\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=environ, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    return set(done.stderr.rpartition("LOADED ")[2].split())


def test_headless_commands_load_no_screen(baseten: FakeBaseten, clean_environ: dict[str, str]) -> None:
    baseten.logs["job1"] = [line("a line")]
    lines = ("projects", "jobs -o json", "job job1", "logs job1")
    loaded = modules_loaded_by(*lines, environ=clean_environ | baseten.environ())
    assert loaded & HEAVY == set()
    assert "httpx" in loaded


def test_help_loads_no_transport_and_no_other_command(clean_environ: dict[str, str]) -> None:
    assert modules_loaded_by("--help", environ=clean_environ) & (HEAVY | TRANSPORT) == set()
    loaded = modules_loaded_by("jobs --help", environ=clean_environ)
    assert {name for name in loaded if name.startswith("tui.commands.jobs.")} == {"tui.commands.jobs.listing"}


def test_home_starts_without_the_readers_of_logs_and_recordings() -> None:
    command = [sys.executable, "-c", "import sys, tui.app; print(*sys.modules)"]
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    late = {"tui.readers.run", "tui.analysis.progress.phases", "api_client.recordings.reading"}
    assert "tui.screens.home.screen" in loaded
    assert late.intersection(loaded) == set()


def test_following_ends_when_its_reader_leaves_though_no_line_comes_any_more(
    cli_process: Start, baseten: FakeBaseten
) -> None:
    baseten.jobs = [job("job1", "RUNNING")]
    baseten.logs["job1"] = [line("the only one")]
    with cli_process("logs", "job1", "--follow") as process:
        assert process.stdout.readline().endswith("the only one\n")
        process.stdout.close()
        process.wait(LIMIT_S)
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_a_terminal_that_knows_ascii_only_gets_escapes_instead_of_a_crash(
    cli_process: Start, baseten: FakeBaseten
) -> None:
    baseten.logs["job1"] = [line("grüße 你好")]
    environ = baseten.environ() | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    with cli_process("logs", "job1", environ=environ) as process:
        out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "")
    assert "gr\\xfc\\xdfe" in out


@pytest.mark.parametrize(("closed", "printed"), [("2>&-", "a line\n"), ("<&- >&- 2>&-", "")])
def test_streams_that_were_closed_lead_nowhere(
    baseten: FakeBaseten, clean_environ: dict[str, str], closed: str, printed: str
) -> None:
    baseten.logs["job1"] = [line("a line")]
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m tui logs job1 -o raw {closed}"],
        cwd=ROOT,
        env=clean_environ | baseten.environ(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")
