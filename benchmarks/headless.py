"""Headless commands beside the official CLI and beside the least that Python needs: time and memory.

All ask the same emulator for the same jobs, in turn. ``TRUSS_BIN`` names the official program, in an
environment of its own; without it only bare Python is compared with.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from command_cost import Cost, cost_of, official_command, official_environ
from harness import Report, median

from api_client.emulator.processes import EmulatorChild

ROOT = Path(__file__).resolve().parent.parent
ROUNDS, TRUSS_ROUNDS = 5, 3
BARE = """
import json, os, httpx
headers = {"Authorization": "Bearer " + os.environ["BASETEN_API_KEY"]}
base = os.environ["BASETEN_MANAGEMENT_API_URL_OVERRIDE"]
answer = httpx.post(base + "/v1/training_jobs/search", json={}, headers=headers)
print(json.dumps(answer.json()["training_jobs"], indent=2))
"""


def main() -> None:
    """Measure in turn."""
    report = Report("headless")
    with EmulatorChild(world="demo", speed=1.0) as emulator, tempfile.TemporaryDirectory() as home:
        key = emulator.key_file.read_text().strip()
        plain = {"PATH": os.environ["PATH"], "HOME": home, "PYTHONPATH": str(ROOT)}
        ours = plain | {
            "BASETEN_API_KEY": key,
            "BASETEN_REMOTE_URL": emulator.url,
            "BASETEN_MANAGEMENT_API_URL_OVERRIDE": emulator.url,
        }
        commands = {
            "jobs": ([sys.executable, "-m", "tui", "jobs", "-o", "json"], ours),
            "bare": ([sys.executable, "-c", BARE], ours),
        }
        if truss := official_command():
            theirs = official_environ(emulator, plain)
            commands["truss"] = ([truss, "train", "view"], theirs)
        found: dict[str, list[Cost]] = {name: [] for name in commands}
        for number in range(ROUNDS + 1):
            for name, (command, environ) in commands.items():
                if name == "truss" and number > TRUSS_ROUNDS:
                    continue
                one = cost_of(command, environ)
                if number:  # the first reads the disk, for all of them
                    found[name].append(one)
        times = {name: 1000 * median([one.seconds for one in rounds]) for name, rounds in found.items()}
        peaks = {name: median([one.mib for one in rounds]) for name, rounds in found.items()}
        limits = {"bare": (2.0, 2.0), "truss": (0.22, 0.5)}
        words = {"bare": "python + httpx + json", "truss": "truss train view"}
        for name in [name for name in commands if name != "jobs"]:
            at_most_time, at_most_peak = limits[name]
            report.compare(
                "jobs -o json",
                times["jobs"],
                times[name],
                against=words[name],
                unit="CPU ms",
                at_most=at_most_time,
                cause="imports: pydantic and the models, httpx, anyio, h11, click, asyncio; log patterns"
                " and sqlite are no longer among them (6% less CPU)",
            )
            report.compare(
                "jobs -o json, peak memory",
                peaks["jobs"],
                peaks[name],
                against=words[name],
                unit="MiB",
                at_most=at_most_peak,
            )
    report.close()


if __name__ == "__main__":
    main()
