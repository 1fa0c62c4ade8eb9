"""What the dashboard costs while nobody touches it: CPU of three dashboards and of the floor, side by side.

Idle Home of the demo world; a watched job of 2 × 8 GPUs; one of 64 × 8 GPUs with charts, matrix and 100 log
lines a second; and textual alone, an empty app with a clock, as the floor. All of them together take a tenth
of a core.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx
from harness import Report
from large_world import LargeWorld
from terminal import Terminal, dashboard, nobody

from api_client.emulator.processes import EmulatorChild

SETTLING_S, WATCHED_S = 40.0, 60.0
"""Once, in the first minute, Home reads the older logs of the running jobs, beside whatever else happens;
later it polls one of them every five seconds."""
SMALL_JOB, LINES_PER_S = "qwen3-grpo-7", 100

FLOOR = "an empty textual app with a clock"
CLOCK = """
from datetime import datetime
from textual.app import App
from textual.widgets import Label
class Clock(App):
    def compose(self):
        yield Label("clock")
    def on_mount(self):
        self.set_interval(1, lambda: self.query_one(Label).update(f"clock {datetime.now():%H:%M:%S}"))
Clock().run()
"""


def job_id(emulator: EmulatorChild, name: str) -> str:
    """The id of the demo's job of that name."""
    answer = httpx.post(
        f"{emulator.url}/v1/training_jobs/search",
        headers={"Authorization": f"Bearer {emulator.key}"},
        json={},
        trust_env=False,
    )
    return next(str(job["id"]) for job in answer.json()["training_jobs"] if job["name"] == name)


def main() -> None:
    """Start all, wait until they have settled, and measure them at the same time."""
    report = Report("idle")
    with LargeWorld(log_lines_per_s=LINES_PER_S).emulator() as emulator, ExitStack() as started:
        environ = started.enter_context(nobody(os.environ))
        floor = started.enter_context(Terminal([sys.executable, "-c", CLOCK], environ))
        environ = os.environ | emulator.remote_environ()
        places = (
            (
                "watched job, 2 × 8 GPUs",
                ("watch", job_id(emulator, SMALL_JOB)),
                SMALL_JOB,
                4.0,
                "sampled: a third paints, a sixth waits for and sends requests, a tenth draws charts",
            ),
            (
                "watched job, 64 × 8 GPUs, charts, matrix, 100 log lines a second",
                ("watch", job_id(emulator, f"titan-{LINES_PER_S}-lines")),
                f"titan-{LINES_PER_S}",
                12.0,
                "timed by task: a quarter paints, a sixth requests, parses and compares new lines, a ninth"
                " shows charts and header, a seventeenth appends lines; the rest is event loop and threads",
            ),
            (
                "idle Home",
                (),
                "GPUs busy",
                3.0,
                "sampled: a quarter requests, decodes and folds what is new of the running jobs, a fifth"
                " paints and lays out, a sixth is the event loop itself, which wakes 23 times a second",
            ),
        )
        terminals: dict[str, Terminal] = {FLOOR: floor}
        for name, arguments, words, *_ in places:
            terminals[name] = started.enter_context(dashboard(environ, *arguments))
            report.figure(f"{name}: first data after", terminals[name].wait_for(words), unit="s")
        time.sleep(SETTLING_S)
        before_s = {name: terminal.cpu_s for name, terminal in terminals.items()}
        time.sleep(WATCHED_S)
        percents = {
            name: 100 * (terminal.cpu_s - before_s[name]) / WATCHED_S for name, terminal in terminals.items()
        }
        for name, _, _, at_most, cause in places:
            report.compare(
                name,
                percents[name],
                percents[FLOOR],
                against=FLOOR,
                unit="% of a core",
                at_most=at_most,
                cause=cause,
            )
            report.figure(f"{name}: memory", terminals[name].resident_mib, unit="MiB")
    report.close()


if __name__ == "__main__":
    main()
