"""projects, jobs and job against a server that we did not write."""

import csv
import json
import re

from conftest import RunCli

from support.stranger import Answer, FakeBaseten, job, project


def test_projects_as_json_carry_the_apis_own_names_and_what_we_never_heard_of(
    cli: RunCli, stranger: FakeBaseten
) -> None:
    stranger.projects = [project(team_name="Research", quota={"gpus": 8}), project("proj2", "whisper")]

    result = cli("projects", "-o", "json")

    assert (result.code, result.err) == (0, "")
    first, second = json.loads(result.out)
    assert (first["id"], first["team_name"], first["quota"]) == ("proj1", "Research", {"gpus": 8})
    assert second["name"] == "whisper"
    assert second["created_at"] == "2025-03-01T12:00:00Z"


def test_projects_as_table(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.projects = [project(latest_job=job(name="night run", status="RUNNING"))]

    header, row = cli("projects").out.splitlines()

    assert header.split() == ["ID", "NAME", "TEAM", "LATEST", "JOB", "STATUS", "CREATED"]
    assert "llama-sft" in row
    assert "night run" in row
    assert "● running" in row
    assert "2025-03-01 12:00:00" in row or "2025-03-01" in row


def test_jobs_come_running_first_and_newest_first(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.jobs = [
        job("old", "COMPLETED", created_at="2025-01-01T00:00:00Z"),
        job("waits", "PENDING"),
        job("new", "FAILED", created_at="2025-06-01T00:00:00Z"),
        job("runs", "RUNNING", created_at="2025-01-02T00:00:00Z"),
    ]

    listed = json.loads(cli("jobs", "-o", "json").out)

    assert [each["id"] for each in listed] == ["runs", "waits", "new", "old"]


def test_jobs_as_csv_are_a_line_each_by_the_apis_names(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.jobs = [
        job("b", "RUNNING", name="=1+1", node_count=4),
        job("a", "FAILED", error_message="two\nlines, and a comma"),
    ]

    result = cli("jobs", "-o", "csv")
    running, failed = csv.DictReader(result.out.splitlines())

    assert (result.code, result.err) == (0, "")
    assert (running["id"], running["current_status"], running["node_count"]) == (
        "b",
        "TRAINING_JOB_RUNNING",
        "4",
    )
    assert running["name"] == "'=1+1"  # no spreadsheet computes what a job is called
    assert failed["error_message"].startswith("two")
    assert failed["error_message"].endswith("lines, and a comma")


def test_projects_as_csv(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.projects = [project(team_name="Research", latest_job=job("j", "RUNNING"))]

    (row,) = csv.DictReader(cli("projects", "-o", "csv").out.splitlines())

    assert (row["name"], row["team_name"], row["latest_job_id"]) == ("llama-sft", "Research", "j")
    assert row["created_at"] == "2025-03-01T12:00:00Z"


def test_no_jobs_as_csv_are_a_heading(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.jobs = []

    assert cli("jobs", "-o", "csv").out.startswith("id,name,current_status,")


def test_jobs_of_one_status_in_either_spelling(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.jobs = [job("a", "RUNNING"), job("b", "DEPLOY_FAILED"), job("c", "COMPLETED")]

    result = cli("jobs", "--status", "running", "--status", "TRAINING_JOB_DEPLOY_FAILED", "-o", "json")

    assert {each["id"] for each in json.loads(result.out)} == {"a", "b"}
    assert result.err == ""
    searches = [asked.body for asked in stranger.asked if asked.path.endswith("/search")]
    assert set(searches[-1]["statuses"]) == {"TRAINING_JOB_RUNNING", "TRAINING_JOB_DEPLOY_FAILED"}


def test_jobs_of_a_project_by_id_or_by_name(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.projects = [project(), project("proj2", "whisper")]
    stranger.jobs = [job("a"), job("b", training_project_id="proj2")]

    by_name = json.loads(cli("jobs", "--project", "whisper", "-o", "json").out)
    by_id = json.loads(cli("jobs", "--project", "proj2", "-o", "json").out)

    assert [each["id"] for each in by_name] == [each["id"] for each in by_id] == ["b"]


def test_a_project_name_that_two_teams_have_must_be_told_apart(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.projects = [project(team_name="A"), project("proj2", team_name="B")]

    result = cli("jobs", "--project", "llama-sft")

    assert result.code == 2
    assert "proj1 (team A)" in result.err
    assert "proj2 (team B)" in result.err


def test_jobs_table_shows_unknown_statuses_and_survives_what_is_missing(
    cli: RunCli, stranger: FakeBaseten
) -> None:
    bare = {"id": "bare", "current_status": "TRAINING_JOB_HIBERNATING"}
    stranger.jobs = [bare | {"training_project_id": "proj1"}, job("full", "RUNNING", node_count=4)]

    result = cli("jobs")

    assert result.code == 0
    header, full, strange = result.out.splitlines()
    assert header.startswith("STATUS")
    assert "4×8 H100" in full
    assert "? hibernating" in strange


def test_server_text_in_a_table_is_inert(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.jobs = [
        job(name="\x1b[31mred\x1b[0m\x1b]0;title\x07", error_message="two\nlines [bold]x[/bold]")
    ]

    result = cli("jobs")

    assert "\x1b" not in result.out
    assert "\x07" not in result.out
    assert len(result.out.splitlines()) == 2
    assert "[bold]x[/bold]" in result.out


def test_one_job_as_json_is_one_object(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.jobs = [job("abc", "FAILED", error_message="exit code 3", colour="blue")]

    result = cli("job", "abc", "-o", "json")

    assert result.code == 0
    found = json.loads(result.out)
    assert (found["id"], found["error_message"], found["colour"]) == ("abc", "exit code 3", "blue")


def test_one_job_as_text_says_what_there_is_and_where_to_look(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.jobs = [job("abc", "RUNNING", node_count=2, user={"email": "kim@example.com"})]

    out = cli("job", "abc").out

    for words in ("● running", "2×8 H100", "llama-sft (proj1)", "kim@example.com"):
        assert words in out
    assert f"{stranger.url}/training/proj1/logs/abc" in out


def test_json_stays_parsable_while_waits_are_remarked(cli: RunCli, stranger: FakeBaseten) -> None:
    answers = iter([Answer(503, {"message": "back soon"}, {"Retry-After": "0"})])
    stranger.on(
        "GET", "/v1/training_projects", lambda asked: next(answers, Answer(body={"training_projects": []}))
    )

    result = cli("projects", "-o", "json")

    assert result.code == 0
    assert json.loads(result.out) == []
    assert "can't list the projects: " in result.err
    assert "back soon (503); retrying in 0.0 s" in result.err


def test_a_problem_that_lasts_is_remarked_once(cli: RunCli, stranger: FakeBaseten) -> None:
    words = iter(["back soon", "back soon", "nearly there", "nearly there"])
    stranger.on(
        "GET",
        "/v1/training_projects",
        lambda asked: next(
            (Answer(503, {"message": word}, {"Retry-After": "0"}) for word in words),
            Answer(body={"training_projects": []}),
        ),
    )

    result = cli("projects", "-o", "json")

    assert result.code == 0
    assert re.findall(r"(\w+ \w+) \(503\); retrying", result.err) == ["back soon", "nearly there"]


def test_method_route_and_request_id_are_details_of_an_error(cli: RunCli, stranger: FakeBaseten) -> None:
    refused = Answer(400, {"message": "only while it waits"}, {"X-Request-Id": "req-1"})
    stranger.on("PATCH", "/v1/.*", refused)

    plain = cli("update", "job1", "--priority", "3")
    detailed = cli("update", "job1", "--priority", "3", environ={**stranger.environ(), "BT_TUI_DEBUG": "1"})

    host = stranger.url.removeprefix("http://")
    assert plain.code == 1
    assert plain.err == f"bt-tui: can't update job job1: {host}: only while it waits (400)\n"
    assert "PATCH /v1/training_projects/proj1/jobs/job1, sent 1 times, status 400, id req-1" in detailed.err


def test_remote_may_stand_before_and_after_the_command(
    cli: RunCli, stranger: FakeBaseten, clean_environ: dict[str, str]
) -> None:
    from pathlib import Path

    trussrc = Path(clean_environ["USER_TRUSSRC_PATH"])
    trussrc.write_text(
        f"[here]\nremote_provider=baseten\nremote_url={stranger.url}\napi_key={stranger.key}\n"
    )

    assert cli("--remote", "here", "projects", environ={}).code == 0
    assert cli("projects", "--remote", "here", environ={}).code == 0
    missing = cli("projects", "--remote", "elsewhere", environ={})
    assert missing.code == 2
    assert "here" in missing.err


def test_an_empty_list_is_no_error_and_says_so_to_the_person_alone(
    cli: RunCli, stranger: FakeBaseten
) -> None:
    stranger.projects, stranger.jobs = [], []

    for command in ("projects", "jobs"):
        assert cli(command, "-o", "json").out == "[]\n"
        table = cli(command)
        assert (table.code, len(table.out.splitlines())) == (0, 1)
        assert f"no {command}" in table.err
