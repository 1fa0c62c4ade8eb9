"""A name that is not there is an error that lists what is; a dry run with errors fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deployer import Deployer, machine

from support.fake_object_store import JOB, Stored, serving
from support.stranger import LONG_AGO_MS, Answer, FakeBaseten, job, line, project
from support.stranger_runs import metrics_of, node, serve_metrics
from support.terminal import AtTerminal

FULLY_GIVEN = (
    *("deploy", "--job-id", "job1", "--checkpoint", "checkpoint-100", "--model-name", "m"),
    *("--gpu", "L4", "--yes"),
)


@pytest.fixture
def many(stranger: FakeBaseten) -> FakeBaseten:
    """A job whose 64 nodes log and are measured."""
    stranger.jobs = [job("wide", node_count=64)]
    names = [f"node-{number}" for number in range(64)]
    stranger.logs["wide"] = [
        line(f"from {name}", at_ms=LONG_AGO_MS + place, replica=name) for place, name in enumerate(names)
    ]
    serve_metrics(stranger, metrics_of(*(node(name, [0.5], end_s=LONG_AGO_MS / 1000) for name in names)))
    return stranger


@pytest.mark.parametrize(
    "command",
    [
        ("logs", "wide"),
        ("logs", "wide", "-o", "ndjson"),
        ("logs", "wide", "--last", "3"),
        ("logs", "wide", "--follow", "--drain", "0"),
        ("metrics", "wide"),
        ("metrics", "wide", "-o", "csv"),
        ("metrics", "wide", "-o", "json"),
        ("metrics", "wide", "-o", "chart"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", ["64", "node-99", "nodes"])
def test_a_node_that_the_job_does_not_have(
    cli: Callable, many: FakeBaseten, command: tuple[str, ...], name: str
) -> None:
    result = cli(*command, "--node", name)
    assert (result.code, result.out) == (7, "")
    assert result.err.endswith(f"job wide has no node '{name}' (it has: node-0 to node-63)\n")
    assert cli(*command, "--node", "63").code == 0


def test_a_node_of_the_job_that_was_silent_is_no_error(cli: Callable, stranger: FakeBaseten) -> None:
    stranger.jobs = [job("wide", node_count=4)]
    stranger.logs["wide"] = [line("hello", replica="node-0")]
    assert cli("logs", "wide", "--node", "3").code == 0
    assert cli("logs", "wide", "--node", "4").code == 7


@pytest.mark.parametrize("status", ["runing", "TRAINING_JOB_RUNING", "", "all"])
def test_a_status_that_nobody_knows(cli: Callable, stranger: FakeBaseten, status: str) -> None:
    result = cli("jobs", "--status", status)
    assert (result.code, result.out) == (2, "")
    assert f"unknown status '{status}'" in result.err
    assert "pending, queued, created, deploying, running, completed, failed" in result.err


def test_a_status_that_only_the_server_knows_is_as_good(cli: Callable, stranger: FakeBaseten) -> None:
    stranger.jobs = [job("a", "HIBERNATING"), job("b", "RUNNING"), job("c") | {"current_status": "Odd one"}]
    found = cli("jobs", "--status", "hibernating", "-o", "json")
    assert (found.code, [each["id"] for each in json.loads(found.out)], found.err) == (0, ["a"], "")
    assert [each["id"] for each in json.loads(cli("jobs", "--status", "odd one", "-o", "json").out)] == ["c"]
    unknown = cli("jobs", "--status", "hibernated")
    assert (unknown.code, "did you mean hibernating?" in unknown.err) == (2, True)


@pytest.mark.parametrize(
    "command",
    [
        ("jobs", "--project", "nope"),
        ("view", "--project-id", "nope"),
        ("logs", "--project", "nope"),
        ("logs", "--project-id", "nope"),
        ("metrics", "--project", "nope"),
        ("progress", "--project-id", "nope"),
        ("stop", "--project-id", "nope", "--all", "--yes"),
        ("checkpoints", "list", "--project", "nope"),
        ("cache", "summarize", "nope"),
        (*FULLY_GIVEN, "--project-id", "nope"),
    ],
    ids=" ".join,
)
def test_a_project_that_is_not_there(cli: Callable, stranger: FakeBaseten, command: tuple[str, ...]) -> None:
    stranger.projects = [project(), project("proj2", "whisper")]
    result = cli(*command)
    assert (result.code, result.out) == (7, "")
    assert "no project 'nope' (known: llama-sft, whisper)" in result.err


@pytest.fixture
def checkpoints() -> Iterator[dict[str, str]]:
    with serving(Stored("checkpoint-1/a.json", b"{}"), Stored("checkpoint-2/a.json", b"{}")) as store:
        store.no_checkpoints = {"."}
        yield store.environ()


@pytest.mark.parametrize("command", ["show", "files", "snippet", "download"])
def test_a_checkpoint_that_is_not_there(cli: Callable, checkpoints: dict[str, str], command: str) -> None:
    result = cli("checkpoints", command, "checkpoint-9", "--job-id", JOB, environ=checkpoints)
    assert (result.code, result.out) == (7, "")
    words = f"job {JOB} has no checkpoint 'checkpoint-9' (it has: checkpoint-1, checkpoint-2)"
    assert result.err == f"bt-tui: {words}\n"


def test_a_stream_that_does_not_tell_progress(cli: Callable, stranger: FakeBaseten) -> None:
    stranger.logs["job1"] = [line("{'loss': 0.5, 'epoch': 0.1}"), line("step 3/9 loss 0.5")]
    assert cli("progress", "job1", "--stream", "node-0").code == 0
    result = cli("progress", "job1", "--stream", "node-7")
    assert (result.code, result.out) == (7, "")
    assert "no stream 'node-7' (it has: node-0)" in result.err


@pytest.mark.parametrize("count", ["3", "8"])
def test_gpus_that_no_machine_has_are_not_rounded_up(
    cli: Callable, stranger: FakeBaseten, count: str
) -> None:
    deployer = Deployer(stranger, machines=[machine("H100", 1), machine("H100", 4), machine("H100", 16)])
    wanted = (
        "--job-id",
        "job1",
        "--checkpoint",
        "checkpoint-100",
        "--model-name",
        "m",
        "--gpu",
        f"H100:{count}",
    )
    for how in ("--yes", "--dry-run"):
        result = cli("deploy", *wanted, how)
        assert (result.code, result.out) == (2, "")
        assert f"no instance type has {count} × H100; use H100:1, H100:4, H100:16" in result.err
    assert deployer.requests == []


def test_a_dry_run_with_errors_fails(cli: Callable, stranger: FakeBaseten, tmp_path: Path) -> None:
    for name, body in (("teams", {"teams": []}), ("secrets", {"secrets": []})):
        stranger.on("GET", f"/v1/{name}", Answer(body=body))
    config = tmp_path / "config.py"
    config.write_text(
        "from truss_train import *\n"
        'job = TrainingJob(image=Image(base_image="a"), runtime=Runtime(start_commands=["bash no.sh"]))\n'
        'project = TrainingProject(name="p", job=job)\n'
    )
    for more in ((), ("-o", "json")):
        result = cli("push", str(config), "--dry-run", *more)
        assert result.code == 2
        assert "1 error would block this submission" in result.err
        assert "no.sh" in result.out
    assert cli("push", str(config), "--dry-run", "--skip-checks").code == 0
    offline = cli("push", str(config), "--dry-run", environ={})
    assert (offline.code, "1 error" in offline.err) == (2, True)


def test_logout_without_any_remote_says_so(cli: Callable) -> None:
    result = cli("logout", environ={})
    assert result.code == 7
    assert result.err.startswith("bt-tui: no remote to remove: ")


def test_init_without_an_account_names_a_push_that_works(
    cli: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    without = cli("init", environ={})
    assert "bt-tui push cpu-quickstart/config.py --tail --remote local\n" in without.err
    assert "bt-tui push other/config.py --tail\n" in cli("init", "other").err


def test_watching_a_job_that_is_not_there_opens_nothing(
    stranger: FakeBaseten, clean_environ: dict[str, str]
) -> None:
    with AtTerminal("watch", "nosuch", environ={**clean_environ, **stranger.environ()}) as terminal:
        assert terminal.end() == 7
    assert "no training job 'nosuch'" in terminal.text
    assert "\x1b[?1049h" not in terminal.text


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("logs", "job1", "--project", "nope"), "not in project 'nope'"),
        (("metrics", "job1", "--project", "nope"), "not in project 'nope'"),
    ],
)
def test_a_job_of_another_project(
    cli: Callable, stranger: FakeBaseten, command: tuple[str, ...], words: str
) -> None:
    result = cli(*command)
    assert (result.code, result.out) == (7, "")
    assert words in result.err


@pytest.mark.parametrize("command", ["logs", "metrics", "progress", "view", "stop", "checkpoints list"])
def test_two_projects_are_one_too_many(cli: Callable, stranger: FakeBaseten, command: str) -> None:
    result = cli(*command.split(), "--project", "llama-sft", "--project-id", "proj2")
    assert (result.code, result.out) == (2, "")
    assert "--project and --project-id name different projects" in result.err


@pytest.mark.parametrize("moment", ["2099-01-01", "2099-01-01T00:00:00Z", "4070908800"])
@pytest.mark.parametrize("command", ["logs", "metrics", "progress"])
def test_since_a_time_that_is_still_to_come(cli: Callable, command: str, moment: str) -> None:
    result = cli(command, "job1", "--since", moment)
    assert (result.code, result.out) == (2, "")
    assert "in the future" in result.err


@pytest.mark.parametrize(
    "line",
    [
        "metrics job1 --metric cpu_usage",
        "compare job1 job2 --curves",
        "compare job1 job2 --curves -o chart",
        "compare job1 job2 --smoothing 0.5",
        "init one --target-directory two",
    ],
)
def test_an_option_that_would_change_nothing_is_refused(
    cli: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli(*line.split())
    assert (result.code, result.out) == (2, "")
    assert list(tmp_path.iterdir()) == []
