"""Each way to fail has its own exit code and says what to do about it."""

import socket

import pytest

from support.cli import RunCli
from support.stranger import Answer, FakeBaseten, job


def test_no_remote_at_all_names_the_three_ways(cli: RunCli) -> None:
    result = cli("jobs", environ={})

    assert result.code == 6
    for words in ("BASETEN_API_KEY", ".trussrc", "bt-tui demo"):
        assert words in result.err
    assert result.out == ""


def test_a_wrong_key_names_the_remote_and_where_the_key_came_from(cli: RunCli, stranger: FakeBaseten) -> None:
    result = cli("jobs", environ=stranger.environ(key="wrong-key-77"))

    assert result.code == 6
    assert "<environment>" in result.err
    assert "BASETEN_API_KEY" in result.err
    assert "this key opens nothing here" in result.err
    assert "wrong-key-77" not in result.out + result.err


def test_a_key_that_the_server_echoes_is_not_printed(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.on(
        "GET", "/v1/training_projects", Answer(400, {"code": "BAD", "message": f"bad {stranger.key}"})
    )

    result = cli("projects")

    assert result.code == 1
    assert stranger.key not in result.out + result.err


def test_an_unreachable_server(cli: RunCli, stranger: FakeBaseten, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_client.http.retry.RetryPolicy.longest_delay_s", lambda *_arguments: 0.0)
    with socket.create_server(("127.0.0.1", 0)) as closed_soon:
        address = f"http://127.0.0.1:{closed_soon.getsockname()[1]}"
    environ = stranger.environ() | {"BASETEN_MANAGEMENT_API_URL_OVERRIDE": address}

    result = cli("jobs", "-o", "json", environ=environ)

    assert (result.code, result.out) == (8, "")
    assert "127.0.0.1" in result.err


def test_an_answer_that_is_no_json_is_one_line_on_stderr(cli: RunCli, stranger: FakeBaseten) -> None:
    html = Answer(200, b"<html>a proxy's page</html>", {"Content-Type": "text/html"})
    stranger.on("GET", "/v1/training_projects", html)

    result = cli("projects")

    assert result.code == 1
    assert "Traceback" not in result.err
    assert len(result.err.splitlines()) == 1


def test_our_own_faults_are_a_sentence_and_the_details_are_one_variable_away(
    cli: RunCli, stranger: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger.jobs = [job()]

    def broken(*_arguments: object, **_named: object) -> str:
        raise ZeroDivisionError("nobody saw this coming")

    monkeypatch.setattr("tui.commands.jobs.listing.print_list", broken)

    brief = cli("jobs")
    detailed = cli("jobs", environ=stranger.environ() | {"BT_TUI_DEBUG": "1"})

    assert brief.code == detailed.code == 1
    assert "nobody saw this coming" in brief.err
    assert "BT_TUI_DEBUG=1" in brief.err
    assert "Traceback" not in brief.err
    assert "Traceback" in detailed.err


def test_help_lists_every_exit_code_and_the_examples(cli: RunCli) -> None:
    result = cli("-h")

    assert result.code == 0
    for code in ("0", "1", "2", "3", "4", "5", "6", "7", "8", "130"):
        assert f" {code}  " in result.out
    assert "bt-tui logs JOB_ID --follow" in result.out
    assert cli("logs", "-h").out.startswith("Usage: bt-tui logs")


def test_version_names_the_program(cli: RunCli) -> None:
    result = cli("--version")

    assert result.code == 0
    assert result.out.startswith("bt-tui ")
