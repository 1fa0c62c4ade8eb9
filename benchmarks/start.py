"""How soon things are there: headless commands beside bare Python, the dashboard beside a minimal app.

The dashboard is to paint before the first answer from the network: it is pointed at a port where nobody
answers. Its first words come before anything is loaded; Home is the first picture.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from commands import OFFICIAL
from harness import Figure, compared, in_turn
from terminal import Terminal, nobody

ROUNDS = 5
PYTHON, OURS = [sys.executable, "-c"], [sys.executable, "-m", "tui"]
MINIMAL = """
from textual.app import App
from textual.widgets import Label
class Minimal(App):
    def compose(self):
        yield Label("painted")
Minimal().run()
"""
IMPORTS = ("import click", "import httpx", "pass")
HOME_CAUSE = (
    "of 310 ms of CPU imports are 230: textual and rich 110, our 127 modules 60, 40 of it for"
    " 101 dataclasses; styles, layout and painting are 70"
)


def figures() -> Iterator[Figure]:
    """Measure in turn."""
    with nobody(os.environ) as environ, socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        remote = {"BASETEN_REMOTE_URL": url, "BASETEN_MANAGEMENT_API_URL_OVERRIDE": url}
        yield from helps(environ)
        yield from first_paints(environ, environ | remote | {"BASETEN_API_KEY": "nobody.reads.it"})


def helps(environ: dict[str, str]) -> Iterator[Figure]:
    """``--help`` beside imports alone and the official CLI's."""
    commands = {f"python -c '{code}'": [*PYTHON, code] for code in IMPORTS}
    if OFFICIAL:
        commands["truss train --help"] = [OFFICIAL, "train", "--help"]
    run = partial(subprocess.run, env=environ, capture_output=True, check=True)
    ways = {name: partial(run, command) for name, command in {"": [*OURS, "--help"], **commands}.items()}
    times = in_turn(ways, rounds=ROUNDS)
    for against in commands:
        most = 0.22 if against.startswith("truss") else None
        yield compared("--help", times[""], times[against], against, unit="ms", at_most=most)


def first_paints(environ: dict[str, str], remote: dict[str, str]) -> Iterator[Figure]:
    """The dashboard's first words and first picture."""
    words_ms, home_ms, minimal_ms = [], [], []
    for _ in range(ROUNDS):
        with Terminal(OURS, remote) as terminal:
            words_ms.append(terminal.wait_for("opening") * 1000)
            home_ms.append(terminal.wait_for("Loading projects and jobs") * 1000)
        with Terminal([*PYTHON, MINIMAL], environ) as terminal:
            minimal_ms.append(terminal.wait_for("painted") * 1000)
    against = "minimal textual app"
    yield compared("dashboard, first words", words_ms, minimal_ms, against, unit="ms", at_most=1.3)
    yield compared(
        "dashboard, Home without an answer",
        home_ms,
        minimal_ms,
        against,
        unit="ms",
        at_most=1.8,
        cause=HOME_CAUSE,
    )
