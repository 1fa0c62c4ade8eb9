"""CPU time of three dashboards without user input, compared with an almost empty Textual app.

The dashboards are Home of the demo world, a watched job of 2 × 8 GPUs, and a watched job of 64 × 8 GPUs with
charts, matrix and 100 log lines a second. The other app, the baseline, shows only a clock.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

from harness import Figure
from large_world import LargeWorld, job_id
from terminal import SETTLING_S, Terminal, dashboard, fresh_user_environ

MEASURED_S = 60.0
LINES_PER_S = 100
DASHBOARDS = (
    (
        "watched job, 2 × 8 GPUs",
        "qwen3-grpo-7",
        4.0,
        "sampled: a third paints, a sixth waits for and sends requests, a tenth draws charts",
    ),
    (
        "watched job, 64 × 8 GPUs, charts, matrix, 100 log lines a second",
        f"titan-{LINES_PER_S}-lines",
        12.0,
        "timed by task: a quarter paints, a sixth requests, parses and compares new lines, a ninth"
        " shows charts and header, a seventeenth appends lines; the rest is event loop and threads",
    ),
    (
        "idle Home",
        None,
        3.0,
        "sampled: a quarter requests, decodes and folds what is new of the running jobs, a fifth"
        " paints and lays out, a sixth is the event loop itself, which wakes 23 times a second",
    ),
)
"""The title, the name of the watched job (None: Home), the budget, and the cause if it is not met."""
BASELINE = "an empty textual app with a clock"
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


def figures() -> Iterator[Figure]:
    """Start all apps, wait until they are idle, and measure them at the same time."""
    with LargeWorld(log_lines_per_s=LINES_PER_S).emulator() as emulator, ExitStack() as stack:
        environ = stack.enter_context(fresh_user_environ(os.environ))
        terminals = {BASELINE: stack.enter_context(Terminal([sys.executable, "-c", CLOCK], environ))}
        environ = os.environ | emulator.remote_environ()
        for name, job, *_ in DASHBOARDS:
            arguments = ("watch", job_id(emulator, job)) if job else ()
            terminals[name] = stack.enter_context(dashboard(environ, *arguments))
            first_data_s = terminals[name].wait_for(job or "GPUs busy")
            yield Figure(f"{name}: first data after", first_data_s, unit="s")
        time.sleep(SETTLING_S)
        before_s = {name: terminal.cpu_s for name, terminal in terminals.items()}
        time.sleep(MEASURED_S)
        percents = {
            name: 100 * (terminal.cpu_s - before_s[name]) / MEASURED_S for name, terminal in terminals.items()
        }
        for name, _, budget, cause in DASHBOARDS:
            unit = "% of a core"
            yield Figure(
                name, percents[name], percents[BASELINE], BASELINE, unit, at_most=budget, cause=cause
            )
            yield Figure(f"{name}: memory", terminals[name].resident_mib, unit="MiB")
