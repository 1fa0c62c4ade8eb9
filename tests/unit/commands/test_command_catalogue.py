"""The table of commands: each is where it says, and only the one that is named is imported."""

from typing import Any

import click
import pytest

from api_client.models.jobs import JobStatus, is_finished
from tui.cli import cli
from tui.commands.support.catalogue import COMMANDS, OTHER_WORDS
from tui.commands.support.exit_codes import OUTCOMES


@pytest.mark.parametrize("name", [*COMMANDS, *OTHER_WORDS])
def test_each_command_is_found(name: Any) -> None:
    context = click.Context(cli)

    assert isinstance(cli.get_command(context, name), click.Command)


def test_other_words_are_in_no_list() -> None:
    context = click.Context(cli)

    listed = {name for name in cli.list_commands(context) if not cli.get_command(context, name).hidden}

    assert listed & OTHER_WORDS.keys() == set()
    assert {"jobs", "push", "demo"} < listed


def test_every_final_status_has_its_exit_code() -> None:
    assert set(OUTCOMES) == {status for status in JobStatus if is_finished(status)}
