"""Every text of every model means harm: it gets out as text alone, on any screen, from any command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hostile_answers import HARM, MARK, HostileServer, answer_of, hidden_in, obeyed, refusing
from raw_terminal import DrawnTerminal

from api_client.routes import ROUTES, Route
from support.every_command import IN_EXAMPLES, commands, example_of, formats_of
from support.fake_baseten import FakeBaseten
from tui.cli import main

SHOWN = f"[blink]{MARK}"
"""What is left of the harm where it is shown: markup, as text."""

ESCAPE = "\x1b"
HOME = "S sort"
DETAILS = "TRAINING_JOB_RUNNING"
"""The status as only Details spells it; what follows an endless message there is out of sight."""

A_ROW = "2×1"
"""The hardware of a job, in its row."""

WAYS = (
    ("\r", "GPU memory", HOME),
    ("2", "Log all nodes", "GPU memory"),
    ("3", "layout", "Log all nodes"),
    ("4", "1 checkpoint", "layout"),
    ("\r", "preview", "1 checkpoint"),
    (ESCAPE, "1 checkpoint", "preview"),
    ("5", DETAILS, "1 checkpoint"),
    ("C", "copy path", DETAILS),
    (ESCAPE, DETAILS, "copy path"),
    (ESCAPE, HOME, DETAILS),
    ("Q", "by type", HOME),
    (ESCAPE, HOME, "all types"),
    ("s", "Keep (n)", None),
    ("n", HOME, "Keep (n)"),
    (" j ", "2 marked", None),
    ("c", "Compare 2 jobs", HOME),
    (ESCAPE, HOME, "Compare 2 jobs"),
    ("d", "Deploy checkpoints", HOME),
    (ESCAPE, HOME, "Deploy checkpoints"),
)
"""Keys from one screen to the next, words of ours on that one, and words of the one before that go.

Only then is the next key typed: right after escape it would be read as one with alt.
"""


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


@pytest.fixture
def configured(server: HostileServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> HostileServer:
    configure(server, monkeypatch, tmp_path)
    return server


def configure(server: FakeBaseten, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in server.environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("USER_TRUSSRC_PATH", str(tmp_path / "trussrc"))
    # Metrics are read week by week otherwise, from 1970 or to 2199.
    monkeypatch.setattr("api_client.streams.metrics.MAX_HISTORY_MS", sys.maxsize)
    monkeypatch.setattr("tui.readers.health_metrics.PART_SAMPLES", sys.maxsize)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_the_harm_is_an_answer_that_the_routes_read(route: Route[object]) -> None:
    body = answer_of(route)
    assert (MARK in str(route.adapter.validate_python(body))) == (MARK in str(body))


AS_READ = HARM.replace("\ud800", "\ufffd")
JOB = f"live{AS_READ}"
NAMES = dict.fromkeys((*IN_EXAMPLES, "llama-sft"), AS_READ) | {"abc1234": JOB, "def5678": f"wait{AS_READ}"}
"""What the examples of the help name, as the server has it."""
OTHER_ARGUMENTS = {
    "delete": (f"odd{AS_READ}",),
    "deploy_checkpoints": (
        *("--job-id", JOB, "--checkpoint", AS_READ, "--model-name", "m", "--gpu", "H100:1"),
    ),
    "recreate": (JOB,),
    "wait": (JOB, "--timeout", "0s"),
}
"""Where the first example asks, or waits for what never comes."""


def lines() -> Iterator[tuple[str, ...]]:
    """The first example of each command that prints data, in each of its formats, confirmed.

    ``raw`` is what the server sent, for a program.
    """
    for words, command in commands():
        for output_format in (each for each in formats_of(command) if each != "raw"):
            given = OTHER_ARGUMENTS.get(words) or example_of(words, command, NAMES)
            confirmed = ["--yes"] if any("--yes" in each.opts for each in command.params) else []
            yield (*words.split(), *given, *confirmed, "-o", output_format)


def named(line: tuple[str, ...]) -> str:
    return " ".join(word for word in line if MARK not in word)


@pytest.mark.parametrize("line", lines(), ids=named)
def test_no_command_lets_any_of_it_out(
    line: tuple[str, ...], configured: HostileServer, capsys: pytest.CaptureFixture[str]
) -> None:
    main(line)
    said = capsys.readouterr()
    assert said.out + said.err
    assert hidden_in(said.out.replace("\r\n", "\n") + said.err) == []
    assert "Traceback" not in said.err.replace("Traceback (most recent call last):" + "\u241b", "")
    assert "Unexpected" not in said.err


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_no_refusal_lets_any_of_it_out(
    status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with refusing(status) as server:
        configure(server, monkeypatch, tmp_path)
        for line in (("projects",), ("job", "x"), ("cache", "summarize", "x"), ("deploy", "--job-id", "x")):
            assert main(line) != 0
            said = capsys.readouterr()
            assert said.err
            assert hidden_in(said.out + said.err) == []


def arrived(comes: str, goes: str | None, picture: str) -> bool:
    return MARK in picture and comes in picture and (goes is None or goes not in picture)


def test_no_screen_lets_any_of_it_out(server: HostileServer, tmp_path: Path) -> None:
    """Through a pseudo-terminal: of every screen all the bytes that a terminal would get."""
    environ = {**os.environ, **server.environ(), "TERM": "xterm-256color", "HOME": str(tmp_path)}
    with DrawnTerminal(environ=environ) as terminal:
        terminal.read_until_drawn(lambda picture: A_ROW in picture)
        for keys, comes, goes in WAYS:
            # What got out may spoil the next picture, so look for it before waiting for that.
            assert obeyed(terminal.text) == []
            terminal.types(keys.encode())
            terminal.read_until_drawn(partial(arrived, comes, goes))
        terminal.types(b"q")
        code = terminal.end()
    assert SHOWN in terminal.text
    assert obeyed(terminal.text) == []
    assert server.key not in terminal.text
    assert "Unexpected error" not in terminal.text
    assert code == 0
