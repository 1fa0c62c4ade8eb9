"""``bt-tui delete`` and ``stop``: what they ask, what they change, and what they leave alone."""

import signal
from collections.abc import Callable

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job, project
from support.fake_runs import live_run
from support.terminal import AtTerminal

NO_TERMINAL = "no terminal to ask on; give --yes"


def deleted(server: FakeBaseten) -> list[str]:
    return [asked.path for asked in server.asked if asked.method == "DELETE"]


@pytest.fixture
def account(baseten: FakeBaseten) -> FakeBaseten:
    """A project with a job that runs and two that have ended, and one without active jobs."""
    baseten.projects = [project(), project("proj2", "whisper")]
    baseten.jobs = [
        job("runs", "RUNNING", name="night"),
        job("ended", name="day"),
        job("stopped", "STOPPED"),
        job("other", "FAILED", training_project_id="proj2"),
    ]

    def tombstone(asked: ReceivedRequest) -> Answer:
        return Answer({"id": asked.path.rsplit("/", 1)[1], "deleted": True})

    baseten.on("DELETE", "/v1/training_projects/.*", tombstone)
    return baseten


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err", "paths"),
    [
        (
            "ended stopped --yes", 0, "ended\nstopped\n", "deleted job ended (day)",
            ["proj1/jobs/ended", "proj1/jobs/stopped"],
        ),
        ("ended runs --yes", 2, "ended\n", "still active: stop them first: night", ["proj1/jobs/ended"]),
        ("runs --yes", 2, "", "still active: stop them first: night", []),
        ("nobody --yes", 7, "", "no training job with id 'nobody'", []),
        ("ended", 2, "", f"Delete day (ended)? ({NO_TERMINAL})", []),
        ("--project whisper --yes", 0, "proj2\n", "with 1 job and its log", ["proj2"]),
        ("--project-id proj2", 2, "", f"Delete project whisper (proj2)? ({NO_TERMINAL})", []),
        ("--project llama-sft --yes", 2, "", "still active: stop them first: night", []),
        ("--project nowhere --yes", 7, "", "no project 'nowhere'", []),
        ("", 2, "", "either JOB_ID or --project", []),
        ("ended --project whisper --yes", 2, "", "either JOB_ID or --project", []),
    ],
)  # fmt: skip
@pytest.mark.proves("docs/commands.md", "`init`")
def test_what_is_deleted(
    cli: RunCli, account: FakeBaseten, arguments: str, code: int, out: str, err: str, paths: list[str]
) -> None:
    result = cli("delete", *arguments.split())
    assert (result.code, result.out) == (code, out)
    assert err in result.err
    assert deleted(account) == [f"/v1/training_projects/{path}" for path in paths]


@pytest.mark.proves("docs/commands.md", "`init`")
def test_at_a_terminal_it_asks(cli: RunCli, account: FakeBaseten, typed: Callable[[str], None]) -> None:
    for answer, code in (("n", 130), ("y", 0)):
        typed(answer)
        result = cli("delete", "ended")
        assert (result.code, len(deleted(account))) == (code, answer == "y")
        assert "Permanently deletes the job, its log, and checkpoints that aren't deployed." in result.err
        assert "Delete day (ended)? [y/N]: " in result.err


def test_one_that_cannot_be_deleted_does_not_keep_the_others(cli: RunCli, account: FakeBaseten) -> None:
    account.on("DELETE", ".*/jobs/ended", Answer({"message": "bad gateway"}, status=502))
    result = cli("delete", "ended", "stopped", "--yes", "-o", "json")
    assert result.code == 8
    assert "job ended (day) may not have been deleted: " in result.err
    assert [each["id"] for each in result.json] == ["stopped"]


def test_stop_shows_what_is_lost_and_asks_only_at_a_terminal(
    cli: RunCli, baseten: FakeBaseten, typed: Callable[[str], None]
) -> None:
    live_run(baseten, "runs")
    baseten.on("GET", ".*/checkpoints", Answer({"checkpoints": []}))
    stops: list[str] = []

    def stop(request: ReceivedRequest) -> Answer:
        stops.append(request.path)
        return Answer({"training_job": baseten.jobs[-1] | {"current_status": "TRAINING_JOB_STOPPED"}})

    baseten.on("POST", ".*/jobs/runs/stop", stop)
    price = {"instance_type": baseten.jobs[-1]["instance_type"], "price": 0.5}
    for answer, prices in (
        ("", Answer({"instance_types": [price]})),
        ("n", Answer({"code": "UNAVAILABLE"}, status=503)),
    ):
        baseten.on("GET", "/v1/instance_type_prices", prices)
        typed(answer)
        refused = cli("stop runs")
        assert (refused.code, stops) == (130, [])
        assert 0 <= refused.err.find("Unsaved work: 1h") < refused.err.find("stop runs? [y/N]: ")
        assert ("without a checkpoint, ≈ $" in refused.err) is (prices.status == 200)
    sure = cli("stop runs --yes")
    assert (sure.code, len(stops), "[y/N]" in sure.err) == (0, 1, False)
    typed("y")
    assert (cli("stop runs").code, len(stops)) == (0, 2)


def test_ctrl_c_ends_the_question_of_stop_at_once(
    baseten: FakeBaseten, clean_environ: dict[str, str]
) -> None:
    live_run(baseten, "runs")
    baseten.on("GET", ".*/checkpoints", Answer({"checkpoints": []}))
    with AtTerminal("stop", "runs", environ=clean_environ | baseten.environ()) as terminal:
        terminal.sees("Unsaved work: 1h", "stop runs? [y/N]: ")
        terminal.process.send_signal(signal.SIGINT)  # not only after the next enter
        assert terminal.end() == 130
    assert not any(request.path.endswith("/jobs/runs/stop") for request in baseten.asked)


def test_stop_without_a_terminal_reports_what_is_lost_and_does_not_ask(
    cli: RunCli, baseten: FakeBaseten
) -> None:
    live_run(baseten, "runs")
    baseten.on("GET", ".*/checkpoints", Answer({"checkpoints": []}))
    stopped = baseten.jobs[-1] | {"current_status": "TRAINING_JOB_STOPPED"}
    baseten.on("POST", ".*/jobs/runs/stop", Answer({"training_job": stopped}))
    result = cli("stop runs")
    assert result.code == 0 and "Unsaved work: 1h" in result.err and "?" not in result.err
