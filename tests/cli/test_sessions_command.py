"""Interactive sessions, changes to waiting jobs, and secrets, against a stranger's server."""

import json
from collections.abc import Callable

import pytest
from conftest import RunCli

from support.stranger import Answer, FakeBaseten, job

JOB_PATH = "/v1/training_projects/proj1/jobs/job1"
FAR_AWAY, LONG_AGO = "2999-01-01T00:00:00Z", "2020-01-01T00:00:00Z"


def code(replica: str, expires_at: str | None = FAR_AWAY, **more: object) -> dict[str, object]:
    return {
        "session_id": "s1",
        "replica_id": replica,
        "auth_code": f"CODE-{replica}",
        "auth_url": "https://microsoft.com/devicelogin",
        "expires_at": expires_at,
        "tunnel_name": None,
    } | more


def test_each_replica_with_its_code_and_end(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.on(
        "GET",
        JOB_PATH + "/auth_codes",
        Answer(body={"auth_codes": [code("g01r0", LONG_AGO), code("g00r0")]}),
    )

    result = cli("sessions", "job1")

    _header, first, second = result.out.splitlines()
    assert first.split()[:3] == ["g00r0", "CODE-g00r0", "in"]
    assert second.split()[:3] == ["g01r0", "CODE-g01r0", "ended"]


@pytest.mark.parametrize("words", [["sessions", "job1"], ["isession", "--job-id", "job1"]])
@pytest.mark.parametrize("flag", ["-o", "--format"])
def test_json_has_the_api_s_fields(cli: RunCli, stranger: FakeBaseten, words: list[str], flag: str) -> None:
    stranger.on("GET", JOB_PATH + "/auth_codes", Answer(body={"auth_codes": [code("g00r0")]}))

    [found] = json.loads(cli(*words, flag, "json").out)

    assert (found["auth_code"], found["replica_id"], found["session_id"]) == ("CODE-g00r0", "g00r0", "s1")


def test_none(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.on("GET", JOB_PATH + "/auth_codes", Answer(body={"auth_codes": None}))

    result = cli("sessions", "job1", "-o", "json")

    assert (result.code, json.loads(result.out)) == (0, [])
    assert "no interactive session" in cli("sessions", "job1").err


@pytest.mark.parametrize(
    "words",
    [
        ["sessions", "job1", "--update-timeout", "60", "--update-trigger", "on_demand"],
        ["isession", "--job-id", "job1", "--update-timeout", "60", "--update-trigger", "on_demand"],
        ["update_session", "job1", "--timeout-minutes", "60", "--trigger", "on_demand"],
    ],
)
def test_a_session_of_several_replicas_is_changed_once(
    cli: RunCli, stranger: FakeBaseten, words: list[str]
) -> None:
    both = [code("g00r0"), code("g01r0")]
    stranger.on("GET", JOB_PATH + "/auth_codes", Answer(body={"auth_codes": both}))
    answer = {"interactive_session": {"id": "s1"}, "message": "Extended"}
    stranger.on("PATCH", JOB_PATH + "/interactive_sessions/s1", Answer(body=answer))

    result = cli(*words)

    assert result.code == 0
    assert "Extended" in result.err
    changes = [asked for asked in stranger.asked if asked.method == "PATCH"]
    assert [asked.body for asked in changes] == [{"timeout_minutes": 60, "trigger": "on_demand"}]


def test_what_cannot_be_changed(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.on("GET", JOB_PATH + "/auth_codes", Answer(body={"auth_codes": []}))

    assert cli("sessions", "job1", "--update-timeout", "60").code == 7


def test_hostile_codes_are_harmless(cli: RunCli, stranger: FakeBaseten) -> None:
    hostile = code("g00r0", auth_code="\x1b]0;evil\x07", auth_url="https://x/\x1b[31m")
    stranger.on("GET", JOB_PATH + "/auth_codes", Answer(body={"auth_codes": [hostile]}))

    assert "\x1b" not in cli("sessions", "job1").out


@pytest.mark.parametrize("words", [["job1"], ["--job-id", "job1"]])
def test_the_priority(cli: RunCli, stranger: FakeBaseten, words: list[str]) -> None:
    stranger.jobs = [job("job1", "PENDING")]
    stranger.on("PATCH", JOB_PATH, Answer(body={"training_job": job("job1", "PENDING", priority=7)}))

    result = cli("update", *words, "--priority", "7", "-o", "json")

    assert json.loads(result.out)["priority"] == 7
    assert stranger.asked[-1].body == {"priority": 7}
    assert "priority" in cli("update", *words, "--priority", "7").out


def test_zero_is_a_priority(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.on("PATCH", JOB_PATH, Answer(body={"training_job": job()}))

    assert cli("update", "job1", "--priority", "0").code == 0
    assert stranger.asked[-1].body == {"priority": 0}


def test_a_refusal_is_the_server_s(cli: RunCli, stranger: FakeBaseten) -> None:
    refusal = Answer(400, {"code": "VALIDATION_ERROR", "message": "the job waits no more"})
    stranger.on("PATCH", JOB_PATH, refusal)

    result = cli("update", "job1", "--priority", "7")

    assert result.code == 1
    assert "the job waits no more" in result.err


NAMES = (
    {"id": "1", "name": "hf_access_token", "created_at": LONG_AGO, "team_name": "vision"},
    {"id": "2", "name": "other", "created_at": LONG_AGO, "team_name": "vision", "value": "never-shown"},
)


def test_their_names(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.on("GET", "/v1/secrets", Answer(body={"secrets": NAMES}))

    table, document = cli("secrets").out, cli("secrets", "-o", "json").out
    assert "hf_access_token" in table
    assert [each["name"] for each in json.loads(document)] == ["hf_access_token", "other"]
    assert "never-shown" not in table + document


@pytest.mark.parametrize("team", ["vision", "t1"])
def test_of_a_team(cli: RunCli, stranger: FakeBaseten, team: str) -> None:
    stranger.on("GET", "/v1/teams", Answer(body={"teams": [{"id": "t1", "name": "vision"}]}))
    stranger.on("GET", "/v1/teams/t1/secrets", Answer(body={"secrets": []}))

    assert cli("secrets", "--team", team).code == 0
    assert cli("secrets", "--team", "nosuch").code == 7


def test_a_value_comes_by_standard_input_and_goes_nowhere_else(
    cli: RunCli, stranger: FakeBaseten, pipe_in: Callable[[str], None]
) -> None:
    stranger.on("POST", "/v1/secrets", Answer(body=NAMES[0]))
    pipe_in("line one\nsecret-value-9\n")

    result = cli("secrets", "set", "hf_access_token")

    assert result.code == 0
    assert stranger.asked[-1].body == {"name": "hf_access_token", "value": "line one\nsecret-value-9"}
    assert "secret-value-9" not in result.out + result.err


def test_without_a_value(cli: RunCli, pipe_in: Callable[[str], None]) -> None:
    pipe_in("\n")

    assert cli("secrets", "set", "name").code == 2


def test_one_is_deleted_after_agreeing(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.on("DELETE", "/v1/secrets/name", Answer(body={"name": "name"}))

    assert cli("secrets", "delete", "name").code == 2
    assert cli("secrets", "delete", "name", "--yes").code == 0
    assert [asked.method for asked in stranger.asked] == ["DELETE"]
