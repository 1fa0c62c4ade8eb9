"""The group of commands: found by docstrings, hidden or listed, and the spellings of the official CLIs."""

import click

from api_client.vocabulary import JobStatus, is_finished
from tui.cli import cli
from tui.commands.support.catalogue import (
    OWN_LINE_OF_OFFICIAL_COMMAND,
    command_entries,
    translate_official,
    walk_commands,
)
from tui.commands.support.output import EXIT_CODE_OF_STATUS


def test_every_docstring_line_names_a_command_of_its_module() -> None:
    context = click.Context(cli)
    assert {"jobs", "push", "demo", "ssh-proxy"} < command_entries().keys()
    for name, listed in command_entries().items():
        command = cli.get_command(context, name)
        assert command is not None
        assert (command.name, command.hidden, bool(command.help)) == (name, not listed.help, True)


def test_every_official_spelling_is_a_command_and_not_listed() -> None:
    known = {words for words, _command in walk_commands(cli)}
    for phrase, own_line in OWN_LINE_OF_OFFICIAL_COMMAND.items():
        command_words = own_line.words.partition(" --")[0]
        assert command_words in known or f"{command_words} list" in known, phrase
        assert phrase not in command_entries()


def test_tail_with_a_number_shows_the_last_lines() -> None:
    assert translate_official(["logs", "abc", "--tail", "20"])[0] == ["logs", "abc", "--last", "20"]
    assert translate_official(["train", "logs", "--tail", "abc1234"])[0] == ["logs", "--tail", "abc1234"]
    assert translate_official(["push", "--tail", "20"])[0] == ["push", "--tail", "20"]


def test_words_after_train_are_translated_once() -> None:
    assert translate_official(["train", "deploy", "--yes"]) == (["deploy_checkpoints", "--yes"], None)
    assert translate_official(["train", "checkpoint", "urls"])[0] == ["checkpoints", "urls"]
    assert translate_official(["jobs", "train", "deploy"])[0] == ["jobs", "train", "deploy"]


def test_every_final_status_has_its_exit_code() -> None:
    assert set(EXIT_CODE_OF_STATUS) == {status for status in JobStatus if is_finished(status)}
