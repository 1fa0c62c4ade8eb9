"""The group of commands: found by docstrings, hidden or listed, and the spellings of the official CLIs."""

import click

from api_client.vocabulary import JobStatus, is_finished
from tui.cli import cli
from tui.commands.support.catalogue import OFFICIAL, command_entries, translated, walk
from tui.commands.support.output import OUTCOMES


def test_every_docstring_line_names_a_command_of_its_module() -> None:
    context = click.Context(cli)
    assert {"jobs", "push", "demo", "ssh-proxy"} < command_entries().keys()
    for name, listed in command_entries().items():
        command = cli.get_command(context, name)
        assert command is not None
        assert (command.name, command.hidden, bool(command.help)) == (name, not listed.help, True)


def test_every_official_spelling_is_a_command_and_not_listed() -> None:
    known = {words for words, _command in walk(cli)}
    for phrase, spelling in OFFICIAL.items():
        command_words = spelling.ours.partition(" --")[0]
        assert command_words in known or f"{command_words} list" in known, phrase
        assert phrase not in command_entries()


def test_tail_with_a_number_shows_the_last_lines() -> None:
    assert translated(["logs", "abc", "--tail", "20"])[0] == ["logs", "abc", "--last", "20"]
    assert translated(["train", "logs", "--tail", "abc1234"])[0] == ["logs", "--tail", "abc1234"]
    assert translated(["push", "--tail", "20"])[0] == ["push", "--tail", "20"]


def test_words_after_train_are_translated_once() -> None:
    assert translated(["train", "deploy", "--yes"]) == (["deploy_checkpoints", "--yes"], None)
    assert translated(["train", "checkpoint", "urls"])[0] == ["checkpoints", "urls"]
    assert translated(["jobs", "train", "deploy"])[0] == ["jobs", "train", "deploy"]


def test_every_final_status_has_its_exit_code() -> None:
    assert set(OUTCOMES) == {status for status in JobStatus if is_finished(status)}
