"""What no command accepts: wrong options, names that are not there, a dry run with errors."""

import sys
from pathlib import Path

import pytest

from support.cli import RunCli
from support.fake_baseten import LONG_AGO_MS, FakeBaseten, job, line, project
from support.fake_object_store import JOB, FakeObjectStore, Stored
from support.fake_runs import metrics_of, node, serve_metrics
from support.terminal import AtTerminal

GIVEN = "deploy --job-id job1 --checkpoint checkpoint-100 --model-name m --gpu"
TWO_PROJECTS = "--project and --project-id name different projects"
FUTURE = "in the future"
WRONG = [
    ("nonsense", "No such command"),
    ("jbs", "No such command 'jbs'. Did you mean 'jobs'?"),
    ("job", "Give JOB_ID"),
    ("push code/config.py --interactive-timeout 45s", "less than 1m"),
    ("download job1 --out-dir a --out-file b", "give either"),
    ("metrics job1 --follow --end now", "omit --end"),
    ("", "terminal"),
    ("sessions job1 --job-id job2", "two different job ids"),
    ("sessions job1 --update-timeout 0", "-1 means ten years"),
    ("update job1", "nothing to change"),
    ("stop --all job1", "--all takes no job ids"),
    ("stop job1 --project llama-sft", "job ids need no project"),
    ("secrets set name secret-value-9", "the shell history"),
    ("wait job1 --timeout soon", "is not a duration"),
    ("wait job1 --until tomorrow", "tomorrow"),
    ("compare job1", "2 to"),
    ("compare job1 job2 --curves -o chart", "--curves needs -o json or csv"),
    ("compare job1 job2 --smoothing 0.5", "--smoothing needs -o chart"),
    ("metrics", "which job?"),
    ("metrics job1 --metric cpu_usage", "the table shows all metrics"),
    ("metrics job1 --follow -o chart", "can't follow"),
    ("init one --target-directory two", "name different folders"),
    ("init --template ../../etc", "../../etc"),
    ("init --examples cpu-quickstart,nonesuch", "nonesuch"),
    ("init --examples ,", "--examples"),
    ("init --examples cpu-quickstart --template cpu-quickstart", "--template"),
    ("workstation --gpu-count 2 --node-count 1", "give either"),
    ("workstation --accelerator B10", "H100, H200"),
    ("workstation --node-count 2", "truss train workstation"),
    ("workstation --node-count 16 --orchestrator SLURM", "--orchestrator none"),
    *((f"logs job1 {options}", why) for options, why in (
      ("--grep (unclosed", "missing )"),
      ("--start yesterdayish", "not a time: yesterdayish (2h, 12:30 and 2026-11-21 are)"),
      ("--min-level LOUD", "'LOUD'"),
      ("--since 1h --start 12:00", "give either"),
      ("--follow --end 12:00", "--end"),
      ("--follow -o json", "-o ndjson"),
      ("--last 3 --context 2", "--context needs --grep or --min-level"),
      ("--invert --grep '' --min-level ERROR", "needs --grep"),
      ("-i --node 1", "needs --grep"),
      ("-o jsn", "./jsn"),
      ("-o raw -o text", "one format"),
      ("--time swatch", "swatch"),
    )),
    *((f"{name} --project llama-sft --project-id proj2", TWO_PROJECTS) for name in
      ("logs", "metrics", "progress", "view", "stop", "checkpoints list")),
    *((f"{name} job1 --since {moment}", FUTURE) for name, moment in
      (("metrics", "2099-01-01T00:00:00Z"), ("progress", "4070908800"))),
]  # fmt: skip


@pytest.mark.parametrize(("words", "why"), WRONG)
@pytest.mark.usefixtures("in_folder")
@pytest.mark.proves("docs/logs.md", "The log viewer")
def test_wrong_usage_asks_and_writes_nothing(cli: RunCli, tmp_path: Path, words: str, why: str) -> None:
    result = cli(words, environ={}, code=2)
    assert result.out == ""
    assert why in result.err
    assert "secret-value-9" not in result.err
    assert list(tmp_path.iterdir()) == []


NODES = "job wide has no node {!r} (it has: node-0, node-1, node-2, node-3, node-4)"
PROJECTS = "no project 'nope' (known: llama-sft, whisper)"
UNKNOWN = [
    ("job nope", "nope"),
    ("logs wide --node 5", NODES.format("5")),
    ("metrics wide --node 5", NODES.format("5")),
    ("jobs --project nope", PROJECTS),
    ("stop --project-id nope --all --yes", PROJECTS),
    ("stop --project '' --all --yes", PROJECTS.replace("nope", "")),
    ("cache summarize nope", PROJECTS),
    (f"{GIVEN} L4 --yes --project-id nope", PROJECTS),
    ("logs wide --project whisper", "not in project 'whisper'"),
    ("progress wide --stream node-7", "no stream 'node-7' (it has: node-0, node-1, node-2, node-3, node-4)"),
]


@pytest.fixture
def wide(baseten: FakeBaseten) -> FakeBaseten:
    """A job whose five nodes log and are measured."""
    baseten.jobs = [job("wide", node_count=5)]
    baseten.projects = [project(), project("proj2", "whisper")]
    names = [f"node-{number}" for number in range(5)]
    baseten.logs["wide"] = [
        line("{'loss': 0.5, 'grad_norm': 1.0, 'epoch': 0.1}", at_ms=LONG_AGO_MS + place, replica=name)
        for place, name in enumerate(names)
    ]
    serve_metrics(baseten, metrics_of(*(node(name, [0.5], end_s=LONG_AGO_MS / 1000) for name in names)))
    return baseten


@pytest.mark.parametrize(("words", "why"), UNKNOWN)
@pytest.mark.usefixtures("wide")
def test_a_name_that_is_not_there_ends_with_those_that_are(cli: RunCli, words: str, why: str) -> None:
    result = cli(words, code=7)
    assert result.out == ""
    assert why in result.err


def test_a_name_that_is_there_is_taken_though_the_node_was_silent(cli: RunCli, wide: FakeBaseten) -> None:
    for words in ("logs wide --node 3", "metrics wide --node 4", "progress wide --stream node-0"):
        cli(words)
    wide.logs["wide"] = [line("hello", replica="node-0")]
    cli("logs wide --node 3")


def test_a_status_is_a_known_one_or_one_of_the_servers(cli: RunCli, baseten: FakeBaseten) -> None:
    for status in ("runing", "TRAINING_JOB_RUNING", "", "all"):
        result = cli("jobs", "--status", status, code=2)
        assert result.out == ""
        assert f"unknown status '{status}'" in result.err
        assert "pending, queued, created, deploying, running, completed, failed" in result.err
    baseten.jobs = [job("a", "HIBERNATING"), job("b", "RUNNING"), job("c") | {"current_status": "Odd one"}]
    for status, name in (("hibernating", "a"), ("'odd one'", "c")):
        found = cli(f"jobs --status {status} -o json")
        assert ([each["id"] for each in found.json], found.err) == ([name], "")
    assert "did you mean hibernating?" in cli("jobs --status hibernated", code=2).err


def test_a_checkpoint_that_is_not_there(cli: RunCli) -> None:
    with FakeObjectStore(Stored("checkpoint-1/a.json", b"{}"), Stored("checkpoint-2/a.json", b"{}")) as store:
        store.no_checkpoints = {"."}
        for command in ("show", "files", "snippet", "download"):
            result = cli(
                "checkpoints", command, "checkpoint-9", "--job-id", JOB, environ=store.environ(), code=7
            )
            words = f"job {JOB} has no checkpoint 'checkpoint-9' (it has: checkpoint-1, checkpoint-2)"
            assert (result.out, result.err) == ("", f"bt-tui: {words}\n")


@pytest.mark.usefixtures("in_folder")
def test_init_without_an_account_names_a_push_that_works(cli: RunCli) -> None:
    without = cli("init", environ={})
    assert "bt-tui --remote local push cpu-quickstart/config.py --tail\n" in without.err
    assert "bt-tui push other/config.py --tail\n" in cli("init other").err


@pytest.mark.proves("README.md", "On your own workspace")
def test_serving_without_its_package_names_the_python(cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("tui.web", "tui.commands.app.serve"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    result = cli("serve", environ={}, code=2)
    assert result.out == ""
    assert f"{sys.executable} -m pip install 'textual-serve" in result.err


@pytest.mark.proves("docs/commands.md", "`watch JOB_ID`")
def test_watching_an_unknown_job_opens_nothing(baseten: FakeBaseten, clean_environ: dict[str, str]) -> None:
    with AtTerminal("watch", "nosuch", environ={**clean_environ, **baseten.environ()}) as terminal:
        assert terminal.end() == 7
    assert "no training job with id 'nosuch'" in terminal.text
    assert "\x1b[?1049h" not in terminal.text
