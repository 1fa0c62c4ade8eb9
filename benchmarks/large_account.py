"""An account of 10,000 jobs in 1,000 projects: Home in a terminal, and ``bt-tui jobs -o json``.

The headless command is compared with bare Python (httpx, ``json.loads``, ``json.dumps``) and, where
``TRUSS_BIN`` names one, with the official CLI showing the same jobs, through the emulator as its proxy.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx
from command_cost import Cost, cost_of, official_command, official_environ
from harness import Report
from large_world import LargeWorld
from terminal import dashboard, nobody, tell_keys

from api_client.emulator.processes import EmulatorChild

JOBS, PROJECTS = 10_000, 1_000
ROUNDS = 3
KEYS = ["G", "g", "j", "k", "\x1b[6~", "\x1b[5~"]
WATCHED_S, SETTLING_S = 20.0, 40.0  # as in ``idle``: in the first minute Home reads older logs

BARE = """
import httpx, json, os
headers = {"Authorization": "Bearer " + os.environ["BASETEN_API_KEY"]}
with httpx.Client(base_url=os.environ["BASETEN_REMOTE_URL"], headers=headers, timeout=60) as client:
    jobs = client.post("/v1/training_jobs/search", json={}).json()["training_jobs"]
print(json.dumps(jobs, indent=2))
"""


def answer_s(environ: dict[str, str]) -> float:
    """Wall seconds until the server's answer with all jobs has come, undecoded."""
    headers = {"Authorization": f"Bearer {environ['BASETEN_API_KEY']}"}
    begun = time.perf_counter()
    url = f"{environ['BASETEN_REMOTE_URL']}/v1/training_jobs/search"
    httpx.post(url, headers=headers, json={}, timeout=60, trust_env=False).raise_for_status()
    return time.perf_counter() - begun


def headless(report: Report, emulator: EmulatorChild, environ: dict[str, str]) -> None:
    """The list as JSON."""
    display_options = {
        "ours": ([sys.executable, "-m", "tui", "jobs", "-o", "json"], environ),
        "bare Python": ([sys.executable, "-c", BARE], environ),
    }
    if truss := official_command():
        proxied = official_environ(emulator, environ)
        display_options["truss train view"] = ([truss, "train", "view", "--non-interactive"], proxied)
    taken: dict[str, list[Cost]] = {name: [] for name in display_options}
    for number in range(ROUNDS):
        for name, (command, own) in display_options.items():
            if name.startswith("truss") and number:
                continue  # it takes longer than all the rest together
            taken[name].append(cost_of(command, own))
    seconds = {name: statistics.median(one.seconds for one in rounds) for name, rounds in taken.items()}
    mib = {name: statistics.median(one.mib for one in rounds) for name, rounds in taken.items()}
    for name in display_options:
        if name != "ours":
            most = 0.4 if name.startswith("truss") else None
            report.compare(
                "jobs -o json",
                seconds["ours"],
                seconds[name],
                against=name,
                unit="CPU s",
                at_most=most,
                cause="bare Python with httpx and json alone takes a fifth of the official CLI's time",
            )
            most = 1.2 if name.startswith("truss") else None
            report.compare(
                "jobs -o json, memory",
                mib["ours"],
                mib[name],
                against=name,
                unit="MiB",
                at_most=most,
                cause="6 MB of answer, its 10,000 objects and their text are held at once",
            )


def home(report: Report, environ: dict[str, str]) -> None:
    """Home in a terminal, used while its lists refresh, and then left alone."""
    with dashboard(environ) as terminal:
        first = terminal.wait_for("bt-tui")
        first_cpu_s = terminal.cpu_s
        filled = terminal.wait_for("GPUs busy")
        listed_cpu_s = terminal.cpu_s - first_cpu_s
        report.figure("Home, first paint to all jobs listed, CPU", listed_cpu_s, unit="s", at_most=2)
        report.figure(
            "Home, first paint to all jobs listed, wall, with the answers", filled - first, unit="s"
        )
        report.figure("… of which the server's answer with all jobs takes", answer_s(environ), unit="s")
        tell_keys(
            report,
            "Home beside refreshes",
            terminal,
            KEYS * 4,
            at_most_ms=50,
            cause="measured: arranging and counting 10,000 rows (18 ms, once in ten seconds), or a search for"
            " all garbage (60 ms, once in half a minute) beside a key",
        )
        time.sleep(SETTLING_S)
        report.figure(
            "Home, idle, CPU",
            terminal.cpu_percent(WATCHED_S),
            unit="% of a core",
            at_most=1,
            cause="measured by task: a third is arranging, counting and showing 10,000 rows, a quarter is"
            " polling the list and two dozen running jobs, an eighth is painting, the rest timers, threads",
        )
        report.figure("Home, resident memory", terminal.resident_mib, unit="MiB", at_most=200)


def main() -> None:
    """Measure both on one emulator."""
    report = Report("large_account")
    with (
        LargeWorld(jobs=JOBS, projects=PROJECTS).emulator() as emulator,
        nobody(os.environ | emulator.remote_environ()) as environ,
    ):
        headless(report, emulator, environ)
        home(report, environ)
    report.close()


if __name__ == "__main__":
    main()
