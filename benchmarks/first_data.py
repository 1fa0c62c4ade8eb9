"""How soon a person sees data: jobs on Home, log and loss of a job, a recording; beside ``wandb leet``.

The rows of Home are complete when ``bt-tui top`` prints them: it reads and judges runs as Home does.

Everything is requested from an emulator on this machine. The job has logged some 22,000 lines on four nodes
of eight GPUs. ``LEET_BIN`` names a ``wandb`` command that has ``leet``; it opens an offline run of nine
metrics with as many points as the job has lines, which the Python beside it writes.
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
from terminal import Terminal, dashboard, nobody

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
    """Measure in turn."""
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
                "Home: first jobs": seen_s(environ, "GPUs busy"),
                "Home: first curve of a loss": seen_s(environ, CURVE),
                "job: first line of the log": seen_s(environ, LOG_LINE, "watch", job),
                "job: first chart": seen_s(environ, CURVE, "watch", job),
                "recording: first chart": seen_s(environ, CURVE, "open", recording),
            }
            if leet:
                round_s["leet"] = leet_s(leet, run)
            for name, seconds in round_s.items():
                times.setdefault(name, []).append(seconds)
        rows_s = [command_s(environ, "top", "--output", "csv") for _ in range(ROUNDS)]
    theirs = times.pop("leet", None)
    for name, ours in times.items():
        if theirs is None:
            yield Figure(name, median(ours), unit="s")
        else:
            most = 2.0 if name.startswith("recording") else None
            yield compared(name, ours, theirs, "wandb leet", unit="s", at_most=most, cause=RECORDING_CAUSE)
    title = "all rows of 51 jobs, as top prints them"
    yield Figure(title, median(rows_s), unit="s", at_most=6.0, cause=ROWS_CAUSE)


def command_s(environ: Mapping[str, str], *arguments: str) -> float:
    """Return how long a command of ours takes. Raise CalledProcessError if it fails."""
    command = [sys.executable, "-m", "tui", *arguments]
    own = {**environ, "PYTHONPATH": str(ROOT)}
    return wall_ms(partial(subprocess.run, command, env=own, cwd=ROOT, check=True, capture_output=True)) / 1e3


def seen_s(environ: Mapping[str, str], pattern: str | re.Pattern[str], *arguments: str) -> float:
    """Return the time from the start of a dashboard until the pattern is painted."""
    with dashboard(environ, *arguments) as terminal:
        return terminal.wait_for(pattern)


def leet_s(leet: str, run: Path) -> float:
    """Return the time until leet has drawn a chart of the run."""
    with nobody(os.environ) as environ, Terminal([leet, "leet", str(run)], environ) as terminal:
        return terminal.wait_for(CURVE)
