"""The table for people who come from the truss CLI: what it names is there."""

import re
from pathlib import Path

import click
import pytest

from tui.cli import cli as program

PAGE = Path(__file__).parents[2] / "docs" / "truss.md"
ROW = re.compile(r"^\| `(?P<theirs>[^`]+)` \| (?P<ours>.+?) \| (?P<difference>.*?) ?\|$", re.MULTILINE)
NAMED = re.findall(r"`bt-tui ([^`]+)`", PAGE.read_text())
OFFICIAL = (
    "push recreate logs stop view metrics deploy_checkpoints download get_checkpoint_urls init"
    " cache checkpoints update update_session isession capacity workstation"
)


@pytest.mark.parametrize("words", sorted(set(NAMED)))
def test_every_command_that_is_named_is_there(words):
    command: click.Command = program
    for word in words.split():
        if word.startswith("--"):
            names = [name for option in command.params for name in option.opts]
            assert word in names, f"{command.name} has no {word}"
        elif isinstance(command, click.Group):
            found = command.commands.get(word)
            assert found is not None, f"{command.name} has no command {word}"
            command = found


@pytest.mark.parametrize("word", OFFICIAL.split())
def test_every_official_command_has_a_row(word):
    rows = [row["theirs"].split() for row in ROW.finditer(PAGE.read_text())]
    assert any(words[:2] == ["train", word] for words in rows)


def test_a_row_without_a_command_says_what_to_do():
    for row in list(ROW.finditer(PAGE.read_text()))[1:]:
        assert "bt-tui" in row["ours"] or "not there" in row["difference"]
