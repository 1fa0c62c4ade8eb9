"""What the dashboard costs while nobody touches it: CPU over 15 s in a terminal, over 45 s for Home.

Idle Home of the demo world; a watched job of 2 × 8 GPUs; one of 64 × 8 GPUs with charts, matrix and 100 log
lines a second; and textual alone, an empty app with a clock, as the floor.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx
from harness import Report
from large_world import LargeWorld
from terminal import Terminal, dashboard, nobody

from api_client.emulator.processes import EmulatorChild

WATCHED_S, SETTLING_S, FLOOR_SETTLING_S = 15.0, 10.0, 3.0
HOME_SETTLING_S, HOME_WATCHED_S = 35.0, 45.0
"""Once, in the first minute, Home reads the older logs of the running jobs, beside whatever else happens;
later it looks at each of them about once a minute, all of them within a quarter of it."""
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


def cpu_of(
    terminal: Terminal, settling_s: float = SETTLING_S, watched_s: float = WATCHED_S
) -> tuple[float, float]:
    """% of a core once it has settled, and MiB."""
    time.sleep(settling_s)
    return terminal.cpu_percent(watched_s), terminal.resident_mib


def main() -> None:
    """Measure one after the other: two at once would take each other's cores."""
    report = Report("idle")
    with nobody(os.environ) as environ, Terminal([sys.executable, "-c", CLOCK], environ) as terminal:
        terminal.wait_for("clock")
        floor, _ = cpu_of(terminal, FLOOR_SETTLING_S)
    with LargeWorld(log_lines_per_s=LINES_PER_S).emulator() as emulator:
        environ = os.environ | emulator.remote_environ()
        places = (
            (
                "idle Home",
                (),
                "GPUs busy",
                3.0,
                "sampled: a quarter requests and decodes what is new of the running jobs, a tenth folds its"
                " lines, a tenth lists jobs, a tenth arranges rows, a fifth paints them",
            ),
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
                "sampled: a fifth follows the log, a third paints, a sixth draws charts and GPU matrix",
            ),
        )
        for name, arguments, words, at_most, cause in places:
            with dashboard(environ, *arguments) as terminal:
                report.figure(f"{name}: first data after", terminal.wait_for(words), unit="s")
                percent, mib = cpu_of(terminal, *(() if arguments else (HOME_SETTLING_S, HOME_WATCHED_S)))
            report.compare(
                name, percent, floor, against=FLOOR, unit="% of a core", at_most=at_most, cause=cause
            )
            report.figure(f"{name}: memory", mib, unit="MiB")
    report.close()


if __name__ == "__main__":
    main()
