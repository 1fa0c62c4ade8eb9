"""Time until a user sees data: jobs on Home, log and loss of a job, a recording; compared with wandb leet.

``bt-tui top`` prints the rows of Home once they are complete: it reads and checks runs as Home does.

All data comes from an emulator on this machine. The job has logged about 22,000 lines on four nodes of eight
GPUs. ``LEET_BIN`` names a ``wandb`` command that has ``leet``. It opens an offline run with nine metrics and
as many points as the job has lines, written by the Python interpreter next to ``wandb``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median

from harness import ROOT, Figure, compared, wall_ms
from large_world import LargeWorld, job_id
from terminal import Terminal, dashboard, fresh_user_environ

JOB = "llama-70b-sft-v3"
ROUNDS = 3
RECORDING_CAUSE = (
    "measured: half is imports, textual's and pydantic's among them, an eighth reading samples and lines, the"
    " rest is mounting, styling and painting Home and the job's screen; leet is a compiled program"
)
ROWS_CAUSE = (
    "sampled: half folds 124,700 lines, three tenths request and decode them, the rest is health checks,"
    " metrics and imports; older points are now put in their places together, not one by one"
)
CURVE = re.compile("[\u2801-\u28ff]{8}")
LOG_LINE = re.compile(r"\d\d:\d\d:\d\d n\d")
LEET_RUN = """
import random, sys, wandb
run = wandb.init(mode="offline", dir=sys.argv[1], project="p", settings=wandb.Settings(console="off"))
for step in range(2_400):
    run.log({f"train/m{n}": random.gauss(2, 0.1) for n in range(9)})
run.finish()
"""


def figures() -> Iterator[Figure]:
    """Measure all in turn."""
    leet = os.environ.get("LEET_BIN")
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, LargeWorld().emulator() as emulator:
        environ = os.environ | emulator.remote_environ()
        job, recording = job_id(emulator, JOB), f"{folder}/run.btrun"
        command_s(environ, "record", job, "--output", recording)
        if leet:
            python = str(Path(leet).with_name("python"))
            subprocess.run([python, "-c", LEET_RUN, folder], check=True, capture_output=True)
            run = next(Path(folder).glob("wandb/offline-run-*"))
        for _ in range(ROUNDS):
            round_s = {
                "Home: first jobs": time_to_paint_s(environ, "GPUs busy"),
                "Home: first curve of a loss": time_to_paint_s(environ, CURVE),
                "job: first line of the log": time_to_paint_s(environ, LOG_LINE, "watch", job),
                "job: first chart": time_to_paint_s(environ, CURVE, "watch", job),
                "recording: first chart": time_to_paint_s(environ, CURVE, "open", recording),
            }
            if leet:
                round_s["leet"] = leet_paint_s(leet, run)
            for name, seconds in round_s.items():
                times.setdefault(name, []).append(seconds)
        rows_s = [command_s(environ, "top", "--output", "csv") for _ in range(ROUNDS)]
    leet_times = times.pop("leet", None)
    for name, ours in times.items():
        if leet_times is None:
            yield Figure(name, median(ours), unit="s")
        else:
            budget = 2.0 if name.startswith("recording") else None
            yield compared(
                name, ours, leet_times, "wandb leet", unit="s", at_most=budget, cause=RECORDING_CAUSE
            )
    title = "all rows of 51 jobs, as top prints them"
    yield Figure(title, median(rows_s), unit="s", at_most=6.0, cause=ROWS_CAUSE)


def command_s(environ: Mapping[str, str], *arguments: str) -> float:
    """Return the wall time of a bt-tui command. Raise CalledProcessError if it fails."""
    command = [sys.executable, "-m", "tui", *arguments]
    command_environ = {**environ, "PYTHONPATH": str(ROOT)}
    return (
        wall_ms(
            partial(subprocess.run, command, env=command_environ, cwd=ROOT, check=True, capture_output=True)
        )
        / 1e3
    )


def time_to_paint_s(environ: Mapping[str, str], pattern: str | re.Pattern[str], *arguments: str) -> float:
    """Start a dashboard; return the time until text that matches the pattern is painted."""
    with dashboard(environ, *arguments) as terminal:
        return terminal.wait_for(pattern)


def leet_paint_s(leet: str, run: Path) -> float:
    """Start leet; return the time until a chart of the run is painted."""
    with fresh_user_environ(os.environ) as environ, Terminal([leet, "leet", str(run)], environ) as terminal:
        return terminal.wait_for(CURVE)
