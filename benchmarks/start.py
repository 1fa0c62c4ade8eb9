"""How soon things are there: headless commands beside bare Python, the dashboard beside a minimal app.

The dashboard is to paint before the first answer from the network: it is pointed at a port where nobody
answers. Its first words come before anything is loaded; Home is the first picture.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Report, in_turn
from terminal import Terminal, nobody

ROUNDS = 5
MINIMAL = """
from textual.app import App
from textual.widgets import Label
class Minimal(App):
    def compose(self):
        yield Label("painted")
Minimal().run()
"""
BARE = {"click": "import click", "httpx": "import httpx", "plain": "pass"}


def run(command: list[str], environ: dict[str, str]) -> None:
    """Run a command to its end. Raises CalledProcessError."""
    subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def first_paint_ms(command: list[str], words: str, environ: dict[str, str]) -> float:
    """From the start of a command in a terminal until it has painted the words."""
    with Terminal(command, environ) as terminal:
        return terminal.wait_for(words) * 1000


def main() -> None:
    """Measure in turn."""
    report = Report("start")
    with nobody(os.environ) as environ, socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        remote = environ | {
            "BASETEN_API_KEY": "nobody.reads.it",
            "BASETEN_REMOTE_URL": f"http://127.0.0.1:{port}",
            "BASETEN_MANAGEMENT_API_URL_OVERRIDE": f"http://127.0.0.1:{port}",
        }
        python, ours = [sys.executable, "-c"], [sys.executable, "-m", "tui"]
        headless: dict[str, Callable[[], object]] = {
            "--help": partial(run, [*ours, "--help"], environ),
            **{name: partial(run, [*python, code], environ) for name, code in BARE.items()},
        }
        truss = os.environ.get("TRUSS_BIN")
        if truss:
            headless["truss train --help"] = partial(run, [truss, "train", "--help"], environ)
        times = in_turn(headless, rounds=ROUNDS)
        for name in [*BARE, *(["truss train --help"] if truss else [])]:
            against = name if name.startswith("truss") else f"python -c '{BARE[name]}'"
            most = 0.22 if name.startswith("truss") else None
            report.compare("--help", times["--help"], times[name], against=against, unit="ms", at_most=most)
        paints: dict[str, list[float]] = {"words": [], "home": [], "minimal": []}
        for _ in range(ROUNDS):
            with Terminal(ours, remote) as terminal:
                paints["words"].append(terminal.wait_for("opening") * 1000)
                paints["home"].append(terminal.wait_for("Loading projects and jobs") * 1000)
            paints["minimal"].append(first_paint_ms([*python, MINIMAL], "painted", environ))
        report.compare(
            "dashboard, first words",
            paints["words"],
            paints["minimal"],
            against="minimal textual app",
            unit="ms",
            at_most=1.3,
        )
        report.compare(
            "dashboard, Home without an answer",
            paints["home"],
            paints["minimal"],
            against="minimal textual app",
            unit="ms",
            at_most=1.8,
            cause="of 310 ms of CPU imports are 230: textual and rich 110, our 127 modules 60, 40 of it for"
            " 101 dataclasses; styles, layout and painting are 70",
        )
    report.close()


if __name__ == "__main__":
    main()
