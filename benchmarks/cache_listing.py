"""``bt-tui cache summarize -o json`` of 100,000 files against bare Python doing the same, in one run.

Prints seconds and MiB (peak resident) of both and their ratios. The bare client is httpx, ``json.loads`` and
``json.dumps``, without totals, times or sizes in words. Where ``TRUSS_BIN`` names an official truss command,
it is measured too, through the emulator as its proxy.

    python benchmarks/cache_listing.py [FILES]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from harness import Report

from api_client.emulator.child import EmulatorChild
from api_client.emulator.fleet.cache_trees import CROWDED_PROJECT
from api_client.emulator.world_size import WorldSize

DEFAULT_FILES = 100_000
ROUNDS = 3
KIB_PER_MIB = 1024

BARE = """
import httpx, json, os, sys
headers = {"Authorization": "Bearer " + os.environ["BASETEN_API_KEY"]}
with httpx.Client(base_url=os.environ["BASETEN_REMOTE_URL"], headers=headers, timeout=60) as client:
    projects = client.get("/v1/training_projects").json()["training_projects"]
    project = next(each["id"] for each in projects if each["name"] == sys.argv[1])
    summary = client.get(f"/v1/training_projects/{project}/cache/summary").json()
print(json.dumps(summary, indent=2))
"""


@dataclass(frozen=True)
class Cost:
    """What a command took: wall seconds and peak resident MiB, the best of some rounds."""

    seconds: float
    mib: float


def measure(command: list[str], environ: dict[str, str], rounds: int = ROUNDS) -> Cost:
    """Run it so many times. Raises CalledProcessError."""
    costs = []
    for _ in range(rounds):
        with tempfile.TemporaryFile() as out:
            begun = time.perf_counter()
            process = subprocess.Popen(command, env=environ, stdout=out, stderr=subprocess.DEVNULL)
            _pid, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        costs.append(Cost(seconds, usage.ru_maxrss / KIB_PER_MIB))
    return Cost(min(cost.seconds for cost in costs), min(cost.mib for cost in costs))


def main() -> None:
    """Measure and print."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FILES
    with EmulatorChild(world="demo", size=WorldSize(cache_files=files)) as emulator:
        environ = os.environ | emulator.remote_environ() | {"PYTHONPATH": str(Path(__file__).parents[1])}
        command = ["cache", "summarize", CROWDED_PROJECT, "-o", "json"]
        ours = measure([sys.executable, "-m", "tui", *command], environ)
        bare = measure([sys.executable, "-c", BARE, CROWDED_PROJECT], environ)
        report = Report("cache_listing")
        report.compare(f"{files:,} files", ours.seconds, bare.seconds, against="bare Python", unit="s")
        report.compare(f"{files:,} files, memory", ours.mib, bare.mib, against="bare Python", unit="MiB")
        truss = os.environ.get("TRUSS_BIN")
        if truss:
            proxied = environ | {
                "http_proxy": emulator.url,
                "BASETEN_TRUSS_AUTH_REMOTE_URL": "http://localhost:8000",
                "BASETEN_TRUSS_AUTH_API_KEY": emulator.key,
            }
            for name in ("no_proxy", "NO_PROXY", "PYTHONPATH"):
                proxied.pop(name, None)
            official = measure([truss, "train", *command], proxied, rounds=1)
            against = "truss"
            report.compare(
                f"{files:,} files", ours.seconds, official.seconds, against=against, unit="s", at_most=0.2
            )
            report.compare(
                f"{files:,} files, memory", ours.mib, official.mib, against=against, unit="MiB", at_most=0.5
            )
        report.close()


if __name__ == "__main__":
    main()
