"""``--readonly``, ``BT_TUI_READONLY`` and ``readonly`` in the file: no command changes anything then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.cli import RunCli
from support.every_command import CHANGING, ENDED, JOB, PROJECT
from support.faulty import FaultyServer
from tui.commands.support.output import ExitCode

READS_BY_POST = "/v1/training_jobs/search"
CHANGES_HERE = ("download", "record", "checkpoints download", "init")
CHANGES = [(*words.split(), *given) for words, given in CHANGING.items() if words not in CHANGES_HERE] + [
    ("stop", "--all", "--yes"),
    ("delete", "--project", PROJECT, "--yes"),
    ("delete", JOB, ENDED, "--yes"),
    ("secrets", "delete", "hf", "--yes"),
]


def changes_of(faulty: FaultyServer) -> list[str]:
    asked = [each for each in faulty.layer.asked if each.method != "GET" and each.path != READS_BY_POST]
    return [f"{each.method} {each.path.rpartition('/jobs/')[2]}" for each in asked]


@pytest.mark.parametrize("words", CHANGES, ids=" ".join)
@pytest.mark.proves("README.md", "On your own workspace")
def test_no_command_changes_anything(cli: RunCli, world: Any, faulty: FaultyServer, words: Any) -> None:
    faulty.set_faults()
    done = cli(*words, environ=world | {"BT_TUI_READONLY": "true", "BT_TUI_DEBUG": ""})
    assert (done.code, done.out) == (ExitCode.USAGE, ""), done.err
    assert "read-only by environment BT_TUI_READONLY" in done.err
    assert changes_of(faulty) == []


def test_the_setting_that_forbids_it_is_named(cli: RunCli, world: Any, faulty: Any, tmp_path: Path) -> None:
    faulty.set_faults()
    settings = tmp_path / "config.toml"
    settings.write_text('remote = "lab"\nreadonly = true\n')
    by_file = world | {"BT_TUI_CONFIG": str(settings)}
    assert f"read-only by {settings}:2" in cli("stop", JOB, environ=by_file).err
    assert "read-only by flag --readonly" in cli("--readonly", "stop", JOB, environ=world).err
    assert JOB in cli("--readonly jobs -o json", environ=world).out
    assert changes_of(faulty) == []
    assert "read-only" not in cli("stop", JOB, environ=by_file | {"BT_TUI_READONLY": "false"}).err
    assert changes_of(faulty) == [f"POST {JOB}/stop"]
