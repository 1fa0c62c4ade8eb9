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
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Report
from idle import job_id
from large_world import LargeWorld
from terminal import ROOT, Terminal, dashboard, nobody

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


def command_s(environ: Mapping[str, str], *arguments: str) -> float:
    """Seconds that a command of ours takes. Raises CalledProcessError."""
    python = [sys.executable, "-m", "tui", *arguments]
    begun = time.perf_counter()
    subprocess.run(
        python, env={**environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT, check=True, capture_output=True
    )
    return time.perf_counter() - begun


def seen_s(
    environ: Mapping[str, str], arguments: Sequence[str], *patterns: str | re.Pattern[str]
) -> list[float]:
    """Seconds from the command until each of these was painted."""
    with dashboard(environ, *arguments) as terminal:
        return [terminal.wait_for(pattern) for pattern in patterns]


def leet_s(leet: str, run: Path) -> float:
    """Seconds until leet has drawn a chart of the run."""
    with nobody(os.environ) as environ, Terminal([leet, "leet", str(run)], environ) as terminal:
        return terminal.wait_for(CURVE)


def main() -> None:
    """Measure in turn."""
    report = Report("first_data")
    leet = os.environ.get("LEET_BIN")
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, LargeWorld().emulator() as emulator:
        environ = os.environ | emulator.remote_environ()
        job, recording = job_id(emulator, JOB), Path(folder) / "run.btrun"
        command_s(environ, "record", job, "--output", str(recording))
        if leet:
            python = str(Path(leet).with_name("python"))
            subprocess.run([python, "-c", LEET_RUN, folder], check=True, capture_output=True)
            run = next(Path(folder).glob("wandb/offline-run-*"))
        for _ in range(ROUNDS):
            round_s = {
                "Home: first jobs": seen_s(environ, (), "GPUs busy")[0],
                "Home: first curve of a loss": seen_s(environ, (), CURVE)[0],
                "job: first line of the log": seen_s(environ, ("watch", job), LOG_LINE)[0],
                "job: first chart": seen_s(environ, ("watch", job), CURVE)[0],
                "recording: first chart": seen_s(environ, ("open", str(recording)), CURVE)[0],
            }
            if leet:
                round_s["leet"] = leet_s(leet, run)
            for name, seconds in round_s.items():
                times.setdefault(name, []).append(seconds)
        rows_s = [command_s(environ, "top", "--output", "csv") for _ in range(ROUNDS)]
    theirs = times.pop("leet", None)
    for name, ours in times.items():
        if theirs:
            most = 2.0 if name.startswith("recording") else None
            report.compare(
                name, ours, theirs, against="wandb leet", unit="s", at_most=most, cause=RECORDING_CAUSE
            )
        else:
            report.figure(name, median(ours), unit="s")
    report.figure(
        "all rows of 51 jobs, as top prints them", median(rows_s), unit="s", at_most=6.0, cause=ROWS_CAUSE
    )
    report.close()


if __name__ == "__main__":
    main()
