"""Start times: ``--help`` compared with bare Python, the dashboard compared with a minimal Textual app.

The dashboard must paint before the first response, so its server is a port that never responds. Its first
words are painted before most modules are imported; then comes Home without data.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from commands import OFFICIAL_CLI
from harness import Figure, compared, measure_in_turn
from terminal import Terminal, fresh_user_environ

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
    """Measure ``--help``, then the dashboard."""
    with fresh_user_environ(os.environ) as environ, socket.create_server(("127.0.0.1", 0)) as silent_server:
        url = f"http://127.0.0.1:{silent_server.getsockname()[1]}"
        remote_environ = {"BASETEN_REMOTE_URL": url, "BASETEN_MANAGEMENT_API_URL_OVERRIDE": url}
        yield from help_figures(environ)
        yield from paint_figures(environ, environ | remote_environ | {"BASETEN_API_KEY": "nobody.reads.it"})


def help_figures(environ: dict[str, str]) -> Iterator[Figure]:
    """Compare ``--help`` with single imports and the official CLI."""
    commands = {f"python -c '{code}'": [*PYTHON, code] for code in IMPORTS}
    if OFFICIAL_CLI:
        commands["truss train --help"] = [OFFICIAL_CLI, "train", "--help"]
    run = partial(subprocess.run, env=environ, capture_output=True, check=True)
    programs = {name: partial(run, command) for name, command in {"": [*OURS, "--help"], **commands}.items()}
    times = measure_in_turn(programs, rounds=ROUNDS)
    for other_program in commands:
        budget = 0.22 if other_program.startswith("truss") else None
        yield compared("--help", times[""], times[other_program], other_program, unit="ms", at_most=budget)


def paint_figures(environ: dict[str, str], remote_environ: dict[str, str]) -> Iterator[Figure]:
    """Compare the dashboard's first words and Home with a minimal app."""
    words_ms, home_ms, minimal_ms = [], [], []
    for _ in range(ROUNDS):
        with Terminal(OURS, remote_environ) as terminal:
            words_ms.append(terminal.wait_for("opening") * 1000)
            home_ms.append(terminal.wait_for("Loading projects and jobs") * 1000)
        with Terminal([*PYTHON, MINIMAL], environ) as terminal:
            minimal_ms.append(terminal.wait_for("painted") * 1000)
    other_program = "minimal textual app"
    yield compared("dashboard, first words", words_ms, minimal_ms, other_program, unit="ms", at_most=1.3)
    yield compared(
        "dashboard, Home without an answer",
        home_ms,
        minimal_ms,
        other_program,
        unit="ms",
        at_most=1.8,
        cause=HOME_CAUSE,
    )
