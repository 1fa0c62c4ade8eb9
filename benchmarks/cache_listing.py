"""``bt-tui cache summarize -o json`` of 100,000 files against bare Python doing the same, in one run.

Prints seconds and MiB (peak resident) of both and their ratios. The bare client is httpx, ``json.loads`` and
``json.dumps``, without totals, times or sizes in words. Where ``TRUSS_BIN`` names an official truss command,
it is measured too, through the emulator as its proxy.

    python benchmarks/cache_listing.py [FILES]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from command_cost import Cost, cost_of, official_command, official_environ
from harness import Report
from large_world import CACHE_PROJECT, LargeWorld

DEFAULT_FILES = 100_000
ROUNDS = 3

BARE = """
import httpx, json, os, sys
headers = {"Authorization": "Bearer " + os.environ["BASETEN_API_KEY"]}
with httpx.Client(base_url=os.environ["BASETEN_REMOTE_URL"], headers=headers, timeout=60) as client:
    projects = client.get("/v1/training_projects").json()["training_projects"]
    project = next(each["id"] for each in projects if each["name"] == sys.argv[1])
    summary = client.get(f"/v1/training_projects/{project}/cache/summary").json()
print(json.dumps(summary, indent=2))
"""


def best(command: list[str], environ: dict[str, str], rounds: int = ROUNDS) -> Cost:
    """The least of some rounds."""
    costs = [cost_of(command, environ) for _ in range(rounds)]
    return Cost(min(cost.seconds for cost in costs), min(cost.mib for cost in costs))


def main() -> None:
    """Measure and print."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FILES
    with LargeWorld(cache_files=files).emulator() as emulator:
        environ = os.environ | emulator.remote_environ() | {"PYTHONPATH": str(Path(__file__).parents[1])}
        command = ["cache", "summarize", CACHE_PROJECT, "-o", "json"]
        ours = best([sys.executable, "-m", "tui", *command], environ)
        bare = best([sys.executable, "-c", BARE, CACHE_PROJECT], environ)
        report = Report("cache_listing")
        report.compare(f"{files:,} files", ours.seconds, bare.seconds, against="bare Python", unit="CPU s")
        report.compare(f"{files:,} files, memory", ours.mib, bare.mib, against="bare Python", unit="MiB")
        if truss := official_command():
            proxied = official_environ(emulator, environ)
            official = best([truss, "train", *command], proxied, rounds=1)
            against = "truss"
            report.compare(
                f"{files:,} files",
                ours.seconds,
                official.seconds,
                against=against,
                unit="CPU s",
                at_most=0.35,
                cause="profiled: a third is the local time and size of each file, a quarter imports, the rest"
                " totals of directories and JSON",
            )
            report.compare(
                f"{files:,} files, memory", ours.mib, official.mib, against=against, unit="MiB", at_most=0.5
            )
        report.close()


if __name__ == "__main__":
    main()
