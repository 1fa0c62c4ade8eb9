"""Interactive sessions, changes to waiting jobs, and secrets, which may be typed or piped in."""

import io
import sys
from collections.abc import Callable

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, job
from support.terminal import AtTerminal

JOB_PATH = "/v1/training_projects/proj1/jobs/job1"
FAR_AWAY, LONG_AGO = "2199-01-01T00:00:00Z", "2020-01-01T00:00:00Z"
CHANGE = "--update-timeout 60 --update-trigger on_demand"


def code(replica: str, expires_at: str = FAR_AWAY) -> object:
    told = {"session_id": "s1", "replica_id": replica, "auth_code": f"CODE-{replica}", "tunnel_name": None}
    return told | {"auth_url": "https://x/\x1b]0;evil\x07", "expires_at": expires_at}


def serve_codes(baseten: FakeBaseten, *codes: object) -> None:
    baseten.on("GET", JOB_PATH + "/auth_codes", Answer({"auth_codes": codes or None}))


@pytest.mark.proves("docs/commands.md", "`workstation`")
def test_each_replica_with_its_code_and_end(cli: RunCli, baseten: FakeBaseten) -> None:
    serve_codes(baseten)
    assert cli("sessions job1 -o json").out == "[]\n"
    assert "no interactive session" in cli("sessions job1").err
    cli("sessions job1 --update-timeout 60", code=7)
    serve_codes(baseten, code("g01r0", LONG_AGO), code("g00r0"))
    result = cli("sessions job1")
    _header, first, second = result.out.splitlines()
    assert first.split()[:3] == ["g00r0", "CODE-g00r0", "in"]
    assert second.split()[:3] == ["g01r0", "CODE-g01r0", "ended"]
    assert "\x1b" not in result.out
    codes = cli("sessions job1 -o json").json
    _, found = sorted(codes, key=lambda each: each["replica_id"], reverse=True)
    assert (found["auth_code"], found["session_id"]) == ("CODE-g00r0", "s1")
    assert cli("isession --job-id job1 --format JSON").json == {"auth_codes": codes}


def test_a_session_of_several_replicas_is_changed_once(cli: RunCli, baseten: FakeBaseten) -> None:
    serve_codes(baseten, code("g00r0"), code("g01r0"))
    answer = {"interactive_session": {"id": "s1"}, "message": "Extended"}
    baseten.on("PATCH", JOB_PATH + "/interactive_sessions/s1", Answer(answer))
    commands = (
        f"sessions job1 {CHANGE}",
        f"isession --job-id job1 {CHANGE} --format json",
        "update_session job1 --timeout-minutes 60 --trigger ON_DEMAND",
    )
    for command in commands:
        result = cli(command)
        assert "Extended" in result.err
        if "json" in command:
            assert result.json["update_messages"] == ["Extended"]
    changes = [asked.body for asked in baseten.asked if asked.method == "PATCH"]
    assert changes == [{"timeout_minutes": 60, "trigger": "on_demand"}] * len(commands)


def test_the_priority(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("job1", "PENDING")]
    baseten.on("PATCH", JOB_PATH, Answer({"training_job": job("job1", "PENDING", priority=0)}))
    assert cli("update --job-id job1 --priority 0 -o json").json["priority"] == 0
    assert baseten.asked[-1].body == {"priority": 0}
    assert "priority" in cli("update job1 --priority 0").out


NAMES = (
    {"id": "1", "name": "hf_access_token", "created_at": LONG_AGO, "team_name": "vision"},
    {"id": "2", "name": "other", "created_at": LONG_AGO, "team_name": "vision", "value": "never-shown"},
)


@pytest.mark.proves("docs/commands.md", "`workstation`")
def test_the_names_of_secrets(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.on("GET", "/v1/secrets", Answer({"secrets": NAMES}))
    table, document = cli("secrets").out, cli("secrets -o json")
    assert "hf_access_token" in table
    assert [each["name"] for each in document.json] == ["hf_access_token", "other"]
    assert "never-shown" not in table + document.out


def test_of_a_team_by_name_or_id(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.on("GET", "/v1/teams", Answer({"teams": [{"id": "t1", "name": "vision"}]}))
    baseten.on("GET", "/v1/teams/t1/secrets", Answer({"secrets": []}))
    baseten.on("DELETE", "/v1/teams/t1/secrets/name", Answer({"name": "name"}))
    for command in ("secrets --team {}", "secrets --team {} delete name --yes"):
        for team, code in (("vision", 0), ("t1", 0), ("nosuch", 7)):
            cli(command.format(team), code=code)


def test_a_value_is_piped_in(cli: RunCli, baseten: FakeBaseten, pipe_in: Callable[[str], None]) -> None:
    baseten.on("POST", "/v1/secrets", Answer(NAMES[0]))
    pipe_in("\n")
    cli("secrets set name", code=2)
    pipe_in("line one\nsecret-value-9\n")
    result = cli("secrets set hf_access_token")
    assert baseten.asked[-1].body == {"name": "hf_access_token", "value": "line one\nsecret-value-9"}
    assert "secret-value-9" not in result.out + result.err


def test_one_is_deleted_after_agreeing(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.on("DELETE", "/v1/secrets/name", Answer({"name": "name"}))
    cli("secrets delete name", code=2)
    cli("secrets delete name --yes")
    assert [asked.method for asked in baseten.asked] == ["DELETE"]


WIPE = b"\x15"


Start = Callable[..., AtTerminal]


def test_a_secret_whose_bytes_are_not_understood_is_not_kept(
    at_terminal: Start, baseten: FakeBaseten
) -> None:
    baseten.on("POST", "/v1/secrets", Answer({"name": "s", "created_at": "2025-03-01T12:00:00Z"}))
    with at_terminal("secrets", "set", "s") as someone:
        bad, good = b"pass\xf0\x9fword\r", WIPE + b"password\r"
        someone.answers(("value of s, hidden:", bad), ("not UTF-8", good))
        assert someone.end() == 0
    assert [asked.body["value"] for asked in baseten.asked if asked.method == "POST"] == ["password"]


def test_a_yes_or_no_is_asked_again(at_terminal: Start, baseten: FakeBaseten) -> None:
    with at_terminal("secrets", "delete", "s") as someone:
        someone.answers(("[y/N]", b"\xe9\r"), ("[y/N]", b"n\r"))
        assert someone.end() == 130
    assert baseten.asked == []


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_what_is_piped_in_must_be_utf_8(
    cli: RunCli, baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch, errors: str
) -> None:
    for command in ("secrets set s", "login --api-key-stdin"):
        piped = io.TextIOWrapper(io.BytesIO(b"pass\xe9word\n"), encoding="utf-8", errors=errors)
        monkeypatch.setattr(sys, "stdin", piped)
        result = cli(command, code=2)
        assert (result.out, baseten.asked) == ("", [])
        assert "standard input is not UTF-8" in result.err
