"""``bt-tui wait``: one or many, every outcome, outages and the timeout."""

from typing import Any

import pytest

from api_client.http.retry import RetryPolicy
from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job

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
    result = cli("wait", *ends, "-o", "json", *QUICK)
    assert (result.code, "job0 is running" in result.err) == (code, True)
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
    assert (result.code, result.json[0]["current_status"]) == (0, "TRAINING_JOB_RUNNING")
    assert cli("wait job2 --until running").code == 5


def test_the_timeout_has_a_code_of_its_own(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("job1", "RUNNING"), job("job2", "FAILED")]
    result = cli("wait job1 job2 --timeout 0s -o json")
    assert (result.code, "job1" in result.err) == (9, True)
    assert [each["id"] for each in result.json] == ["job1", "job2"]
    for span in ("2h", "1h30m", "45s", "90"):
        assert cli(f"wait job2 --timeout {span}").code == 3


def test_an_outage_is_waited_out(cli: RunCli, baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_client.http.retry.RetryPolicy.longest_delay_s", lambda *_arguments: 0.0)
    monkeypatch.setattr("api_client.streams.job_poller.ENDLESS", RetryPolicy(max_attempts=None))
    baseten.jobs = [job("job1", "RUNNING")]
    goes_through(baseten, "job1", "RUNNING", None, None, "COMPLETED")
    assert cli("wait", "job1", *QUICK).code == 0


def test_a_job_that_vanishes_ends_the_wait(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("job1", "RUNNING"), job("job2", "RUNNING")]
    baseten.on("GET", JOB_PATH + "job1", Answer({"message": "deleted"}, status=404))
    assert cli("wait", "job1", "job2", *QUICK).code == 7
