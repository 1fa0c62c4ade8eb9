"""``bt-tui stop``, ``delete`` and ``wait``: what they ask, change and leave alone, and how they end."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from api_client.http.retry import RetryPolicy
from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job, project
from support.fake_runs import live_run

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
    result = cli("delete", *arguments.split(), code=code)
    assert result.out == out
    assert err in result.err
    assert deleted(account) == [f"/v1/training_projects/{path}" for path in paths]


@pytest.mark.proves("docs/commands.md", "`init`")
def test_at_a_terminal_it_asks(cli: RunCli, account: FakeBaseten, typed: Callable[[str], None]) -> None:
    for answer, code in (("n", 130), ("y", 0)):
        typed(answer)
        result = cli("delete", "ended", code=code)
        assert (len(deleted(account))) == (answer == "y")
        assert "Permanently deletes the job, its log, and checkpoints that aren't deployed." in result.err
        assert "Delete day (ended)? [y/N]: " in result.err


def test_one_that_cannot_be_deleted_does_not_keep_the_others(cli: RunCli, account: FakeBaseten) -> None:
    account.on("DELETE", ".*/jobs/ended", Answer({"message": "bad gateway"}, status=502))
    result = cli("delete", "ended", "stopped", "--yes", "-o", "json", code=8)
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
        refused = cli("stop runs", code=130)
        assert stops == []
        assert 0 <= refused.err.find("Unsaved work: 1h") < refused.err.find("stop runs? [y/N]: ")
        assert ("without a checkpoint, ≈ $" in refused.err) is (prices.status == 200)
    sure = cli("stop runs --yes")
    assert (len(stops), "[y/N]" in sure.err) == (1, False)
    typed("y")
    cli("stop runs")
    assert len(stops) == 2


def test_ctrl_c_ends_the_question_of_stop_at_once(
    cli: RunCli, baseten: FakeBaseten, typed: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    enters: list[str] = []

    def interrupted(_question: str) -> str:
        signal.raise_signal(signal.SIGINT)
        enters.append("it waits for one")
        return "n"

    live_run(baseten, "runs")
    baseten.on("GET", ".*/checkpoints", Answer({"checkpoints": []}))
    typed("")
    monkeypatch.setattr("click.termui.visible_prompt_func", interrupted)
    cli("stop runs", code=130)
    assert enters == []


def test_stop_without_a_terminal_reports_what_is_lost_and_does_not_ask(
    cli: RunCli, baseten: FakeBaseten
) -> None:
    live_run(baseten, "runs")
    baseten.on("GET", ".*/checkpoints", Answer({"checkpoints": []}))
    stopped = baseten.jobs[-1] | {"current_status": "TRAINING_JOB_STOPPED"}
    baseten.on("POST", ".*/jobs/runs/stop", Answer({"training_job": stopped}))
    result = cli("stop runs")
    assert "Unsaved work: 1h" in result.err and "?" not in result.err


QUICK = ("--interval", "0.01")
JOB_PATH = "/v1/training_projects/proj1/jobs/"


def goes_through(baseten: FakeBaseten, job_id: str, *statuses: str | None) -> None:
    """Each look finds the next status, the last one for ever; None is an outage."""
    left = list(statuses)

    def look(_asked: ReceivedRequest) -> Answer:
        status = left.pop(0) if len(left) > 1 else left[0]
        return Answer({}, status=503) if status is None else Answer({"training_job": job(job_id, status)})

    baseten.on("GET", JOB_PATH + job_id, look)


ENDS = [("NOBODY_KNOWS", 3), ("COMPLETED COMPLETED", 0), ("COMPLETED STOPPED", 4), ("COMPLETED EXPIRED", 4)]
ENDS += [("STOPPED DEPLOY_FAILED", 5), ("FAILED COMPLETED DEPLOY_FAILED", 3)]


@pytest.mark.parametrize(("statuses", "code"), ENDS)
def test_the_exit_code_is_the_worst_end(cli: RunCli, baseten: Any, statuses: str, code: int) -> None:
    ends = {f"job{number}": status for number, status in enumerate(statuses.split())}
    baseten.jobs = [job(name, "PENDING") for name in ends]
    for name, status in ends.items():
        goes_through(baseten, name, "PENDING", "RUNNING", status)
    result = cli("wait", *ends, "-o", "json", *QUICK, code=code)
    assert "job0 is running" in result.err
    found = [each["current_status"] for each in result.json]
    assert found == [f"TRAINING_JOB_{status}" for status in ends.values()]


def test_each_is_printed_when_it_ends(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("slow", "RUNNING"), job("quick", "RUNNING")]
    goes_through(baseten, "slow", *["RUNNING"] * 5, "COMPLETED")
    goes_through(baseten, "quick", "COMPLETED")
    lines = cli("wait", "slow", "quick", "-o", "ndjson", *QUICK).ndjson
    assert [each["id"] for each in lines] == ["quick", "slow"]
    header, *rows = cli("wait", "slow", "quick", *QUICK).out.splitlines()
    assert header.startswith("STATUS")
    assert len(rows) == 2


def test_until_running_ends_when_it_runs_or_never_will(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("job1", "PENDING"), job("job2", "DEPLOY_FAILED")]
    goes_through(baseten, "job1", "PENDING", "DEPLOYING", "RUNNING")
    result = cli("wait", "job1", "--until", "running", "-o", "json", *QUICK)
    assert result.json[0]["current_status"] == "TRAINING_JOB_RUNNING"
    cli("wait job2 --until running", code=5)


def test_the_timeout_has_a_code_of_its_own(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("job1", "RUNNING"), job("job2", "FAILED")]
    result = cli("wait job1 job2 --timeout 0s -o json", code=9)
    assert "job1" in result.err
    assert [each["id"] for each in result.json] == ["job1", "job2"]
    for span in ("2h", "1h30m", "45s", "90"):
        cli(f"wait job2 --timeout {span}", code=3)


def test_an_outage_is_waited_out(cli: RunCli, baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_client.http.retry.RetryPolicy.longest_delay_s", lambda *_arguments: 0.0)
    monkeypatch.setattr("api_client.streams.job_poller.ENDLESS", RetryPolicy(max_attempts=None))
    baseten.jobs = [job("job1", "RUNNING")]
    goes_through(baseten, "job1", "RUNNING", None, None, "COMPLETED")
    cli("wait", "job1", *QUICK)


def test_a_job_that_vanishes_ends_the_wait(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("job1", "RUNNING"), job("job2", "RUNNING")]
    baseten.on("GET", JOB_PATH + "job1", Answer({"message": "deleted"}, status=404))
    cli("wait", "job1", "job2", *QUICK, code=7)
