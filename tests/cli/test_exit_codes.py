"""Each way to fail has its own exit code and says what to do about it."""

import pytest

from support.cli import RunCli
from support.stranger import FakeBaseten


def test_no_remote_at_all_names_the_three_ways(cli: RunCli) -> None:
    result = cli("jobs", environ={})
    assert (result.code, result.out) == (6, "")
    for words in ("BASETEN_API_KEY", ".trussrc", "bt-tui demo"):
        assert words in result.err


def test_a_wrong_key_names_the_remote_and_where_the_key_came_from(cli: RunCli, stranger: FakeBaseten) -> None:
    result = cli("jobs", environ=stranger.environ(key="wrong-key-77"))
    assert result.code == 6
    for words in ("<environment>", "BASETEN_API_KEY", "this key opens nothing here"):
        assert words in result.err
    assert "wrong-key-77" not in result.out + result.err


def test_our_own_faults_are_a_sentence_and_the_details_are_one_variable_away(
    cli: RunCli, stranger: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_named: object) -> str:
        raise ZeroDivisionError("nobody saw this coming")

    monkeypatch.setattr("tui.commands.jobs.listing.print_list", broken)
    brief = cli("jobs")
    detailed = cli("jobs", environ=stranger.environ() | {"BT_TUI_DEBUG": "1"})
    assert brief.code == detailed.code == 1
    assert "nobody saw this coming" in brief.err and "BT_TUI_DEBUG=1" in brief.err
    assert ("Traceback" in brief.err, "Traceback" in detailed.err) == (False, True)


def test_help_lists_every_exit_code_and_the_examples(cli: RunCli) -> None:
    result = cli("-h")
    assert result.code == 0
    for code in ("0", "1", "2", "3", "4", "5", "6", "7", "8", "130"):
        assert f" {code}  " in result.out
    assert "bt-tui logs JOB_ID --follow" in result.out
    assert cli("logs -h").out.startswith("Usage: bt-tui logs")
    version = cli("--version")
    assert (version.code, version.out.startswith("bt-tui ")) == (0, True)
