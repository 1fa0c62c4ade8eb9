"""What only a process of its own can show: imports, pipes, signals."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_streams_of_all_commands import OUTCOMES
from whole_platform import furnished

from support.cli import Start
from support.every_command import CHANGING, READING
from support.fake_baseten import FakeBaseten, job, line
from support.faulty import FaultyServer
from support.warm_python import ROOT
from tui.commands.support.catalogue import command_entries

LIMIT_S = 60
HEAVY = {"textual", "rich.console", "plotext", "questionary", "starlette", "uvicorn", "psutil"}
TRANSPORT = {"httpx", "pydantic"}
LOG_PATTERNS = "tui.analysis.progress.lines.custom"
MAIN = "from tui.cli import main"


def loaded_by(program: str, *lines: str, environ: dict[str, str]) -> set[str]:
    """Modules in memory after this program, and these command lines, have run."""
    program = f"import sys\n{program}\nassert not any(main(line.split()) for line in {lines!r})\n"
    command = [sys.executable, "-c", f"{program}sys.stderr.write('\\nLOADED ' + ' '.join(sys.modules))"]
    options = {"cwd": ROOT, "env": environ, "timeout": LIMIT_S}
    done = subprocess.run(command, **options, capture_output=True, text=True, check=True)
    return set(done.stderr.rpartition("LOADED ")[2].split())


@pytest.mark.proves("docs/architecture.md", "Architecture")
def test_headless_commands_load_no_screen(baseten: FakeBaseten, clean_environ: dict[str, str]) -> None:
    baseten.logs["job1"] = [line("a line")]
    lines = ("projects", "jobs -o json", "job job1", "logs job1")
    loaded = loaded_by(MAIN, *lines, environ=clean_environ | baseten.environ())
    assert (loaded & HEAVY, "httpx" in loaded) == (set(), True)


@pytest.mark.proves("docs/architecture.md", "Architecture")
def test_listing_jobs_loads_no_patterns_of_logs_and_no_emulator(
    baseten: FakeBaseten, clean_environ: dict[str, str]
) -> None:
    loaded = loaded_by(MAIN, "jobs -o json", environ=clean_environ | baseten.environ())
    late = {LOG_PATTERNS, "re2", "sqlite3", "api_client.emulator.data_folder"}
    assert ("httpx" in loaded, late & loaded) == (True, set())


@pytest.mark.proves("docs/architecture.md", "Architecture")
def test_help_loads_no_transport_and_no_other_command(clean_environ: dict[str, str]) -> None:
    assert loaded_by(MAIN, "--help", environ=clean_environ) & (HEAVY | TRANSPORT) == set()
    loaded = loaded_by(MAIN, "jobs --help", environ=clean_environ)
    assert {name for name in loaded if name.startswith("tui.commands.jobs.")} == {"tui.commands.jobs.listing"}


EACH_LINE = f"""
import json, sys
{MAIN}
sys.stderr.write("\\n" + json.dumps([main(line) for line in json.loads(sys.argv[1])]))
"""
LINES = READING | CHANGING


def module_of(words: str) -> str:
    return command_entries()[words.split(maxsplit=1)[0]].module


@pytest.mark.usefixtures("code")
@pytest.mark.parametrize("module", sorted(set(map(module_of, LINES))))
def test_commands_of_a_module_work_in_a_new_interpreter(
    module: str, faulty: FaultyServer, clean_environ: dict[str, str], tmp_path: Path
) -> None:
    """It has imported nothing but what the commands themselves do."""
    chosen = [words for words in LINES if module_of(words) == module]
    lines = json.dumps([[*words.split(), *LINES[words]] for words in chosen])
    (tmp_path / "platform").mkdir()
    with furnished(faulty, tmp_path / "platform") as platform:
        environ = clean_environ | platform | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", EACH_LINE, lines]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    codes = json.loads(done.stderr.splitlines()[-1])
    assert all(code in OUTCOMES.get(words, (0,)) for words, code in zip(chosen, codes, strict=True)), codes
    assert "Traceback" not in done.stderr


OPENS_HOME = """
from tui.app import BtTuiApp
from tui.commands.app.dashboard import dashboard_remote
from tui.commands.support.options import CommandSettings
from tui.commands.support.remotes import dashboard_settings
from tui.settings.remembered import Memory, memory_path
memory_path().parent.mkdir(parents=True)
memory_path().write_text('{"home": {"sort": "age"}, "job": {"wrap": true}, "tips": {"home.filter": 2}}')
settings = CommandSettings()
loaded = dashboard_settings(settings)
memory = Memory(memory_path())
BtTuiApp(dashboard_remote(settings, loaded), settings=loaded, memory=memory).first_screen()
assert memory.state.home.sort == "age"
"""
NOT_IN_THE_FIRST_PICTURE = {
    *("pydantic", "httpx", "hashlib", "urllib.request", "ctypes"),
    *("api_client.client", "api_client.models", "api_client.recordings.reading"),
    *("tui.analysis.health.check", "tui.analysis.progress.announcements", "tui.analysis.run.snapshot"),
    *("tui.readers.watcher", "tui.settings.loading", "tui.widgets.charts.spec", LOG_PATTERNS),
}


@pytest.mark.proves("docs/architecture.md", "The first picture")
def test_home_opens_without_what_its_first_picture_does_not_show(clean_environ: dict[str, str]) -> None:
    loaded = loaded_by(OPENS_HOME, environ=clean_environ | {"BASETEN_API_KEY": "k"})
    assert ("tui.screens.home.screen" in loaded, NOT_IN_THE_FIRST_PICTURE & loaded) == (True, set())


def test_following_ends_when_its_reader_leaves(cli_process: Start, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("job1", "RUNNING")]
    baseten.logs["job1"] = [line("the only one")]
    with cli_process("logs", "job1", "--follow") as process:
        assert process.stdout.readline().endswith("the only one\n")
        process.stdout.close()
        process.wait(LIMIT_S)
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_a_terminal_that_knows_ascii_only_gets_escapes(cli_process: Start, baseten: FakeBaseten) -> None:
    baseten.logs["job1"] = [line("grüße 你好")]
    environ = baseten.environ() | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    with cli_process("logs", "job1", environ=environ) as process:
        out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "")
    assert "gr\\xfc\\xdfe" in out


LOST = "bt-tui: can't write stdout: it is closed\n"


@pytest.mark.parametrize(
    ("command", "closed", "result"),
    [
        ("logs job1 -o raw", "2>&-", (0, "a line\n", "")),
        ("logs job1 -o raw", "<&- >&- 2>&-", (1, "", "")),
        ("logs job1 -o raw", ">&-", (1, "", LOST)),
        ("jobs -o json", ">&-", (1, "", LOST)),
        ("--version", ">&-", (1, "", LOST)),
        ("logs job1 -o raw --save lines.txt", ">&-", (0, "", "bt-tui: saved 1 line to lines.txt\n")),
    ],
)
def test_output_to_a_closed_stream_is_not_called_written(
    baseten: FakeBaseten,
    clean_environ: dict[str, str],
    tmp_path: Path,
    command: str,
    closed: str,
    result: tuple[int, str, str],
) -> None:
    baseten.logs["job1"] = [line("a line")]
    shell = ["sh", "-c", f"exec {sys.executable} -m tui {command} {closed}"]
    environ = clean_environ | baseten.environ() | {"PYTHONPATH": str(ROOT)}
    options = {"cwd": tmp_path, "env": environ, "timeout": LIMIT_S}
    done = subprocess.run(shell, **options, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == result
