"""Every command: its stdout is its format alone, and a read-only session changes nothing."""

import csv
import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from whole_platform import NOISE, furnished

from support.cli import Result, RunCli
from support.every_command import (
    CHANGING,
    ENDED,
    JOB,
    MACHINE_FORMATS,
    PROJECT,
    READING,
    WITHOUT_FORMAT,
    commands,
    format_option_of,
    formats_of,
)
from support.faulty import FaultyServer
from support.served_platform import KEY
from tui.commands.support.output import ExitCode

ASKS_NOBODY = frozenset({"remotes", "config show", "emulator status", "init"})
STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
OUTCOMES = {"health": (0, 10, 11), "guard": (0, 10, 11), "emulator status": (7,)}
"""What a command that works may exit with, if it is not 0 alone: these tell what they found."""


@pytest.fixture
def noisy_stderr() -> Iterator[None]:
    """Whatever anything logs goes to stderr as well, as with a debugging script around."""

    class ToStderr(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            sys.stderr.write(self.format(record) + "\n")

    root, handler = logging.getLogger(), ToStderr()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield
    root.removeHandler(handler)
    root.setLevel(before)


def check(text: str, output_format: str) -> None:
    """It can be read as that; only ``raw`` may hold what moves a terminal, as it is no terminal's."""
    if output_format == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        assert len({len(row) for row in rows if row}) == 1, "a header and rows of the same columns"
    elif output_format == "ndjson":
        assert all(isinstance(json.loads(each), dict) for each in text.splitlines())
    elif output_format == "json":
        assert isinstance(json.loads(text), dict | list)
    assert output_format == "raw" or not STEERING.search(text)


def runs(table: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [
        (words, output_format)
        for words, command in commands()
        if words in table
        for output_format in formats_of(command)
    ]


@pytest.mark.proves("README.md", "Without a screen")
def test_no_command_and_no_format_is_left_out() -> None:
    formats = {words: formats_of(command) for words, command in commands()}
    assert {words for words, found in formats.items() if found} == {*READING, *CHANGING}
    assert {words for words, found in formats.items() if not found} == set(WITHOUT_FORMAT), "no -o, and why"
    assert all(MACHINE_FORMATS & set(found) for found in formats.values() if found)


def test_official_names_of_tables_are_the_default_format() -> None:
    for _words, command in commands():
        option = format_option_of(command)
        if option is not None and isinstance(option.type, click.Choice):
            context = click.Context(command)
            for name in ("cli-table", "text", "CLI-TABLE"):
                assert option.process_value(context, name) == option.default


def check_streams(result: Result, words: str, output_format: str) -> None:
    assert result.code in OUTCOMES.get(words, (0,)), result.err
    check(result.out, output_format)
    assert words in ASKS_NOBODY or "; retrying" in result.err
    assert "\x1b" not in result.err
    assert KEY not in result.out + result.err


@pytest.mark.usefixtures("noisy_stderr")
@pytest.mark.parametrize(("words", "output_format"), runs(READING))
@pytest.mark.proves("docs/commands.md", "Output formats")
def test_what_reads_prints_its_format_alone(cli: RunCli, world: Any, words: Any, output_format: Any) -> None:
    arguments = (*words.split(), *READING[words], "-o", output_format)
    narrow = cli(*arguments, environ=world | {"COLUMNS": "20"}, code=None)
    check_streams(narrow, words, output_format)
    if output_format == "table":
        wide = cli(*arguments, environ=world | {"COLUMNS": "500"}, code=None)
        assert len(narrow.out.splitlines()) == len(wide.out.splitlines()), "as wide as it needs in a pipe"


@pytest.mark.usefixtures("noisy_stderr", "code")
@pytest.mark.parametrize(("words", "output_format"), runs(CHANGING))
def test_what_changes_something_prints_its_format_alone(
    cli: RunCli, faulty: Any, tmp_path: Path, words: Any, output_format: Any
) -> None:
    (tmp_path / "platform").mkdir()
    with furnished(faulty, tmp_path / "platform") as environ:
        faulty.set_faults(NOISE)
        arguments = (*words.split(), *CHANGING[words], "-o", output_format)
        result = cli(*arguments, environ=environ | {"COLUMNS": "20"}, code=None)
        check_streams(result, words, output_format)


def test_what_only_tells_leaves_stdout_empty(cli: RunCli, world: Any, trussrc: Path) -> None:
    trussrc.write_text("[one]\napi_key = k\n")
    for line, code in (
        ("config validate", 0),
        ("secrets delete hf --yes", 7),
        ("logout --remote one", 0),
        ("emulator stop", 0),
    ):
        result = cli(line, environ=world, code=code)
        assert (result.out, bool(result.err)) == ("", True)


@pytest.mark.parametrize("words", [*READING, "completion", "ssh-config", "checkpoints snippet"])
def test_a_reader_that_leaves_at_once_is_no_error(
    cli: RunCli, world: Any, monkeypatch: pytest.MonkeyPatch, words: Any
) -> None:
    others = {"completion": ("bash",), "checkpoints snippet": ("--job-id", JOB), "ssh-config": ()}
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as left:
        monkeypatch.setattr(sys, "stdout", left)
        result = cli(*words.split(), *(READING | others)[words], environ=world, code=None)
    assert result.code in OUTCOMES.get(words, (0,)), result.err
    assert "Traceback" not in result.err


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
    done = cli(*words, environ=world | {"BT_TUI_READONLY": "true", "BT_TUI_DEBUG": ""}, code=ExitCode.USAGE)
    assert done.out == "", done.err
    assert "read-only by environment BT_TUI_READONLY" in done.err
    assert changes_of(faulty) == []


def test_the_setting_that_forbids_it_is_named(cli: RunCli, world: Any, faulty: Any, tmp_path: Path) -> None:
    faulty.set_faults()
    settings = tmp_path / "config.toml"
    settings.write_text('remote = "lab"\nreadonly = true\n')
    by_file = world | {"BT_TUI_CONFIG": str(settings)}
    assert f"read-only by {settings}:2" in cli("stop", JOB, environ=by_file, code=2).err
    assert "read-only by flag --readonly" in cli("--readonly", "stop", JOB, environ=world, code=2).err
    assert JOB in cli("--readonly jobs -o json", environ=world).out
    assert changes_of(faulty) == []
    assert "read-only" not in cli("stop", JOB, environ=by_file | {"BT_TUI_READONLY": "false"}).err
    assert changes_of(faulty) == [f"POST {JOB}/stop"]
