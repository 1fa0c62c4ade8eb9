"""What only a process of its own can show: imports, pipes, signals."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from support.stranger import Answer, FakeBaseten, ReceivedRequest, job, line

LIMIT_S = 60
HEAVY = {"textual", "rich.console", "plotext", "questionary", "starlette", "uvicorn", "psutil"}
TRANSPORT = {"httpx", "pydantic"}


def modules_loaded_by(arguments: list[str], environ: dict[str, str]) -> set[str]:
    """Modules in memory after that command line has run."""
    program = (
        "import sys\n"
        "from tui.cli import main\n"
        f"code = main({arguments!r})\n"
        "sys.stderr.write('\\nLOADED ' + ' '.join(sys.modules))\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    return set(done.stderr.rpartition("LOADED ")[2].split())


@pytest.mark.parametrize(
    "arguments", [["projects"], ["jobs", "-o", "json"], ["job", "job1"], ["logs", "job1"]]
)
def test_headless_commands_load_no_screen(
    stranger: FakeBaseten, clean_environ: dict[str, str], arguments: list[str], pytestconfig: pytest.Config
) -> None:
    stranger.logs["job1"] = [line("a line")]
    environ = clean_environ | stranger.environ() | {"PYTHONPATH": str(pytestconfig.rootpath)}

    loaded = modules_loaded_by(arguments, environ)

    assert loaded & HEAVY == set()
    assert "httpx" in loaded


def test_help_loads_no_transport_either(clean_environ: dict[str, str], pytestconfig: pytest.Config) -> None:
    environ = clean_environ | {"PYTHONPATH": str(pytestconfig.rootpath)}

    assert modules_loaded_by(["--help"], environ) & (HEAVY | TRANSPORT) == set()


def test_a_reader_that_goes_away_is_no_error(
    cli_process: Callable[..., subprocess.Popen[str]], stranger: FakeBaseten
) -> None:
    # More than a pipe holds, so that the command is still writing when its reader leaves.
    stranger.logs["job1"] = [line("x" * 1_000, at_ms=1_740_830_400_000 + number) for number in range(3_000)]

    with cli_process("logs", "job1") as process:
        assert process.stdout.readline().endswith("x\n")
        process.stdout.close()
        process.wait(LIMIT_S)
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_following_ends_when_its_reader_leaves_though_no_line_comes_any_more(
    cli_process: Callable[..., subprocess.Popen[str]], stranger: FakeBaseten
) -> None:
    stranger.jobs = [job("job1", "RUNNING")]
    stranger.logs["job1"] = [line("the only one")]

    with cli_process("logs", "job1", "--follow") as process:
        assert process.stdout.readline().endswith("the only one\n")
        process.stdout.close()
        process.wait(LIMIT_S)
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_ctrl_c_while_following_ends_with_130(
    cli_process: Callable[..., subprocess.Popen[str]], stranger: FakeBaseten
) -> None:
    stranger.jobs = [job("job1", "RUNNING")]
    stranger.logs["job1"] = [line("running")]

    with cli_process("logs", "job1", "--follow", "-o", "ndjson") as process:
        assert json.loads(process.stdout.readline())["message"] == "running"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err


def test_ctrl_c_while_the_server_is_silent(
    cli_process: Callable[..., subprocess.Popen[str]], stranger: FakeBaseten
) -> None:
    arrived = threading.Event()

    def hang(_asked: ReceivedRequest) -> Answer:
        arrived.set()
        return Answer(hangs=True)

    stranger.on("GET", "/v1/training_projects", hang)

    with cli_process("projects") as process:
        assert arrived.wait(LIMIT_S)
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_terminal_that_knows_ascii_only_gets_escapes_instead_of_a_crash(
    cli_process: Callable[..., subprocess.Popen[str]], stranger: FakeBaseten
) -> None:
    stranger.logs["job1"] = [line("grüße 你好")]
    environ = stranger.environ() | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}

    with cli_process("logs", "job1", environ=environ) as process:
        out, err = process.communicate(timeout=LIMIT_S)

    assert (process.returncode, err) == (0, "")
    assert "gr\\xfc\\xdfe" in out


@pytest.mark.parametrize(("closed", "printed"), [("2>&-", "a line\n"), ("<&- >&- 2>&-", "")])
def test_streams_that_were_closed_lead_nowhere(
    stranger: FakeBaseten,
    clean_environ: dict[str, str],
    pytestconfig: pytest.Config,
    closed: str,
    printed: str,
) -> None:
    stranger.logs["job1"] = [line("a line")]
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m tui logs job1 -o raw {closed}"],
        cwd=pytestconfig.rootpath,
        env=clean_environ | stranger.environ(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_a_reader_that_never_reads_is_no_error(cli_process: Callable[..., subprocess.Popen[str]]) -> None:
    with cli_process("projects") as process:
        process.stdout.close()
        process.wait(LIMIT_S)
        assert process.stderr.read() == ""
    assert process.returncode == 0
