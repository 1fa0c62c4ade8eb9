"""Every command's stdout is its format alone: whatever the width, the colours, the noise on stderr."""

from __future__ import annotations

import csv
import io
import json
import subprocess

import click
import pytest

from support.stranger import job, line, project
from support.stranger_runs import serve_capacity
from tui.cli import cli as program

WIDTHS = ("20", "500")
MACHINE_FORMATS = frozenset({"json", "csv", "ndjson"})
READING = {
    "projects": (),
    "jobs": (),
    "job": ("job1",),
    "view": (),
    "logs": ("job1",),
    "metrics": ("--job-id", "job1"),
    "progress": ("job1",),
    "health": ("job1",),
    "compare": ("job1", "job2"),
    "capacity view": (),
    "checkpoints list": ("--job-id", "job1"),
    "cache summarize": ("llama-sft",),
    "sessions": ("--job-id", "job1"),
    "secrets": (),
    "remotes": (),
    "config show": (),
    "emulator status": (),
    "init": ("--list-examples",),
    "wait": ("job1",),
}
"""Commands that only read, with what they need; the others answer in the tests of their own."""


def formats() -> list[tuple[str, str]]:
    found = []
    for words in READING:
        command: click.Command = program
        for word in words.split():
            assert isinstance(command, click.Group)
            command = command.commands[word]
        for option in command.params:
            if option.name == "output_format" and isinstance(option.type, click.Choice):
                found += [
                    (words, str(one)) for one in option.type.choices if one in ("json", "csv", "ndjson")
                ]
    return found


@pytest.fixture
def world(stranger):
    stranger.projects = [project()]
    stranger.jobs = [job("job1", name="grüße\x1b[31m\n你好"), job("job2")]
    stranger.logs["job1"] = [line("{'loss': 1.5, 'step': 1}"), line("two\x1b]0;x\x07")]
    serve_capacity(stranger)
    return stranger


def parse(text: str, output_format: str) -> None:
    if output_format == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        assert len({len(row) for row in rows if row}) <= 1
    elif output_format == "ndjson":
        for each in text.splitlines():
            json.loads(each)
    else:
        json.loads(text)


@pytest.mark.parametrize(("words", "output_format"), formats())
def test_stdout_is_its_format_alone_at_any_width(cli, world, words, output_format):
    written = set()
    for width in WIDTHS:
        environ = {**world.environ(), "COLUMNS": width, "NO_COLOR": "1", "BT_TUI_DEBUG": "1"}
        result = cli(*words.split(), *READING[words], "-o", output_format, environ=environ)
        if result.code not in (0, 7, 10, 11):
            pytest.fail(f"{words}: {result.code}: {result.err}")
        if result.out:
            parse(result.out, output_format)
        assert "\x1b" not in result.out + result.err
        written.add(len(result.out.splitlines()))
    assert len(written) == 1


@pytest.mark.parametrize("words", ["jobs", "remotes", "init"])
def test_a_reader_that_leaves_at_once_is_no_error(cli_process, world, words):
    with cli_process(*words.split(), *READING[words], "-o", "json") as process:
        process.stdout.close()
        code = process.wait(60)
        assert process.stderr is not None
        remarks = process.stderr.read()
    assert (code, "Traceback" in remarks) == (0, False)
    assert isinstance(process, subprocess.Popen)
