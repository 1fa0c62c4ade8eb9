"""projects, jobs and job against a server that we did not write."""

import re

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job, project


@pytest.mark.proves("docs/commands.md", "`projects`")
def test_projects_as_documents_tables_and_spreadsheets(cli: RunCli, baseten: FakeBaseten) -> None:
    latest = job(name="night run", status="RUNNING")
    baseten.projects = [
        project(team_name="Research", quota={"gpus": 8}, latest_job=latest),
        project("proj2", "whisper"),
    ]
    first, second = cli("projects -o json").json
    assert (first["id"], first["team_name"], first["quota"]) == ("proj1", "Research", {"gpus": 8})
    assert (second["name"], second["created_at"]) == ("whisper", "2025-03-01T12:00:00Z")
    header, row, _ = cli("projects").out.splitlines()
    assert header.split() == ["ID", "NAME", "TEAM", "LATEST", "JOB", "STATUS", "CREATED"]
    for words in ("llama-sft", "night run", "● running", "2025-03-01"):
        assert words in row
    record = cli("projects -o csv").csv[0]
    assert (record["name"], record["team_name"], record["latest_job_id"]) == ("llama-sft", "Research", "job1")
    assert record["created_at"] == "2025-03-01T12:00:00Z"


def test_jobs_as_csv_are_a_line_each_active_ones_first(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [
        job("waits", "PENDING"),
        job("a", "FAILED", error_message="two\nlines, and a comma", created_at="2025-06-01T00:00:00Z"),
        job("b", "RUNNING", name="=1+1", node_count=4, created_at="2025-01-02T00:00:00Z"),
    ]
    result = cli("jobs -o csv")
    running, _waits, failed = result.csv
    assert (result.err, failed["id"]) == ("", "a")  # active ones first, then the newest
    # No spreadsheet computes what a job is called.
    shown = [running[name] for name in ("id", "current_status", "node_count", "name")]
    assert shown == ["b", "TRAINING_JOB_RUNNING", "4", "'=1+1"]
    assert failed["error_message"].startswith("two") and failed["error_message"].endswith("and a comma")
    baseten.jobs = []
    assert cli("jobs -o csv").out.startswith("id,name,current_status,")


def test_job_names_the_state_of_its_checkpoint_upload(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("a", "RUNNING", checkpoint_sync_status="COMPLETED")]
    lines = cli("job a").out.splitlines()
    assert [line.split() for line in lines if "checkpoint" in line] == [
        ["checkpoint", "upload", "up", "to", "date"]
    ]


def test_job_is_found_by_id_name_or_unique_part_of_it(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [
        job("abc1", name="llama-sft"),
        job("abc2", "RUNNING", name="llama-dpo"),
        job("llama-sft2", name="x"),
    ]
    for typed, job_id in (
        ("abc1", "abc1"),
        ("llama-sft", "abc1"),
        ("llama-d", "abc2"),
        ("dpo", "abc2"),
        ("llama-sft2", "llama-sft2"),
    ):
        assert cli(f"job {typed} -o json").json["id"] == job_id
    cli("job bert", code=7)
    assert "2 jobs contain 'lama'; give an id: " in cli("job lama", code=2).err
    several = cli("job abc", code=2)
    assert (
        "2 jobs begin with 'abc'; give an id: " in several.err and "abc2 (llama-dpo, running)" in several.err
    )
    cli("stop dpo --yes", code=7)  # a part of a name does not end a job
    baseten.jobs.append(job("abc3", name="llama-sft"))
    assert "2 jobs are named 'llama-sft'" in cli("stop llama-sft", code=2).err
    assert cli("wait abc2 --until running -o json").json[0]["id"] == "abc2"


def test_jobs_of_some_statuses_or_of_a_project(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.projects = [project(), project("proj2", "whisper")]
    of_other = {"training_project_id": "proj2"}
    baseten.jobs = [job("a", "RUNNING"), job("b", "DEPLOY_FAILED", **of_other), job("c")]
    result = cli("jobs --status running --status TRAINING_JOB_DEPLOY_FAILED -o json")
    assert ({each["id"] for each in result.json}, result.err) == ({"a", "b"}, "")
    searches = [asked.body for asked in baseten.asked if asked.path.endswith("/search")]
    assert set(searches[-1]["statuses"]) == {"TRAINING_JOB_RUNNING", "TRAINING_JOB_DEPLOY_FAILED"}
    assert cli("jobs --status expired -o json").json == []  # known, although no job has it
    for name in ("whisper", "proj2"):
        assert [each["id"] for each in cli(f"jobs --project {name} -o json").json] == ["b"]
    baseten.projects = [project(team_name="A"), project("proj2", team_name="B")]
    twice = cli("jobs --project llama-sft", code=2)
    assert "proj1 (team A)" in twice.err and "proj2 (team B)" in twice.err


@pytest.mark.proves("docs/commands.md", "`projects`")
def test_one_job_as_json_and_as_text(cli: RunCli, baseten: FakeBaseten) -> None:
    user = {"email": "kim@example.com"}
    baseten.jobs = [job("abc", "FAILED", node_count=2, error_message="exit code 3", color="blue", user=user)]
    found, text = cli("job abc -o json").json, cli("job abc").out
    assert (found["id"], found["error_message"], found["color"]) == ("abc", "exit code 3", "blue")
    link = f"{baseten.url}/training/proj1/logs/abc"
    for words in ("✗ failed", "2×8 H100", "llama-sft (proj1)", "kim@example.com", "exit code 3", link):
        assert words in text


def test_what_cannot_be_read_is_left_out_with_a_remark(cli: RunCli, baseten: FakeBaseten) -> None:
    search = "POST", "/v1/training_jobs/search"
    for broken, field in ((job("bad", node_count={"x": 1}), "node_count"), ("not a job", "the record")):
        baseten.on(*search, Answer({"training_jobs": [job("good"), broken]}))
        result = cli("jobs -o json")
        assert [one["id"] for one in result.json] == ["good"]
        assert f"1 job left out: invalid data ({field}: Input should" in result.err
        # What needs all jobs is not decided without it.
        for command, code in (("job good", 0), ("job bad", 1), ("status", 1)):
            cli(command, code=code)
        baseten.on(*search, Answer({"training_jobs": [broken]}))
        assert "unexpected data (training_jobs.0" in cli("jobs", code=1).err
    baseten.projects = [project(), {}]
    assert "1 project left out: invalid data (id: Field required)" in cli("projects").err


@pytest.mark.usefixtures("no_waits")
def test_a_problem_that_lasts_is_remarked_once(cli: RunCli, baseten: FakeBaseten) -> None:
    words = iter(["back soon", "back soon", "nearly there", "nearly there"])
    fine = Answer({"training_projects": []})
    outage = (Answer({"message": word}, status=503) for word in words)
    baseten.on("GET", "/v1/training_projects", lambda asked: next(outage, fine))
    result = cli("projects -o json")
    assert re.findall(r"(\w+ \w+) \(503\); retrying", result.err) == ["back soon", "nearly there"]


@pytest.mark.usefixtures("no_waits")
def test_server_that_slows_down_many_requests_is_remarked_once(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job(f"job{number}", "RUNNING") for number in range(5)]
    slowed: set[str] = set()

    def log(asked: ReceivedRequest) -> Answer:
        if asked.path in slowed:
            return Answer({"logs": []})
        slowed.add(asked.path)
        return Answer({"message": "slow down"}, status=429)

    baseten.on("GET", ".*/logs", log)
    assert cli("health -o json").err.count("slow down (429)") == 1
    assert len(slowed) == 5


@pytest.mark.proves("docs/commands.md", "Exit codes")
def test_method_route_and_request_id_are_details_of_an_error(cli: RunCli, baseten: FakeBaseten) -> None:
    refused = Answer({"message": "only while it waits"}, status=400, headers={"X-Request-Id": "req-1"})
    baseten.on("PATCH", "/v1/.*", refused)
    plain = cli("update job1 --priority 3", code=1)
    detailed = cli("update job1 --priority 3", environ={**baseten.environ(), "BT_TUI_DEBUG": "1"}, code=1)
    host = baseten.url.removeprefix("http://")
    assert plain.err == f"bt-tui: can't update job job1: {host}: only while it waits (400)\n"
    assert "PATCH /v1/training_projects/proj1/jobs/job1, sent 1 time, status 400, id req-1" in detailed.err


def test_an_empty_list_is_no_error_and_a_remark(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.projects, baseten.jobs = [], []
    for command in ("projects", "jobs"):
        assert cli(f"{command} -o json").out == "[]\n"
        table = cli(command)
        assert len(table.out.splitlines()) == 1
        assert f"no {command}" in table.err
