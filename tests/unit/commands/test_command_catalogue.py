"""The table of commands: each is where it says, and only the one that is named is imported."""

import click

from api_client.models.jobs import JobStatus, is_finished
from tui.cli import cli
from tui.commands.support.catalogue import OTHER_WORDS
from tui.commands.support.exit_codes import OUTCOMES


def test_other_words_are_found_and_in_no_list() -> None:
    context = click.Context(cli)
    assert all(isinstance(cli.get_command(context, word), click.Command) for word in OTHER_WORDS)
    listed = {name for name in cli.list_commands(context) if not cli.get_command(context, name).hidden}
    assert listed & OTHER_WORDS.keys() == set()
    assert {"jobs", "push", "demo"} < listed


def test_every_final_status_has_its_exit_code() -> None:
    assert set(OUTCOMES) == {status for status in JobStatus if is_finished(status)}
